// Random numbers that are values of their own, and samples dropped as a whole: pure functions of (stream, attempt,
// sample, element), as core/philox.h has them.
#pragma once

#include <cstdint>

#include "backend/cpu/kernels/declare.h"

namespace brisk::backend::cpu {

struct Draw {
  int64_t elements = 1;  ///< of a sample
  int64_t per_unit = 1;  ///< elements, a multiple of 4
  int64_t units_per_block = 1;
  uint64_t key = 0;
  float factor = 1;  ///< deviation, or high - low
  float offset = 0;  ///< mean, or low
  float most = 0;    ///< the largest float below high
};

struct SampleDrop {
  int64_t rows = 1;      ///< of a sample; each is kept or dropped
  int64_t elements = 1;  ///< of a row
  int64_t per_unit = 1;  ///< elements
  int64_t units_per_row = 1;
  uint64_t key = 0;
  uint32_t threshold = 0;  ///< a row stays whose word is at least this
  float factor = 1;        ///< of those that stay
};

BRISK_DECLARE_PHASE(draw_normal)
BRISK_DECLARE_PHASE(draw_uniform)
BRISK_DECLARE_PHASE(drop_samples)

}  // namespace brisk::backend::cpu
