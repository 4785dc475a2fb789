// The devices that plans can be made for without having one, and what their modelled time is made of.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/lowering.h"

namespace brisk::backend::cuda {

/// What a kernel takes beside its bytes and FLOPs: a node of a CUDA graph.
constexpr double kLaunchSeconds = 2e-6;

const std::vector<Profile>& profiles();
/// null: there is none of that name.
const Profile* find_profile(std::string_view name);
/// Of a device by what its driver tells: the rates of the entry that its name names, else of the nearest capability in
/// proportion to the processors.
Profile profile_of(std::string_view device_name, int capability, int processors, int64_t memory_bytes,
                   int64_t shared_bytes);
/// "sm_90a": the code that it runs.
std::string architecture(const Profile& profile);

}  // namespace brisk::backend::cuda
