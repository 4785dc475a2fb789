// Reading by index, one lane a sample. A line is one vector of samples: of indices, or of what belongs to each index.
#pragma once

#include <cstdint>

#include "backend/cpu/kernels/declare.h"

namespace brisk::backend::cpu {

struct Indexing {
  int64_t samples = 0;
  int64_t rows = 1;          ///< of a sample
  int64_t picks = 1;         ///< indices of a row (argmax: lines of a row)
  int64_t choices = 1;       ///< an index is less than this
  int64_t features = 1;      ///< elements that an index stands for
  int64_t per_unit = 1;      ///< rows, or lines
  int64_t lines = 0;         ///< of all blocks: rows, or rows x picks
  int32_t indices = 0;       ///< which input they are
  bool accumulates = false;  ///< the output is a gradient: it adds to what earlier micro-batches left
};

BRISK_DECLARE_PHASE(check_indices)    // one unit: the first bad row is the one that is reported
BRISK_DECLARE_PHASE(gather)           // x, index -> y; a line is a row of x
BRISK_DECLARE_PHASE(gather_gradient)  // dy, index -> dx; a line is a row of dx
BRISK_DECLARE_PHASE(argmax)           // x -> index
BRISK_DECLARE_PHASE(one_hot)          // index -> y
BRISK_DECLARE_PHASE(embedding)        // weight, index -> y
// Gradient of the weight: zeros, then all lines in their order, by a unit for 16 features.
BRISK_DECLARE_PHASE(clear_embedding)
BRISK_DECLARE_PHASE(embedding_gradient)

}  // namespace brisk::backend::cpu
