// Products of small matrices, one pair a sample: each lane multiplies its own. An operand without a batch is shared.
#pragma once

#include <cstdint>

#include "backend/cpu/kernels/declare.h"

namespace brisk::backend::cpu {

struct Matmul {
  int64_t m = 1, k = 1, p = 1;
  int64_t a_row = 0, a_column = 0;  ///< steps, in elements, along m and k
  int64_t b_row = 0, b_column = 0;  ///< along k and p
  bool a_batched = false, b_batched = false;
  int64_t rows_per_unit = 1;  ///< of the result
  int64_t units_per_matrix = 1;
};

BRISK_DECLARE_PHASE(matmul)

}  // namespace brisk::backend::cpu
