// From the fields of a data set to the inputs and targets of a step, by name; and the errors when they do not fit.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "brisk/data.h"
#include "brisk/loss.h"
#include "brisk/step.h"
#include "train/totals.h"

namespace brisk::train {

/// "data set "drives"": how messages call it.
std::string data_set_text(const std::string& data_name);

/// What the step takes under `step`, the data set calls `data`.
struct BoundField {
  std::string step;
  std::string data;
};

class Binding {
 public:
  /// Finds each input and target among the fields of `dataset`; a single target may have another name when the data set
  /// has a single field that is no input. Throws Error [data] naming the data set and its fields.
  Binding(const Dataset& dataset, const std::vector<Field>& inputs, const std::vector<Field>& targets);
  /// Points the feed at the batch. The feed holds until the batch does.
  const Feed& feed(const Batch& batch);

 private:
  std::vector<BoundField> fields_;
  Feed feed_;
};

/// Fields of the data set that are not inputs. Throws Error [data] when there is none, or an input is missing.
std::vector<Field> remaining_fields(const Dataset& dataset, const std::vector<Field>& inputs);

/// What a loss turned out to be when it was traced.
struct TracedLoss {
  Factors factors;             ///< of its terms
  std::vector<Field> targets;  ///< what it compares with, where it says so
};

/// The same loss, which also writes down its factors and targets in `traced`, and names the data set (when `data_name`
/// is given) in the error for a target that does not exist.
LossFunction observed(const LossFunction& loss, std::shared_ptr<TracedLoss> traced, const std::string& data_name,
                      const std::vector<Field>& data_fields);

}  // namespace brisk::train
