// The maximum of a line and the sum of the exponentials below it, in one pass.
#pragma once

#include "kernels/common/reduce.h"

namespace brisk::kernels {

/// Of a set of numbers: the largest (NaN where one is NaN), and the sum of exp(x - largest).
struct Exponentials {
  float largest, sum;
};

__device__ __forceinline__ Exponentials no_exponentials() { return {-INFINITY, 0}; }

__device__ __forceinline__ Exponentials shuffle_xor(Exponentials e, int offset) {
  return {shuffle_xor(e.largest, offset), shuffle_xor(e.sum, offset)};
}

struct JoinExponentials {
  __device__ __forceinline__ Exponentials operator()(Exponentials a, Exponentials b) const {
    const float largest = Larger()(a.largest, b.largest);
    // Equal ones are not subtracted: both may be -infinity.
    if (a.largest != largest) a.sum *= expf(a.largest - largest);
    if (b.largest != largest) b.sum *= expf(b.largest - largest);
    return {largest, a.sum + b.sum};
  }
};

/// Takes kWidth numbers in.
template <int kWidth>
__device__ __forceinline__ void take(Exponentials& e, const float (&v)[kWidth]) {
  float largest = e.largest;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) largest = Larger()(largest, v[i]);
  if (largest == -INFINITY) return;  // nothing above it so far; a line of such only is NaN when it is written
  if (e.largest != largest) e.sum *= expf(e.largest - largest);
  e.largest = largest;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) e.sum += expf(v[i] - largest);
}

}  // namespace brisk::kernels
