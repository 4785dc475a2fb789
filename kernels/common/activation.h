// Activations at the end of a kernel, and the way back through them.
#pragma once

#include "brisk/kernels/activation.h"
#include "kernels/common/cuda.h"

namespace brisk::kernels {

__device__ __forceinline__ float activate(Activation activation, float x) {
  switch (activation) {
    case Activation::relu:
      return x > 0 || x != x ? x : 0.0f;
    case Activation::sigmoid:
      return 1 / (1 + expf(-x));
    case Activation::silu:
      return x / (1 + expf(-x));
    case Activation::tanh:
      return tanhf(x);
    default:
      return x;
  }
}

/// The gradient before the activation, from its input x (relu, silu).
__device__ __forceinline__ float through_input(Activation activation, float dy, float x) {
  if (activation == Activation::relu) return x > 0 ? dy : 0.0f;
  if (activation != Activation::silu) return dy;
  const float s = 1 / (1 + expf(-x));
  return dy * (s * (1 + x * (1 - s)));
}

/// The same from its output y (relu, sigmoid, tanh).
__device__ __forceinline__ float through_output(Activation activation, float dy, float y) {
  switch (activation) {
    case Activation::relu:
      return y > 0 ? dy : 0.0f;
    case Activation::sigmoid:
      return dy * (y * (1 - y));
    case Activation::tanh:
      return dy * (1 - y * y);
    default:
      return dy;
  }
}

}  // namespace brisk::kernels
