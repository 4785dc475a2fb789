// What a trainer is about to do, in lines.
#pragma once

#include <string>

#include "brisk/step.h"
#include "graph/model_state.h"

namespace brisk::train {

/// step: null when it is compiled at the first fit().
std::string summary_text(const ModelState& model, const Optimizer& optimizer, const StepOptions& options,
                         const Step* step);

/// "adamw, betas {0.9, 0.999}, epsilon 1e-08, weight decay 0.05"
std::string optimizer_text(const Optimizer& optimizer);

}  // namespace brisk::train
