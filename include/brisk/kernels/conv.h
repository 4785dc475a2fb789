// brisk/kernels/conv.h: two-dimensional convolution (cross-correlation) and its gradients on raw device pointers.
#pragma once

#include <array>
#include <cstdint>

#include "brisk/export.h"
#include "brisk/kernels/activation.h"
#include "brisk/kernels/gemm.h"
#include "brisk/kernels/stream.h"
#include "brisk/tensor.h"

namespace brisk::kernels {

/// Sizes of a convolution as its forward pass sees them; pairs are {height, width}.
struct Conv2dShape {
  int64_t batch = 0;                      ///< images
  int64_t channels = 0;                   ///< of the input
  std::array<int64_t, 2> dilation{1, 1};  ///< distance of neighbouring taps
  int64_t groups = 1;                     ///< only 1
  int64_t height = 0;                     ///< of the input
  std::array<int64_t, 2> kernel{1, 1};    ///< size of the window
  int64_t out_channels = 0;               ///< of the output
  std::array<int64_t, 2> padding{0, 0};   ///< zeros on each side
  std::array<int64_t, 2> stride{1, 1};    ///< distance of neighbouring windows
  int64_t width = 0;                      ///< of the input

  int64_t out_height() const { return out_size(height, 0); }
  int64_t out_width() const { return out_size(width, 1); }
  /// floor((in + 2 padding - dilation (kernel - 1) - 1) / stride) + 1 of one axis; 0 when the window does not fit.
  int64_t out_size(int64_t in, size_t axis) const {
    const int64_t free = in + 2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1;
    return free < 0 || stride[axis] < 1 ? 0 : free / stride[axis] + 1;
  }
};

/// output = activation(convolution(input, weights) + bias + residual).
struct Conv2dOptions {
  Activation activation = Activation::none;
  const float* bias = nullptr;     ///< [out_channels]; null: none
  int32_t* counters = nullptr;     ///< kCounterBytes; needed beside a workspace
  DType dtype = DType::f32;        ///< of input, weights, residual, output: f32, f16 or bf16 (as GemmOptions::dtype)
  const void* input = nullptr;     ///< [batch, height, width, channels]
  void* output = nullptr;          ///< [batch, out_height, out_width, out_channels], overwritten; may be `residual`
  int processors = 132;            ///< streaming multiprocessors to fill; tile and split follow from it
  const void* residual = nullptr;  ///< as output; null: none
  Conv2dShape shape{};
  int split_k = 0;  ///< slices of the sum computed apart and added in order, 1 to 64; 0: chosen by the sizes
  float* statistics = nullptr;  ///< [conv2d_statistics_tiles, 2, out_channels]: sums of the output, and of its squares,
                                ///< over the pixels of each tile (as stored, after rounding); null: none
  MatrixTile tile = MatrixTile::automatic;  ///< rows are output pixels, columns output channels
  const void* weights = nullptr;            ///< [out_channels, kernel height, kernel width, channels]
  void* workspace = nullptr;                ///< null: split_k counts as 1
  int64_t workspace_bytes = 0;              ///< at least conv2d_workspace_bytes when workspace is set
};

/// input_gradient = transposed convolution(output_gradient, weights) + residual; also the forward pass of a transposed
/// convolution.
struct Conv2dInputGradientOptions {
  int32_t* counters = nullptr;              ///< kCounterBytes; needed beside a workspace
  DType dtype = DType::f32;                 ///< of everything here
  void* input_gradient = nullptr;           ///< [batch, height, width, channels], overwritten; may be `residual`
  const void* output_gradient = nullptr;    ///< [batch, out_height, out_width, out_channels]
  int processors = 132;                     ///< streaming multiprocessors to fill; tile and split follow from it
  const void* residual = nullptr;           ///< as input_gradient: another gradient of the same value; null: none
  Conv2dShape shape{};                      ///< of the forward pass
  int split_k = 0;                          ///< as Conv2dOptions::split_k
  MatrixTile tile = MatrixTile::automatic;  ///< rows are input pixels, columns input channels
  const void* weights = nullptr;            ///< [out_channels, kernel height, kernel width, channels]
  void* workspace = nullptr;                ///< null: split_k counts as 1
  int64_t workspace_bytes = 0;              ///< at least conv2d_input_gradient_workspace_bytes when workspace is set
};

/// weight_gradient = alpha * sum over images and pixels of output_gradient x window of the input, in f32.
struct Conv2dWeightGradientOptions {
  bool accumulate = false;                ///< adds to weight_gradient instead of overwriting it
  float alpha = 1;                        ///< scales the sum
  int32_t* counters = nullptr;            ///< kCounterBytes; needed beside a workspace
  DType dtype = DType::f32;               ///< of input and output_gradient
  const void* input = nullptr;            ///< [batch, height, width, channels]
  const void* output_gradient = nullptr;  ///< [batch, out_height, out_width, out_channels]
  int processors = 132;                   ///< streaming multiprocessors to fill; tile and split follow from it
  Conv2dShape shape{};                    ///< of the forward pass
  int split_k = 0;                        ///< as Conv2dOptions::split_k: slices of the pixels
  MatrixTile tile =
      MatrixTile::automatic;         ///< rows are output channels, columns kernel height x kernel width x channels
  float* weight_gradient = nullptr;  ///< [out_channels, kernel height, kernel width, channels]
  void* workspace = nullptr;         ///< null: split_k counts as 1
  int64_t workspace_bytes = 0;       ///< at least conv2d_weight_gradient_workspace_bytes when workspace is set
};

/// Launch it. All tensors lie at multiples of 16 bytes. Throw Error [option] for what is missing or out of range
/// (groups other than 1 too), Error [backend] when the launch fails. The same options give the same bits.
BRISK_EXPORT void conv2d(const Conv2dOptions& options, CudaStream stream);
BRISK_EXPORT void conv2d_input_gradient(const Conv2dInputGradientOptions& options, CudaStream stream);
BRISK_EXPORT void conv2d_weight_gradient(const Conv2dWeightGradientOptions& options, CudaStream stream);
/// Bytes of workspace for these options, 0 when the sum is not split. Look at shape, dtype, tile, split_k, processors.
BRISK_EXPORT int64_t conv2d_workspace_bytes(const Conv2dOptions& options);
BRISK_EXPORT int64_t conv2d_input_gradient_workspace_bytes(const Conv2dInputGradientOptions& options);
BRISK_EXPORT int64_t conv2d_weight_gradient_workspace_bytes(const Conv2dWeightGradientOptions& options);
/// Tiles of output pixels, the first dimension of `statistics`. Looks at what conv2d_workspace_bytes looks at.
BRISK_EXPORT int64_t conv2d_statistics_tiles(const Conv2dOptions& options);

}  // namespace brisk::kernels
