// The one header through which kernel sources see CUDA. nvcc compiles them for devices; with BRISK_SIMT the host
// compiler compiles the same sources as C++ against the emulation in tests/simt.
//
//   BRISK_SHARED(float, tile, [32][33]);        a static shared array, 16-byte aligned
//   BRISK_DYNAMIC_SHARED(unsigned char, stage);  the dynamic shared memory of the launch, 1024-byte aligned
#pragma once

#include <cstdint>

#if defined(BRISK_SIMT)
#include "simt/device.h"
#else
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#define BRISK_SHARED(T, name, ...) __shared__ __align__(16) T name __VA_ARGS__
#define BRISK_DYNAMIC_SHARED(T, name)                                     \
  extern __shared__ __align__(1024) unsigned char brisk_dynamic_shared[]; \
  T* const name = reinterpret_cast<T*>(brisk_dynamic_shared)
#endif

#include "kernels/common/launch.h"
