// Elements of one type made into another, where they lie.
#pragma once

#include "backend/cpu/kernels/declare.h"
#include "brisk/tensor.h"

namespace brisk::backend::cpu {

struct Cast {
  DType from = DType::f32;
  DType to = DType::f32;
  int64_t count = 0;  ///< elements, lanes included
  int64_t unit = 0;
};

BRISK_DECLARE_PHASE(cast_elements)

}  // namespace brisk::backend::cpu
