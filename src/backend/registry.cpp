// The only file that names concrete backends.
#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/cuda.h"

namespace brisk::backend {

const Backend& backend_for(Device device) {
  return device.kind() == Device::Kind::cpu ? cpu::cpu_backend() : cuda::cuda_backend(device);
}

}  // namespace brisk::backend
