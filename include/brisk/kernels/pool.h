// brisk/kernels/pool.h: pooling over windows of [N, H, W, C].
#pragma once

#include <cstdint>

#include "brisk/export.h"
#include "brisk/kernels/stream.h"
#include "brisk/tensor.h"

namespace brisk::kernels {

// Images are channels-last, device pointers. An output has (size + 2 padding - kernel) / stride + 1 rows or columns,
// the division rounded down; padding is at most half of the kernel, so that each window holds an element. Each launcher
// is one launch; gradients are gathered, so their sums have one order.

struct MaxPool2dOptions {
  int64_t batch = 0;
  int64_t channels = 0;
  DType dtype = DType::f32;  ///< of x and y: f32, f16 or bf16
  int64_t height = 0;        ///< of x
  int32_t* index = nullptr;  ///< of y's shape, written: row x width + column of the element of x that won
  int64_t kernel_height = 1;
  int64_t kernel_width = 1;
  int64_t padding_height = 0;
  int64_t padding_width = 0;
  int64_t stride_height = 1;
  int64_t stride_width = 1;
  int64_t width = 0;        ///< of x; height x width fits 31 bits
  const void* x = nullptr;  ///< [batch, height, width, channels]
  void* y = nullptr;        ///< [batch, output height, output width, channels], written
};
/// The largest element of each window: the first of equal ones, else the first NaN. Padding never wins.
BRISK_EXPORT void max_pool2d(const MaxPool2dOptions& options, CudaStream stream);

struct MaxPool2dGradientOptions {
  int64_t batch = 0;
  int64_t channels = 0;
  DType dtype = DType::f32;        ///< of dx and dy
  void* dx = nullptr;              ///< [batch, height, width, channels], written
  const void* dy = nullptr;        ///< [batch, output height, output width, channels]
  int64_t height = 0;              ///< of dx
  const int32_t* index = nullptr;  ///< of dy's shape, as max_pool2d wrote it
  int64_t kernel_height = 1;
  int64_t kernel_width = 1;
  int64_t padding_height = 0;
  int64_t padding_width = 0;
  int64_t stride_height = 1;
  int64_t stride_width = 1;
  int64_t width = 0;  ///< of dx
};
/// Each element of dx is the sum of dy over the windows that it won.
BRISK_EXPORT void max_pool2d_gradient(const MaxPool2dGradientOptions& options, CudaStream stream);

struct AvgPool2dOptions {
  int64_t batch = 0;
  int64_t channels = 0;
  DType dtype = DType::f32;  ///< of x and y
  int64_t height = 0;        ///< of x
  int64_t kernel_height = 1;
  int64_t kernel_width = 1;
  int64_t padding_height = 0;
  int64_t padding_width = 0;
  int64_t stride_height = 1;
  int64_t stride_width = 1;
  int64_t width = 0;        ///< of x
  const void* x = nullptr;  ///< [batch, height, width, channels]
  void* y = nullptr;        ///< [batch, output height, output width, channels], written
};
/// The sum of each window by kernel height x width, padding counted.
BRISK_EXPORT void avg_pool2d(const AvgPool2dOptions& options, CudaStream stream);

struct AvgPool2dGradientOptions {
  int64_t batch = 0;
  int64_t channels = 0;
  DType dtype = DType::f32;  ///< of dx and dy
  void* dx = nullptr;        ///< [batch, height, width, channels], written
  const void* dy = nullptr;  ///< [batch, output height, output width, channels]
  int64_t height = 0;        ///< of dx
  int64_t kernel_height = 1;
  int64_t kernel_width = 1;
  int64_t padding_height = 0;
  int64_t padding_width = 0;
  int64_t stride_height = 1;
  int64_t stride_width = 1;
  int64_t width = 0;  ///< of dx
};
BRISK_EXPORT void avg_pool2d_gradient(const AvgPool2dGradientOptions& options, CudaStream stream);

}  // namespace brisk::kernels
