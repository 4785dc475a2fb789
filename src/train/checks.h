// What can be seen before the first step to go wrong at a later one.
#pragma once

#include "graph/model_state.h"
#include "train/epoch_plan.h"

namespace brisk::train {

/// Throws Error [option] naming the layer when batch normalisation over features would meet a micro-batch of one
/// sample, whose variance is 0: it is the last one of an epoch as a rule.
void check_batch_norm(const ModelState& model, const EpochShape& shape);

}  // namespace brisk::train
