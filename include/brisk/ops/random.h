// brisk/ops/random.h: operations that draw random numbers.
#pragma once

#include <string>

#include "brisk/model.h"

namespace brisk {

struct DropoutOptions {
  std::string
      name{};  ///< empty: dropout1, dropout2, ... in its scope; keys the random numbers, with the model's seed and name
};

/// In training, each element becomes 0 with probability `rate` in [0, 1], and the others are divided by 1 - rate; in
/// evaluation nothing changes. x: [N, ...] f32. The mask depends on the sample's place in the global window, not on how
/// the work is split.
BRISK_EXPORT Var dropout(Var x, double rate, DropoutOptions options = {}, Where where = Where::here());

}  // namespace brisk
