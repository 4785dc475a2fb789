// What a plan's modelled time is made of: one table of devices.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace brisk::backend::cuda {

/// A device as kernels are chosen and their time is modelled for it.
struct Profile {
  std::string name;            ///< "h200"
  int capability = 80;         ///< compute capability x 10
  int processors = 108;        ///< streaming multiprocessors
  double low_flops = 0;        ///< f16 and bf16 matrix products with f32 sums, FLOP/s that large ones reach
  double f32_flops = 0;        ///< f32, FLOP/s
  double bytes_per_second = 0; ///< that large kernels reach
};

/// What a kernel takes beside its bytes and FLOPs: a node of a CUDA graph.
constexpr double kLaunchSeconds = 2e-6;

std::span<const Profile> profiles();
/// null: there is none of that name.
const Profile* find_profile(std::string_view name);
/// Of the default device of plans: the newest of the table.
const Profile& default_profile();
/// Of a device by what its driver tells: the profile whose name its name holds, else that of the nearest capability.
Profile profile_of(std::string_view device_name, int capability, int processors);
/// "sm_90a": the code that it runs.
std::string architecture(const Profile& profile);

}  // namespace brisk::backend::cuda
