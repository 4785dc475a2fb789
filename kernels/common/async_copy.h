// Copies from global to shared memory that go on while the thread computes (cp.async); on sm_75, which has none, plain
// loads and stores. A thread sees its own copies after async_copy_wait, other threads' after a barrier behind that.
//
//   async_copy<Bytes>(shared, global, valid_bytes)   Bytes = 4, 8, 16; both addresses aligned to it. Bytes from
//   valid_bytes
//                                                    (default: all are valid) on are zero and are not read: with 0,
//                                                    `global` may be any pointer into global memory
//   async_copy_commit()                              closes the group of the copies since the last one
//   async_copy_wait<N>()                             waits until at most the N youngest groups are under way
#pragma once

#include "kernels/common/cuda.h"

#if defined(BRISK_SIMT)
#include "simt/async_copy.h"
#else

namespace brisk::kernels {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

template <int Bytes>
__device__ __forceinline__ void async_copy(void* shared, const void* global, int valid_bytes = Bytes) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp.async copies 4, 8 or 16 bytes");
  auto to = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  auto from = __cvta_generic_to_global(global);
  if constexpr (Bytes == 16) {  // past the L1 cache, which the other sizes cannot
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid_bytes) : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(Bytes), "r"(valid_bytes)
                 : "memory");
  }
}

__device__ __forceinline__ void async_copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }

template <int N>
__device__ __forceinline__ void async_copy_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

#else

template <int Bytes>
__device__ __forceinline__ void async_copy(void* shared, const void* global, int valid_bytes = Bytes) {
  uint32_t words[Bytes / 4] = {};
  if (valid_bytes == Bytes) {
    if constexpr (Bytes == 16) {
      *reinterpret_cast<uint4*>(words) = *static_cast<const uint4*>(global);
    } else {
      for (int i = 0; i < Bytes / 4; ++i) words[i] = static_cast<const uint32_t*>(global)[i];
    }
  } else {
    for (int i = 0; i < valid_bytes; ++i) {
      words[i / 4] |= uint32_t{static_cast<const unsigned char*>(global)[i]} << (i % 4 * 8);
    }
  }
  for (int i = 0; i < Bytes / 4; ++i) static_cast<uint32_t*>(shared)[i] = words[i];
}

__device__ __forceinline__ void async_copy_commit() {}

template <int N>
__device__ __forceinline__ void async_copy_wait() {}

#endif

}  // namespace brisk::kernels

#endif
