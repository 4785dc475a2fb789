// The twin of the CUDA backend in a build without one: it says so.
#include "backend/cuda.h"
#include "brisk/error.h"

namespace brisk::backend::cuda {

namespace {
constexpr const char* kAbsent = "this build has no CUDA backend";
}

const Backend& cuda_backend(Device device) {
  throw Error(ErrorCode::backend, device.text(),
              std::string(kAbsent) + "; use .device = cpu(), or configure with -DBRISK_CUDA=ON (toolkit >= 12)");
}

std::shared_ptr<const Target> cuda_target(Device device) { return cuda_backend(device).target(); }

std::shared_ptr<const Target> cuda_target(const std::string&) { return nullptr; }

std::vector<std::string> cuda_profiles() { return {}; }

std::vector<Device> cuda_devices(std::string& why_not) {
  why_not = kAbsent;
  return {};
}

}  // namespace brisk::backend::cuda
