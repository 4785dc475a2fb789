#include "backend/cuda/runtime/device.h"

#include "backend/cuda/profiles.h"
#include "backend/cuda/runtime/nvml.h"
#include "brisk/error.h"
#include "brisk/tensor.h"
#include "core/log.h"
#include "core/text.h"

namespace brisk::backend::cuda {
namespace {

/// 13000: "13.0"
std::string version_text(int version) { return cat(version / 1000, ".", version % 1000 / 10); }

/// The oldest driver of Linux that runs programs of this toolkit.
const char* least_driver() { return CUDART_VERSION >= 13000 ? "580.65.06" : "525.60.13"; }

/// Why the runtime found no device. The error without a driver is that of an old one.
std::string why_no_count(cudaError_t error) {
  int runtime = CUDART_VERSION, driver = 0;
  if (cudaRuntimeGetVersion(&runtime) != cudaSuccess) cudaGetLastError();
  if (cudaDriverGetVersion(&driver) != cudaSuccess) cudaGetLastError();
  const Management management = ask_management();
  if (error == cudaErrorNoDevice && management.devices.empty())
    return "the driver sees no NVIDIA GPU in this machine; in a container start it with --gpus all";
  if (error == cudaErrorNoDevice)
    return cat("none of the machine's GPUs (", management.devices[0].name, management.devices.size() > 1 ? ", ..." : "",
               ") is visible; look at CUDA_VISIBLE_DEVICES");
  if (error == cudaErrorInsufficientDriver && driver == 0)
    return cat("no NVIDIA driver is installed (libcuda.so.1 is absent); with a GPU in the machine install driver ",
               least_driver(), " or newer");
  if (error == cudaErrorInsufficientDriver)
    return cat("the NVIDIA driver ", management.driver_version, management.driver_version.empty() ? "" : " ",
               "is too old: it has CUDA ", version_text(driver), ", this build needs ", version_text(runtime),
               "; install driver ", least_driver(), " or newer");
  return cat("the NVIDIA driver does not start: ", cudaGetErrorString(error), " (CUDA error ", static_cast<int>(error),
             "); run nvidia-smi");
}

/// 0, and why, when the runtime cannot count.
int count_devices(std::string& why_not) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {  // `count` may not have been written
    cudaGetLastError();
    why_not = why_no_count(error);
    return 0;
  }
  if (count == 0) why_not = why_no_count(cudaErrorNoDevice);
  return count;
}

std::string why_unusable(const DeviceFacts& facts) {
  const int capability = facts.profile.capability;
  if (capability >= kLeastCapability) return "";
  return cat(facts.name, " has compute capability ", capability / 10, ".", capability % 10,
             "; the kernels need 7.5 (Turing) or newer",
             capability >= 70 ? ": CUDA 13 no longer compiles for Volta (V100)" : "");
}

DeviceFacts read_facts(int index) {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, index), "reading the device's properties");
  DeviceFacts facts;
  facts.name = properties.name;
  facts.profile = profile_of(facts.name, 10 * properties.major + properties.minor, properties.multiProcessorCount,
                             static_cast<int64_t>(properties.totalGlobalMem),
                             static_cast<int64_t>(properties.sharedMemPerBlockOptin));
  return facts;
}

}  // namespace

std::vector<int> usable_devices(std::string& why_not) {
  std::vector<int> usable;
  const int count = count_devices(why_not);
  for (int index = 0; index < count; ++index) {
    std::string reason;
    try {
      reason = why_unusable(read_facts(index));
    } catch (const Error& error) {
      reason = error.what();
    }
    if (reason.empty())
      usable.push_back(index);
    else
      why_not += (why_not.empty() ? "" : "; ") + reason;
  }
  return usable;
}

DeviceFacts device_facts(int index) {
  const std::string field = gpu(index).text();
  std::string reason;
  const int count = count_devices(reason);
  if (count > 0 && (index < 0 || index >= count))
    reason = cat("there ", count == 1 ? "is 1 GPU" : cat("are ", count, " GPUs"), ", numbered from 0");
  if (reason.empty()) {
    DeviceFacts facts = read_facts(index);
    reason = why_unusable(facts);
    if (reason.empty()) return facts;
  }
  throw Error(ErrorCode::backend, field, reason + "; to train without it use .device = cpu()");
}

OpenDevice open_device(int index) {
  OpenDevice device;
  device.index = index;
  device.facts = device_facts(index);
  const Current current(index);
  device.compute = make_stream();
  device.copies = make_stream();
  const Profile& profile = device.facts.profile;
  log_info(gpu(index).text(), ": ", device.facts.name, ", compute capability ", profile.capability / 10, ".",
           profile.capability % 10, ", ", profile.processors, " processors, ", profile.memory_bytes >> 20,
           " MiB, driver ", ask_management().driver_version, ", CUDA ", version_text(CUDART_VERSION));
  return device;
}

}  // namespace brisk::backend::cuda
