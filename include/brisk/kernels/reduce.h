// brisk/kernels/reduce.h: sums, means and extremes over one axis, sums over rows, and broadcasting.
#pragma once

#include <array>
#include <cstdint>

#include "brisk/export.h"
#include "brisk/kernels/stream.h"
#include "brisk/tensor.h"

namespace brisk::kernels {

// Values are [outer, size, inner] in device memory; the axis is the middle one. The mean of an image [N, H, W, C] over
// H and W has outer = N, size = H W, inner = C. Sums are taken in f32 in an order that depends on the sizes alone: the
// same bits each run. One launch each.

struct ReduceOptions {
  int32_t* counters = nullptr;  ///< kCounterBytes (stream.h); may be null where the workspace is empty
  DType dtype = DType::f32;     ///< of x: f32, f16 or bf16
  int64_t inner = 1;
  int64_t outer = 1;
  DType output_dtype = DType::f32;  ///< of y
  int64_t size = 0;
  void* workspace = nullptr;  ///< reduce_workspace_bytes, 16-byte aligned; null where that is 0
  int64_t workspace_bytes = 0;
  const void* x = nullptr;  ///< [outer, size, inner]
  void* y = nullptr;        ///< [outer, inner], written
};
BRISK_EXPORT void reduce_sum(const ReduceOptions& options, CudaStream stream);
BRISK_EXPORT void reduce_mean(const ReduceOptions& options, CudaStream stream);
BRISK_EXPORT int64_t reduce_workspace_bytes(const ReduceOptions& options);

struct ReduceMaxOptions {
  DType dtype = DType::f32;  ///< of x and y
  int32_t* index = nullptr;  ///< [outer, inner], written: where along the axis y was found
  int64_t inner = 1;
  int64_t outer = 1;
  int64_t size = 0;         ///< fits 31 bits
  const void* x = nullptr;  ///< [outer, size, inner]
  void* y = nullptr;        ///< [outer, inner], written
};
/// The largest element along the axis: the first of equal ones, else the first NaN.
BRISK_EXPORT void reduce_max(const ReduceMaxOptions& options, CudaStream stream);

struct ReduceMaxGradientOptions {
  DType dtype = DType::f32;        ///< of dx and dy
  void* dx = nullptr;              ///< [outer, size, inner], written
  const void* dy = nullptr;        ///< [outer, inner]
  const int32_t* index = nullptr;  ///< [outer, inner], as reduce_max wrote it
  int64_t inner = 1;
  int64_t outer = 1;
  int64_t size = 0;
};
BRISK_EXPORT void reduce_max_gradient(const ReduceMaxGradientOptions& options, CudaStream stream);

struct ChannelSumOptions {
  bool accumulate = false;  ///< y is added to instead of overwritten
  int64_t channels = 0;
  int32_t* counters = nullptr;  ///< kCounterBytes (stream.h); may be null where the workspace is empty
  DType dtype = DType::f32;     ///< of x
  int64_t rows = 0;             ///< of [N, H, W, C]: N H W; of a batch of samples: N, with all elements as channels
  void* workspace = nullptr;    ///< channel_sum_workspace_bytes, 16-byte aligned; null where that is 0
  int64_t workspace_bytes = 0;
  const void* x = nullptr;  ///< [rows, channels]
  float* y = nullptr;       ///< [channels], written
};
/// The sum over all rows: the gradient of a bias, and of what all samples share.
BRISK_EXPORT void channel_sum(const ChannelSumOptions& options, CudaStream stream);
BRISK_EXPORT int64_t channel_sum_workspace_bytes(const ChannelSumOptions& options);

struct ExpandOptions {
  DType dtype = DType::f32;                            ///< of x and y
  double factor = 1;                                   ///< y = factor x
  Shape shape{};                                       ///< of y
  std::array<int64_t, Shape::kMaximumRank> strides{};  ///< in elements of x, for each dimension of y; 0 repeats
  const void* x = nullptr;
  void* y = nullptr;  ///< [shape], written
};
/// y[i, j, ...] = factor x[i strides[0] + j strides[1] + ...]. One launch.
BRISK_EXPORT void expand(const ExpandOptions& options, CudaStream stream);

}  // namespace brisk::kernels
