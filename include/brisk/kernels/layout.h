// brisk/kernels/layout.h: element types and the order of elements in memory: casts, transposes, boxes of strided
// tensors, fills.
#pragma once

#include <cstdint>
#include <span>

#include "brisk/export.h"
#include "brisk/kernels/run_state.h"
#include "brisk/kernels/stream.h"
#include "brisk/tensor.h"

namespace brisk::kernels {

struct CastOptions {
  int64_t count = 0;        ///< elements
  DType from = DType::f32;  ///< of x
  DType to = DType::f32;    ///< of y
  const void* x = nullptr;  ///< [count]
  void* y = nullptr;        ///< [count], written; may be x where the types have one size
};
/// Between all element types. To a narrower float: rounds to nearest even. A float to an integer is cut towards 0 and
/// limited to the range, NaN becomes 0; an integer to a narrower one keeps its low bits.
BRISK_EXPORT void cast(const CastOptions& options, CudaStream stream);

struct TransposeOptions {
  int64_t batch = 1;        ///< matrices, each transposed
  int64_t columns = 0;      ///< of x
  DType from = DType::f32;  ///< of x
  int64_t rows = 0;         ///< of x
  DType to = DType::f32;    ///< of y; elements are cast as by `cast`
  const void* x = nullptr;  ///< [batch, rows, columns]
  void* y = nullptr;        ///< [batch, columns, rows], written; apart from x
};
/// Images [N, C, H W] to channels last: batch = N, rows = C, columns = H W; back: rows = H W, columns = C. A row or
/// column of one element makes it a cast.
BRISK_EXPORT void transpose(const TransposeOptions& options, CudaStream stream);

struct CopyBoxOptions {
  /// Elements of y before the first one of x, one a dimension; negative: that many of x are left out. Empty: zeros.
  std::span<const int64_t> before = {};
  std::span<const int64_t> dims = {};  ///< of the box that is written; 1 to 8
  DType dtype = DType::f32;            ///< of x and y
  double value = 0;                    ///< written where x has no element
  const void* x = nullptr;
  std::span<const int64_t> x_dims = {};     ///< empty: dims
  std::span<const int64_t> x_strides = {};  ///< in elements, one a dimension; empty: row-major over x_dims
  void* y = nullptr;                        ///< the first element of the box, which is written; apart from x
  std::span<const int64_t> y_strides = {};  ///< in elements; empty: row-major over dims
};
/// y[i] = x[i - before], or `value` where x has no such element: concat (one call an input, with y's strides), slice
/// (before negative), pad (before positive), permute (x_strides).
BRISK_EXPORT void copy_box(const CopyBoxOptions& options, CudaStream stream);

struct FillOptions {
  int64_t count = 0;         ///< elements
  DType dtype = DType::f32;  ///< of y
  double value = 0;
  void* y = nullptr;  ///< [count], written
};
BRISK_EXPORT void fill(const FillOptions& options, CudaStream stream);

struct StoreGradientOptions {
  int64_t count = 0;               ///< elements
  DType from = DType::f32;         ///< of gradient: f32, f16 or bf16
  const void* gradient = nullptr;  ///< of this micro-batch
  float* output = nullptr;         ///< of the window
  const RunState* run = nullptr;   ///< in device memory; null: overwrites
};
/// output = gradient, or output += gradient where run->accumulate is not 0.
BRISK_EXPORT void store_gradient(const StoreGradientOptions& options, CudaStream stream);

}  // namespace brisk::kernels
