// Rows of bytes put together from pieces of other rows: concat, slice and a slice's derivative.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cpu/kernels/declare.h"

namespace brisk::backend::cpu {

/// Bytes [first, first + bytes) of each output row come from `input` (-1: zeros).
struct RowPart {
  int32_t input = -1;
  int64_t first = 0;
  int64_t bytes = 0;
  int64_t source_row = 0;    ///< bytes from one row of the input to the next
  int64_t source_first = 0;  ///< where in the input's row the piece starts
};

struct RowParts {
  int64_t row = 0;    ///< bytes of an output row
  int64_t total = 0;  ///< bytes of the output
  int64_t unit = 0;   ///< bytes of a unit of work
  std::vector<RowPart> parts;
};

BRISK_DECLARE_PHASE(assemble_rows)

}  // namespace brisk::backend::cpu
