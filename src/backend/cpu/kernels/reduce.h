// Sums over per-sample axes (each lane its own sample), and over the batch.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cpu/kernels/declare.h"

namespace brisk::backend::cpu {

struct Reduction {
  bool batched = false;
  int64_t in_elements = 0;  ///< of one sample, or all
  int64_t out_elements = 0;
  int64_t per_unit = 0;  ///< outputs of a unit
  int64_t units_per_block = 1;
  float scale = 1;
  std::vector<int64_t> kept, kept_strides;        ///< dimensions of the output, and where they lie in the input
  std::vector<int64_t> reduced, reduced_strides;  ///< the last one is the inner loop
};

/// [blocks][rows][elements][lanes] -> [elements]. The batch is cut into slices, whose sums are added in their order.
struct BatchSum {
  int64_t samples = 0;
  int64_t rows = 1;
  int64_t elements = 0;
  int64_t slices = 1;
  int64_t blocks_per_slice = 1;
  int64_t per_unit = 0;  ///< elements of a unit, a multiple of the lanes
  int64_t units_per_slice = 1;
  int64_t partials_at = 0;   ///< workspace: [slices][elements] floats, when there are several
  bool accumulates = false;  ///< the output is a gradient: it adds to what earlier micro-batches left
};

/// The largest along one axis of outer x size x inner, one lane a sample.
struct Maximum {
  int64_t size = 1, inner = 1;
  int64_t lines = 0;     ///< outer x inner of all blocks
  int64_t per_unit = 1;  ///< lines
};

BRISK_DECLARE_PHASE(reduce)
BRISK_DECLARE_PHASE(sum_slices)
BRISK_DECLARE_PHASE(add_slices)
BRISK_DECLARE_PHASE(reduce_max)           // x -> y, index
BRISK_DECLARE_PHASE(reduce_max_gradient)  // dy, index -> dx

}  // namespace brisk::backend::cpu
