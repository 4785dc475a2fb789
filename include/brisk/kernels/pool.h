// brisk/kernels/pool.h: pooling over windows of [N, H, W, C].
#pragma once

#include <array>
#include <cstdint>

#include "brisk/export.h"
#include "brisk/kernels/stream.h"
#include "brisk/tensor.h"

namespace brisk::kernels {

// Images are channels-last, device pointers. An output has (size + 2 padding - kernel) / stride + 1 rows or columns,
// the division rounded down; padding is at most half of the kernel, so that each window holds an element. Each launcher
// is one launch; gradients are gathered, so their sums have one order.

/// Sizes of a pooling as its forward pass sees them; pairs are {height, width}.
struct Pool2dShape {
  int64_t batch = 0;     ///< images
  int64_t channels = 0;  ///< of both sides
  int64_t height = 0;    ///< of x; height x width fits 31 bits
  std::array<int64_t, 2> kernel{1, 1};
  std::array<int64_t, 2> padding{0, 0};
  std::array<int64_t, 2> stride{1, 1};
  int64_t width = 0;  ///< of x
};

struct MaxPool2dOptions {
  DType dtype = DType::f32;  ///< of x and y: f32, f16 or bf16
  int32_t* index = nullptr;  ///< of y's shape, written: row x width + column of the element of x that won
  Pool2dShape shape{};
  const void* x = nullptr;  ///< [batch, height, width, channels]
  void* y = nullptr;        ///< [batch, output height, output width, channels], written
};
/// The largest element of each window, of equal ones the first; a NaN is larger than all. Padding never wins.
BRISK_EXPORT void max_pool2d(const MaxPool2dOptions& options, CudaStream stream);

struct MaxPool2dGradientOptions {
  DType dtype = DType::f32;        ///< of dx and dy
  void* dx = nullptr;              ///< [batch, height, width, channels], written
  const void* dy = nullptr;        ///< [batch, output height, output width, channels]
  const int32_t* index = nullptr;  ///< of dy's shape, as max_pool2d wrote it
  Pool2dShape shape{};
};
/// Each element of dx is the sum of dy over the windows that it won.
BRISK_EXPORT void max_pool2d_gradient(const MaxPool2dGradientOptions& options, CudaStream stream);

struct AvgPool2dOptions {
  DType dtype = DType::f32;  ///< of x and y
  Pool2dShape shape{};
  const void* x = nullptr;  ///< [batch, height, width, channels]
  void* y = nullptr;        ///< [batch, output height, output width, channels], written
};
/// The sum of each window by kernel height x width, padding counted.
BRISK_EXPORT void avg_pool2d(const AvgPool2dOptions& options, CudaStream stream);

struct AvgPool2dGradientOptions {
  DType dtype = DType::f32;  ///< of dx and dy
  void* dx = nullptr;        ///< [batch, height, width, channels], written
  const void* dy = nullptr;  ///< [batch, output height, output width, channels]
  Pool2dShape shape{};
};
BRISK_EXPORT void avg_pool2d_gradient(const AvgPool2dGradientOptions& options, CudaStream stream);

}  // namespace brisk::kernels
