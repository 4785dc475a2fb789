// Checks of launchers: options, and what a launch returned.
//
//   check_launch("kernels::cast", launch(cast_kernel, ...));
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "kernels/common/options.h"

namespace brisk::kernels {

inline const char* launch_remedy(cudaError_t error) {
  switch (error) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      return "build for this device's architecture (CMAKE_CUDA_ARCHITECTURES)";
    case cudaErrorInsufficientDriver:
      return "install a driver at least as new as the CUDA toolkit of this build";
    case cudaErrorNoDevice:
      return "make a device visible (nvidia-smi, CUDA_VISIBLE_DEVICES)";
    case cudaErrorMemoryAllocation:
    case cudaErrorLaunchOutOfResources:
      return "free memory of the device, or use a smaller batch";
    case cudaErrorInvalidResourceHandle:
      return "give a stream of the current device that still exists";
    default:
      return "run the program under compute-sanitizer: this or an earlier kernel of the process failed";
  }
}

/// Throws Error [backend] where a launch failed.
inline void check_launch(const char* launcher, cudaError_t error) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // the error is told here: the next launch does not find it again
  throw Error(ErrorCode::backend, launcher,
              std::string("launch failed: ") + cudaGetErrorString(error) + "; " + launch_remedy(error));
}

}  // namespace brisk::kernels
