// Where the registry finds the CUDA backend: in cuda/, or in its twin no_cuda/ when built without a toolkit.
#pragma once

#include "backend/backend.h"

namespace brisk::backend::cuda {

/// Throws Error [backend] saying why the device cannot be used and what to do.
const Backend& cuda_backend(Device device);

}  // namespace brisk::backend::cuda
