// brisk/ops/shape.h: the same elements in another shape or order.
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

}  // namespace brisk
