// Whether one model's values fit another model's plans.
#pragma once

#include "graph/model_state.h"

namespace brisk::exec {

/// Throws Error [weights] naming the first difference unless both models compute the same function of equally named
/// parameters. Allocates nothing when they do.
void check_same_structure(const ModelState& wanted, const ModelState& given);

}  // namespace brisk::exec
