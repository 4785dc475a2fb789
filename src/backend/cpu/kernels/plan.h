// The plan's own ops: between a user's row-major tensors and samples in lanes, totals, seeds, gradients.
#pragma once

#include <cstdint>

#include "backend/cpu/kernels/declare.h"

namespace brisk::backend::cpu {

/// Row-major [samples][elements] <-> [blocks][elements][lanes]; elements of `size` bytes.
struct Relayout {
  int64_t samples = 0;
  int64_t elements = 0;
  int64_t size = 4;
  int64_t per_unit = 0;  ///< elements of a block that a unit moves, a multiple of the lanes
  int64_t units_per_block = 1;
};

/// Copies of a value without a batch.
struct PlainCopy {
  int64_t bytes = 0;
  int64_t unit = 0;
};

/// Sums over valid rows.
struct RowSum {
  int64_t samples = 0;
  int64_t rows = 1;
  bool weighted = false;  ///< seed_rows: with a loss scale
  double factor = 1;      ///< seed_count: numerator
};

struct GradientStore {
  int64_t count = 0;
  int64_t unit = 0;
};

BRISK_DECLARE_PHASE(load_lanes)  // unused lanes become zero
BRISK_DECLARE_PHASE(store_lanes)
BRISK_DECLARE_PHASE(copy_plain)
BRISK_DECLARE_PHASE(add_total)
BRISK_DECLARE_PHASE(seed_rows)
BRISK_DECLARE_PHASE(seed_count)
BRISK_DECLARE_PHASE(store_gradient)

}  // namespace brisk::backend::cpu
