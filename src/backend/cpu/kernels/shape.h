// Bytes that move: rows put together from pieces of other rows (concat, slice and its derivative), dimensions in
// another order, frames.
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

/// Chunks of bytes in the order of an output whose dimensions are `dims`; the last one is the inner loop.
struct Permutation {
  int64_t chunk = 0;             ///< bytes that stay together
  int64_t chunks = 0;            ///< of the output
  int64_t per_unit = 0;          ///< chunks
  std::vector<int64_t> dims;     ///< in chunks
  std::vector<int64_t> strides;  ///< bytes in the input from one step of a dimension to the next
};

/// A frame of one value around rows of floats, lanes included.
struct Padding {
  int64_t rows = 1, padded_rows = 1;  ///< of one image
  int64_t row = 0, padded_row = 0;    ///< floats
  int64_t above = 0;                  ///< rows
  int64_t before = 0;                 ///< floats
  int64_t total = 0;                  ///< rows of the output
  int64_t per_unit = 1;               ///< rows
  float value = 0;
};

/// Fixed numbers.
struct Constant {
  std::vector<float> values;
};

BRISK_DECLARE_PHASE(assemble_rows)
BRISK_DECLARE_PHASE(put_constant)
BRISK_DECLARE_PHASE(permute)
BRISK_DECLARE_PHASE(pad)

}  // namespace brisk::backend::cpu
