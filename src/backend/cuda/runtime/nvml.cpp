#include "backend/cuda/runtime/nvml.h"

#include "backend/cuda/runtime/shared_library.h"

namespace brisk::backend::cuda {
namespace {

// As declared by NVML, whose functions return 0 when they succeed.
struct nvmlDevice_st;
using NvmlDevice = nvmlDevice_st*;
struct NvmlMemory {
  unsigned long long total, free, used;
};

struct Nvml {
  explicit Nvml(const char* name) : library(name) {
    library.find("nvmlInit_v2", init);
    library.find("nvmlShutdown", shutdown);
    library.find("nvmlSystemGetDriverVersion", driver_version);
    library.find("nvmlDeviceGetCount_v2", count);
    library.find("nvmlDeviceGetHandleByIndex_v2", handle);
    library.find("nvmlDeviceGetName", name_of);
    library.find("nvmlDeviceGetMemoryInfo", memory);
  }

  SharedLibrary library;
  int (*init)();
  int (*shutdown)();
  int (*driver_version)(char*, unsigned);
  int (*count)(unsigned*);
  int (*handle)(unsigned, NvmlDevice*);
  int (*name_of)(NvmlDevice, char*, unsigned);
  int (*memory)(NvmlDevice, NvmlMemory*);
};

}  // namespace

Management ask_management(const char* library) {
  Management found;
  const Nvml nvml(library);
  found.why_not = nvml.library.missing();
  if (!found.why_not.empty()) return found;
  if (const int error = nvml.init(); error != 0) {
    found.why_not = cat(library, ": nvmlInit_v2 returned ", error);
    return found;
  }
  char text[96] = {};
  if (nvml.driver_version(text, sizeof(text)) == 0) found.driver_version = text;
  unsigned count = 0;
  if (nvml.count(&count) != 0) count = 0;
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device = nullptr;
    NvmlMemory memory = {};
    if (nvml.handle(i, &device) != 0) continue;
    ManagedDevice& made = found.devices.emplace_back();
    if (nvml.name_of(device, text, sizeof(text)) == 0) made.name = text;
    if (nvml.memory(device, &memory) != 0) continue;
    made.memory_bytes = static_cast<int64_t>(memory.total);
    made.free_bytes = static_cast<int64_t>(memory.free);
  }
  nvml.shutdown();
  return found;
}

}  // namespace brisk::backend::cuda
