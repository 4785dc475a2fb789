// Resizing of images whose pixels are vectors of samples, [planes][height][width][lanes]: each pixel is a weighted sum
// over a few rows and columns of another plane, forward and backward alike.
#pragma once

#include <vector>

#include "backend/cpu/kernels/declare.h"

namespace brisk::backend::cpu {

/// Pixel i of an axis takes weight[k] of pixel index[k] of the other side, k in [first[i], first[i + 1]).
struct AxisWeights {
  std::vector<int32_t> first, index;
  std::vector<float> weight;
};

/// A unit: planes_per_unit planes.
struct Resize {
  int64_t planes = 0, planes_per_unit = 1;
  int64_t height = 0, width = 0;          ///< of a plane that is read
  int64_t out_height = 0, out_width = 0;  ///< of one that is written
  AxisWeights rows, columns;
};

BRISK_DECLARE_PHASE(resize)

}  // namespace brisk::backend::cpu
