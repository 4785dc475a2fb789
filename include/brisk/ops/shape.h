// brisk/ops/shape.h: the same elements in another shape or order; fixed numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "brisk/model.h"

namespace brisk {

/// All elements of a sample in one dimension: [N, 50, 4, 4] becomes [N, 800].
BRISK_EXPORT Var flatten(Var x, Where where = Where::here());

/// The same elements, row-major, in other sizes. For a value with N the first size is -1, which stands for N: {-1, 128}
/// makes [N, 128] of [N, 4, 32], and [6N, 128] of [N, 6, 128]. Throws Error [shape] when the elements do not fit.
BRISK_EXPORT Var reshape(Var x, std::vector<int64_t> sizes, Where where = Where::here());

struct ConcatOptions {
  int64_t axis = 1;  ///< N is 0 and cannot be joined; negative counts from the end
};
/// Values one after the other along a dimension; all other dimensions are equal.
BRISK_EXPORT Var concat(const std::vector<Var>& values, ConcatOptions options = {}, Where where = Where::here());

/// Any dtype. Dimensions are numbered as users see them: N is 0 and keeps its place.
/// The dimensions a and b change places; negative numbers count from the end. [N, T, F] with a = 1, b = 2: [N, F, T].
BRISK_EXPORT Var transpose(Var x, int64_t a, int64_t b, Where where = Where::here());
/// Dimension i of the result is dimension axes[i] of x, as in PyTorch: each is named once, N first. {0, 3, 1, 2} makes
/// [N, C, H, W] of [N, H, W, C].
BRISK_EXPORT Var permute(Var x, std::vector<int64_t> axes, Where where = Where::here());
/// Images as decoders give them, [N, H, W, C], in the order of layers: [N, C, H, W].
BRISK_EXPORT Var to_channels_first(Var x, Where where = Where::here());

struct SliceOptions {
  int64_t axis = 1;   ///< N is 0 and cannot be cut; negative counts from the end
  int64_t count = 0;  ///< elements to keep; 0: all from `first` on
  int64_t first = 0;  ///< negative counts from the end
};
/// A stretch of one dimension; any dtype.
BRISK_EXPORT Var slice(Var x, SliceOptions options, Where where = Where::here());

struct ChunkOptions {
  int64_t axis = 1;  ///< N is 0 and cannot be cut; negative counts from the end
};
/// `parts` slices of equal size along a dimension, in their order. Throws Error [shape] when they do not come out even.
BRISK_EXPORT std::vector<Var> chunk(Var x, int64_t parts, ChunkOptions options = {}, Where where = Where::here());

struct PadOptions {
  int64_t bottom = 0;  ///< rows below, along the last dimension but one
  int64_t left = 0;    ///< elements before, along the last dimension
  int64_t right = 0;   ///< elements behind
  int64_t top = 0;     ///< rows above
  double value = 0;    ///< what they hold
};
/// A frame of one value around the last two dimensions of each sample, f32. x: [N, ..., H, W], or [N, W] without rows.
BRISK_EXPORT Var pad(Var x, PadOptions options, Where where = Where::here());

/// Fixed numbers, the same for all samples: a value without N that broadcasts as a parameter does, but is none. values:
/// as many as `shape` has elements, row-major, kept as f32, no NaN.
BRISK_EXPORT Var constant(std::vector<double> values, Shape shape, Where where = Where::here());

}  // namespace brisk
