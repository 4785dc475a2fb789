// The only file that names concrete backends.
#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/cuda.h"
#include "core/text.h"

namespace brisk::backend {

const Backend& backend_for(Device device) {
  return device.kind() == Device::Kind::cpu ? cpu::cpu_backend() : cuda::cuda_backend(device);
}

std::shared_ptr<const Target> target_for(Device device) {
  return device.kind() == Device::Kind::cpu ? cpu::cpu_backend().target() : cuda::cuda_target(device);
}

std::shared_ptr<const Target> target_named(const std::string& name) {
  if (name == "cpu") return cpu::cpu_backend().target();
  if (auto target = cuda::cuda_target(name)) return target;
  std::string names = "cpu";
  for (const std::string& profile : cuda::cuda_profiles()) names += ", " + profile;
  throw Error(ErrorCode::option, cat("target \"", name, "\""), cat("is not known; plans can be made for ", names));
}

std::vector<Device> devices(std::string& why_not) {
  std::vector<Device> found = cuda::cuda_devices(why_not);
  found.push_back(Device());
  return found;
}

}  // namespace brisk::backend
