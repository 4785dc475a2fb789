// The CUDA devices of the process, opened when first asked for.
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>

#include "backend/cuda.h"
#include "backend/cuda/runtime/memory.h"
#include "backend/cuda/runtime/runtime.h"
#include "brisk/error.h"
#include "core/text.h"

namespace brisk::backend::cuda {
namespace {

bool graphs_wanted() {
  const char* given = std::getenv("BRISK_CUDA_GRAPHS");
  const std::string_view value = given ? given : "";
  if (value.empty() || value == "on") return true;
  if (value == "off") return false;
  throw Error(ErrorCode::backend, "BRISK_CUDA_GRAPHS", cat('"', value, "\"; allowed are on and off"));
}

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(int index) : device_(open_device(index)), memory_(device_), target_(cuda_target(gpu(index))) {}
  std::shared_ptr<const Target> target() const override { return target_; }
  std::unique_ptr<Runtime> runtime(int) const override {
    return std::make_unique<CudaRuntime>(device_, RuntimeOptions{.graphs = graphs_wanted()});
  }
  Memory& memory() const override { return memory_; }

 private:
  const OpenDevice device_;
  mutable DeviceMemory memory_;
  const std::shared_ptr<const Target> target_;
};

}  // namespace

const Backend& cuda_backend(Device device) {
  // Never destroyed: the CUDA runtime may be gone by the end of the process.
  static std::mutex& mutex = *new std::mutex;
  static auto& backends = *new std::map<int, std::unique_ptr<CudaBackend>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<CudaBackend>& backend = backends[device.index()];
  if (!backend) backend = std::make_unique<CudaBackend>(device.index());
  return *backend;
}

std::vector<Device> cuda_devices(std::string& why_not) {
  std::vector<Device> devices;
  for (const int index : usable_devices(why_not)) devices.push_back(gpu(index));
  return devices;
}

const Profile* device_profile(Device device) {
  static std::mutex& mutex = *new std::mutex;
  static auto& profiles = *new std::map<int, Profile>;
  const std::lock_guard lock(mutex);
  const auto known = profiles.find(device.index());
  if (known != profiles.end()) return &known->second;
  try {
    return &profiles.emplace(device.index(), device_facts(device.index()).profile).first->second;
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace brisk::backend::cuda
