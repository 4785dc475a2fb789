// Softmax along one per-sample axis: each lane is a sample, so that all passes are vertical.
#pragma once

#include <cstdint>

#include "backend/cpu/kernels/declare.h"

namespace brisk::backend::cpu {

/// One sample (or a value without a batch) as outer x size x inner.
struct SoftmaxShape {
  bool batched = false;
  bool logarithm = false;
  int64_t outer = 1, size = 1, inner = 1;
  int64_t per_unit = 1;  ///< lines of a unit
  int64_t units_per_block = 1;
};

BRISK_DECLARE_PHASE(softmax)           // x -> y
BRISK_DECLARE_PHASE(softmax_gradient)  // dy, y -> dx

}  // namespace brisk::backend::cpu
