// The twin of the CUDA backend in a build without one: it says so.
#include "backend/cuda.h"
#include "brisk/error.h"

namespace brisk::backend::cuda {

const Backend& cuda_backend(Device device) {
  throw Error(ErrorCode::backend, device.text(), "this build has no CUDA backend; use .device = cpu()");
}

}  // namespace brisk::backend::cuda
