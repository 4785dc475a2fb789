// The CUDA backend as the registry sees it. Plans for CUDA devices are made in every build (cuda/); running them takes
// cuda/runtime/, or its twin no_cuda/ in a build without a toolkit, which says so.
#pragma once

#include "backend/backend.h"

namespace brisk::backend::cuda {

/// Throws Error [backend] saying why the device cannot be used and what to do.
const Backend& cuda_backend(Device device);
/// The device's own profile, or the default one where it is absent.
std::shared_ptr<const Target> cuda_target(Device device);
/// By the name of a profile ("h200"); null: there is none of that name.
std::shared_ptr<const Target> cuda_target(const std::string& profile);
std::vector<std::string> cuda_profiles();
/// Devices that can be used; `why_not` when there is none.
std::vector<Device> cuda_devices(std::string& why_not);

}  // namespace brisk::backend::cuda
