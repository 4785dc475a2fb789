// Normalisation within a sample. A line is what is normalised together: `size` vectors side by side, one lane a sample,
// so that statistics and dx never cross lanes; only the gradients of weight and bias do.
#pragma once

#include <cstdint>

#include "backend/cpu/kernels/declare.h"

namespace brisk::backend::cpu {

struct LineNorm {
  int64_t samples = 0;
  int64_t lines_per_block = 1;
  int64_t lines = 1;  ///< of all blocks
  int64_t size = 1;
  int64_t per_line = 1;  ///< parameters of a line
  int64_t repeat = 1;    ///< elements in a row that share a parameter: size = per_line x repeat
  int64_t period = 1;    ///< lines after which the parameters begin anew
  int64_t per_unit = 1;  ///< lines
  float epsilon = 0;
  bool affine = false;
  // The gradients of the parameters: turns of `period` lines are cut into slices, whose sums are added in their order.
  int64_t turns_per_slice = 1;
  int64_t slices = 1;
  int64_t parameters_per_unit = 4;  ///< a multiple of 4
  int64_t units_per_slice = 1;
  int64_t partials_at = 0;                      ///< workspace: [slices][2][parameters] floats
  bool adds_weight = false, adds_bias = false;  ///< those gradients add to what earlier micro-batches left
  int64_t turns() const { return lines / period; }
  int64_t parameters() const { return period * per_line; }
};

BRISK_DECLARE_PHASE(line_norm)           // x, weight, bias -> y, mean, inverse deviation
BRISK_DECLARE_PHASE(line_norm_gradient)  // dy, x, mean, inverse deviation, weight -> dx
// Gradients of weight and bias: sums of slices, then of these.
BRISK_DECLARE_PHASE(line_norm_slices)
BRISK_DECLARE_PHASE(line_norm_combine)

}  // namespace brisk::backend::cpu
