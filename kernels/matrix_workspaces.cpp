// Bytes of workspace and row tiles of matrix multiplication and convolution, in builds without CUDA too.
#include "kernels/matrix/sizes.h"

namespace brisk::kernels {

int64_t gemm_workspace_bytes(const GemmOptions& options) { return choose(sizes_of(options)).workspace_bytes(1); }

int64_t gemm_statistics_tiles(const GemmOptions& options) { return choose(sizes_of(options)).row_tiles; }

int64_t conv2d_workspace_bytes(const Conv2dOptions& options) { return choose(sizes_of(options)).workspace_bytes(1); }

int64_t conv2d_input_gradient_workspace_bytes(const Conv2dInputGradientOptions& options) {
  const MatrixSizes sizes = sizes_of(options);
  return choose(sizes).workspace_bytes(sizes.parts);
}

int64_t conv2d_weight_gradient_workspace_bytes(const Conv2dWeightGradientOptions& options) {
  return choose(sizes_of(options)).workspace_bytes(1);
}

int64_t conv2d_statistics_tiles(const Conv2dOptions& options) { return choose(sizes_of(options)).row_tiles; }

}  // namespace brisk::kernels
