// brisk/ops/reduce.h: sums, means and extremes over dimensions of a sample; sums and means over the samples.
#pragma once

#include <cstdint>
#include <vector>

#include "brisk/model.h"

namespace brisk {

struct ReduceOptions {
  std::vector<int64_t> axes{};  ///< N is 0 and cannot be reduced; negative counts from the end; empty: all but N
  bool keep = false;            ///< keeps the reduced dimensions with size 1
};

/// Sum or mean over dimensions of each sample, f32. Over the samples a loss reduces (sample_mean), so that windows stay
/// exact. Throws Error [shape] for an axis that x has not, for N, and for one named twice.
BRISK_EXPORT Var reduce_sum(Var x, ReduceOptions options = {}, Where where = Where::here());
BRISK_EXPORT Var reduce_mean(Var x, ReduceOptions options = {}, Where where = Where::here());

/// Mean over the samples of the micro-batch at hand, f32: [N, ...] -> [...], a value without a batch. It depends on how
/// a window is split into micro-batches; as a loss it goes through per_batch().
BRISK_EXPORT Var batch_mean(Var x, Where where = Where::here());

struct ReduceMaxOptions {
  int64_t axis = -1;  ///< N is 0 and cannot be reduced; negative counts from the end
  bool keep = false;  ///< keeps the reduced dimension with size 1
};

/// The largest or smallest element along a dimension, f32; NaN where there is one. The first of equals (or the first
/// NaN) gets the gradient. x: [N, ...] f32.
BRISK_EXPORT Var reduce_max(Var x, ReduceMaxOptions options = {}, Where where = Where::here());
BRISK_EXPORT Var reduce_min(Var x, ReduceMaxOptions options = {}, Where where = Where::here());

/// Sum over the samples of the micro-batch at hand, f32: [N, ...] -> [...]. What batch_mean() says holds of it too.
BRISK_EXPORT Var batch_sum(Var x, Where where = Where::here());

}  // namespace brisk
