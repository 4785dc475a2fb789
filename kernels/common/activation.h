// Activations at the end of a kernel, and the way back through them.
#pragma once

#include "brisk/kernels/activation.h"
#include "kernels/common/cuda.h"
#include "kernels/common/functions.h"

namespace brisk::kernels {

__device__ __forceinline__ float activate(Activation activation, float x) {
  switch (activation) {
    case Activation::relu:
      return relu(x);
    case Activation::sigmoid:
      return sigmoid(x);
    case Activation::silu:
      return silu(x);
    case Activation::tanh:
      return tanhf(x);
    default:
      return x;
  }
}

/// The gradient before the activation, from its input x (relu, silu).
__device__ __forceinline__ float through_input(Activation activation, float dy, float x) {
  if (activation == Activation::relu) return relu_gradient(dy, x);
  return activation == Activation::silu ? dy * silu_gradient(x) : dy;
}

/// The same from its output y (relu, sigmoid, tanh).
__device__ __forceinline__ float through_output(Activation activation, float dy, float y) {
  switch (activation) {
    case Activation::relu:
      return relu_gradient(dy, y);
    case Activation::sigmoid:
      return dy * (y * (1 - y));
    case Activation::tanh:
      return dy * (1 - y * y);
    default:
      return dy;
  }
}

}  // namespace brisk::kernels
