// What the evaluations of a run say about when to end it, and which of them was the best.
#pragma once

#include <string>

#include "brisk/trainer.h"

namespace brisk::train {

/// Throws Error [option] for fields that are missing or out of range.
void check_early_stop(const EarlyStop& options, bool has_validation);

/// Follows one value over the evaluations of a run: that of EarlyStop::monitor, or the loss when it is not set.
class BestSoFar {
 public:
  explicit BestSoFar(const EarlyStop& options);
  const Monitor& monitor() const { return monitor_; }
  /// Takes the next evaluation's value. Whether it is the best so far.
  bool take(double value);
  /// early_stop or target_reached once the run should end, else finished.
  StopReason reason() const { return reason_; }
  /// "accuracy 0.934 not beaten for 5 evaluations"
  std::string text() const;

 private:
  const EarlyStop options_;
  const Monitor monitor_;
  double best_;
  int taken_ = 0;
  int since_best_ = 0;  // evaluations in a row
  StopReason reason_ = StopReason::finished;
};

}  // namespace brisk::train
