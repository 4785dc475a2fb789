// brisk/kernels/softmax.h: softmax and its logarithm over one axis.
#pragma once

#include <cstdint>

#include "brisk/export.h"
#include "brisk/kernels/stream.h"
#include "brisk/tensor.h"

namespace brisk::kernels {

// Values are [outer, size, inner] in device memory; the axis is the middle one. Arithmetic is in f32, the maximum of
// each line is taken off first. A line with a NaN or +infinity becomes NaN. One launch each.

struct SoftmaxOptions {
  DType dtype = DType::f32;  ///< of x and y: f32, f16 or bf16
  int64_t inner = 1;
  int64_t outer = 0;
  int64_t size = 0;         ///< elements of a line
  const void* x = nullptr;  ///< [outer, size, inner]
  void* y = nullptr;        ///< [outer, size, inner], written; may be x
};
BRISK_EXPORT void softmax(const SoftmaxOptions& options, CudaStream stream);
BRISK_EXPORT void log_softmax(const SoftmaxOptions& options, CudaStream stream);

struct SoftmaxGradientOptions {
  DType dtype = DType::f32;  ///< of dx, dy and y
  void* dx = nullptr;        ///< [outer, size, inner], written; may be dy or y
  const void* dy = nullptr;  ///< [outer, size, inner]
  int64_t inner = 1;
  int64_t outer = 0;
  int64_t size = 0;
  const void* y = nullptr;  ///< [outer, size, inner], the forward's output
};
/// dx = y (dy - sum(dy y))
BRISK_EXPORT void softmax_gradient(const SoftmaxGradientOptions& options, CudaStream stream);
/// dx = dy - exp(y) sum(dy)
BRISK_EXPORT void log_softmax_gradient(const SoftmaxGradientOptions& options, CudaStream stream);

}  // namespace brisk::kernels
