// Bytes of workspace of the reductions and of the normalisations made of them, in builds without CUDA too.
#include "brisk/kernels/batch_norm.h"
#include "brisk/kernels/layer_norm.h"
#include "brisk/kernels/reduce.h"
#include "kernels/common/columns.h"

namespace brisk::kernels {

int64_t reduce_workspace_bytes(const ReduceOptions& o) {
  if (o.inner > 1) return 4 * partial_floats(o.dtype, o.outer, o.size, o.inner, 1);
  int32_t slices = 1;
  for (const int64_t width : {int64_t{1}, full_width(o.dtype)})
    slices = std::max(slices, cut_lines(o.outer, o.size, width).slices);
  return slices > 1 ? 4 * slices * o.outer : 0;
}

int64_t channel_sum_workspace_bytes(const ChannelSumOptions& o) {
  return 4 * partial_floats(o.dtype, 1, o.rows, o.channels, 1);
}

int64_t batch_norm_workspace_bytes(const BatchNormOptions& o) {
  return 4 * partial_floats(o.dtype, 1, o.rows, o.channels, 2);
}

int64_t batch_norm_gradient_workspace_bytes(const BatchNormGradientOptions& o) {
  return 4 * (2 * o.channels + partial_floats(o.dtype, 1, o.rows, o.channels, 2));
}

int64_t layer_norm_gradient_workspace_bytes(const LayerNormGradientOptions& o) {
  return 4 * partial_floats(o.dtype, 1, o.rows, o.size, 2);
}

}  // namespace brisk::kernels
