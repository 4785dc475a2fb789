// Pooling of images whose pixels are vectors of samples, [planes][height][width][lanes]; a plane is a channel of an
// image.
#pragma once

#include <vector>

#include "backend/cpu/kernels/declare.h"

namespace brisk::backend::cpu {

/// Indices [first, last) along one axis: the inputs of an output's window, or the outputs whose windows hold an input.
struct WindowRange {
  int32_t first = 0, last = 0;
};

/// A unit: planes_per_unit planes.
struct Pooling {
  int64_t planes = 0, planes_per_unit = 1;
  int64_t height = 0, width = 0;           ///< of the plane that the ranges point into
  std::vector<WindowRange> rows, columns;  ///< one for each row and column of the other
  float count = 1;                         ///< elements of a window, padding included
  bool twos = false;                       ///< all windows are 2 x 2 and whole
};

BRISK_DECLARE_PHASE(max_pool)
BRISK_DECLARE_PHASE(max_pool_gradient)
BRISK_DECLARE_PHASE(max_pool_scatter)  // the gradient of 2 x 2 windows that tile the input; ranges as of max_pool
BRISK_DECLARE_PHASE(average_pool)
BRISK_DECLARE_PHASE(average_pool_gradient)

}  // namespace brisk::backend::cpu
