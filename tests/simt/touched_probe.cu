// Kernels whose touched bytes are known, for the test of their counting: loads and stores of each width, twice over the
// same bytes, past a mask, by asynchronous copy and by an atomic.
#include "kernels/common/async_copy.h"
#include "simt/touched_probe.h"

namespace brisk::simt {
namespace {

__global__ void copy_wide(const uint4* from, uint4* to) { to[threadIdx.x] = from[threadIdx.x]; }

template <class T>
__global__ void copy(const T* from, T* to, int count) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) to[i] = static_cast<T>(from[i] + from[0]);
}

__global__ void stage(const float* from, float* to) {
  BRISK_SHARED(float, tile, [32]);
  kernels::async_copy<4>(&tile[threadIdx.x], from + threadIdx.x, threadIdx.x < 20 ? 4 : 0);
  kernels::async_copy_commit();
  kernels::async_copy_wait<0>();
  __syncthreads();
  to[threadIdx.x] = tile[31 - threadIdx.x];
}

__global__ void count(int* counter) { atomicAdd(counter, 1); }

}  // namespace

cudaError_t launch_probe(Probe probe, const void* from, void* to) {
  using kernels::launch;
  switch (probe) {
    case Probe::wide:
      return launch(copy_wide, 1, 32, 0, nullptr, static_cast<const uint4*>(from), static_cast<uint4*>(to));
    case Probe::masked:
      return launch(copy<float>, 1, 32, 0, nullptr, static_cast<const float*>(from), static_cast<float*>(to), 20);
    case Probe::narrow:
      return launch(copy<int16_t>, 1, 32, 0, nullptr, static_cast<const int16_t*>(from), static_cast<int16_t*>(to), 32);
    case Probe::staged:
      return launch(stage, 1, 32, 0, nullptr, static_cast<const float*>(from), static_cast<float*>(to));
    case Probe::atomic:
      return launch(count, 2, 32, 0, nullptr, static_cast<int*>(to));
  }
  return cudaErrorInvalidValue;
}

}  // namespace brisk::simt
