// brisk/kernels/gemm.h: matrix multiplication on raw device pointers.
#pragma once

#include <cstdint>

#include "brisk/export.h"
#include "brisk/kernels/activation.h"
#include "brisk/kernels/stream.h"
#include "brisk/tensor.h"

namespace brisk::kernels {

/// Rows x columns of the output that one thread block computes. automatic: chosen by the sizes.
enum class MatrixTile : uint8_t { automatic, m128n128, m128n64, m64n64 };

/// d = activation(alpha * A B + bias + residual), A: m x k, B: k x n; all matrices row-major and tight, at
/// multiples of 16 bytes. Products are summed in f32; the same options give the same bits.
struct GemmOptions {
  const void* a = nullptr;                   ///< [m, k] of `dtype`; [k, m] when a_transposed
  bool a_transposed = false;                 ///< A is the transpose of what lies at `a`
  bool accumulate = false;                   ///< adds to d, which is f32 then, instead of overwriting it
  Activation activation = Activation::none;  ///< not with accumulate
  float alpha = 1;                           ///< scales the product, not bias and residual
  const void* b = nullptr;                   ///< [k, n] of `dtype`; [n, k] when b_transposed
  bool b_transposed = false;                 ///< B is the transpose of what lies at `b`
  const float* bias = nullptr;               ///< [n]; null: none
  int32_t* counters = nullptr;               ///< kCounterBytes; needed beside a workspace
  void* d = nullptr;                         ///< [m, n] of `d_dtype`; may be `residual`, overlaps nothing else
  DType d_dtype = DType::f32;                ///< f32, or the same as `dtype`
  DType dtype = DType::f32;                  ///< of a and b: f32, f16 or bf16 (bf16: compute capability 8.0 and newer)
  int64_t k = 0;                             ///< 1 to 2^31 - 1025, as m and n
  int64_t m = 0;                             ///< rows of d
  int64_t n = 0;                             ///< columns of d
  int processors = 132;                      ///< streaming multiprocessors to fill; tile and split follow from it
  const void* residual = nullptr;            ///< [m, n] of `d_dtype`; null: none
  int split_k = 0;              ///< slices of k computed apart and added in order, 1 to 64; 0: chosen by the sizes
  float* statistics = nullptr;  ///< [gemm_statistics_tiles, 2, n]: sums of d's columns, and of their squares, over the
                                ///< rows of each tile (as stored, after rounding); null: none
  MatrixTile tile = MatrixTile::automatic;  ///< f32 has m128n64 alone; f16 and bf16 m64n64 where rows of a or b are no
                                            ///< multiple of 16 bytes
  void* workspace = nullptr;                ///< null: split_k counts as 1
  int64_t workspace_bytes = 0;              ///< at least gemm_workspace_bytes when workspace is set
};

/// Launches it. Linear layers: y = x w^T + bias (b_transposed); dx = dy w; dw = dy^T x (a_transposed, d_dtype f32).
/// Throws Error [option] for what is missing or out of range, Error [backend] when the launch fails.
BRISK_EXPORT void gemm(const GemmOptions& options, CudaStream stream);
/// Bytes of workspace for these options, 0 when k is not split. Looks at sizes, types, tile, split_k, processors.
BRISK_EXPORT int64_t gemm_workspace_bytes(const GemmOptions& options);
/// Row tiles of d, the first dimension of `statistics`. Looks at what gemm_workspace_bytes looks at.
BRISK_EXPORT int64_t gemm_statistics_tiles(const GemmOptions& options);

}  // namespace brisk::kernels
