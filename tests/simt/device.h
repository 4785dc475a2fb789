// What nvcc gives kernel sources without being asked, for the host compiler: CUDA's keywords, built-in variables,
// barriers and functions. A kernel that needs one that is not here adds it, with a test. Seen through
// kernels/common/cuda.h.
#pragma once

#include <cuda_runtime.h>
// After the runtime's types.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector_functions.h>

#include <cmath>
#include <cstdint>
#include <cstring>

#include "simt/core.h"

#undef __shared__
#undef __launch_bounds__
#undef __grid_constant__
#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __forceinline__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline  // the compiler's choice: sanitized kernels compile in half the time
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ shared memory is declared with BRISK_SHARED or BRISK_DYNAMIC_SHARED

#define BRISK_SHARED(T, name, ...)   \
  typedef T name##_type __VA_ARGS__; \
  static char name##_key;            \
  name##_type& name = *static_cast<name##_type*>(::brisk::simt::shared_array(&name##_key, sizeof(name##_type), #name))
#define BRISK_DYNAMIC_SHARED(T, name) T* const name = reinterpret_cast<T*>(::brisk::simt::current_block->dynamic_shared)

#define threadIdx (static_cast<const uint3&>(::brisk::simt::current_thread->index))
#define blockIdx (static_cast<const uint3&>(::brisk::simt::current_block->index))
#define blockDim (static_cast<const dim3&>(::brisk::simt::current_block->size))
#define gridDim (static_cast<const dim3&>(::brisk::simt::current_block->grid))
inline constexpr int warpSize = 32;

inline void __syncthreads(brisk::simt::Site site = brisk::simt::Site::here()) { brisk::simt::block_barrier(site); }
inline void __threadfence() { brisk::simt::fence(); }
[[noreturn]] inline void __trap() { brisk::simt::fail("__trap()"); }

#include "simt/atomics.h"
#include "simt/scalar.h"
#include "simt/warp.h"
