// Exact means over several reads of a step: sums and counts add up, means are taken at the end.
#pragma once

#include <string>
#include <vector>

#include "brisk/step.h"
#include "brisk/trainer.h"

namespace brisk::train {

/// The factor of each term of the loss, in the order of StepTotals::terms.
using Factors = std::vector<double>;

/// Adds the sums and counts of `part` to `whole`; clock, rate and norm are those of `part`; the loss is taken anew.
void add_totals(StepTotals& whole, const StepTotals& part, const Factors& factors);

EvaluationResult evaluation_of(const StepTotals& totals);

/// "loss 0.412, accuracy 0.853": the loss, its terms when there are several, the metrics.
std::string values_text(double loss, const std::vector<NamedMean>& terms, const std::vector<NamedMean>& metrics);

/// "2 epochs", "1.37 epochs"
std::string epochs_text(double epochs);

}  // namespace brisk::train
