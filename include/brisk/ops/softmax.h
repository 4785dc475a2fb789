// brisk/ops/softmax.h: exponentials that add up to one.
#pragma once

#include <cstdint>

#include "brisk/model.h"

namespace brisk {

struct SoftmaxOptions {
  int64_t axis = -1;  ///< N is 0 and not allowed; negative counts from the end
};

/// exp(x) / sum(exp(x)) along an axis, f32, from differences to the maximum: finite for any finite x.
BRISK_EXPORT Var softmax(Var x, SoftmaxOptions options = {}, Where where = Where::here());
/// log(softmax(x)) without the detour: exact also where softmax rounds to 0.
BRISK_EXPORT Var log_softmax(Var x, SoftmaxOptions options = {}, Where where = Where::here());

}  // namespace brisk
