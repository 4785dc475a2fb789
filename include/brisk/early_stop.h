// brisk/early_stop.h: which value of the validation set to watch, and when to give up.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "brisk/export.h"

namespace brisk {

/// A value of the evaluations and which direction is better: highest("accuracy"), lowest("loss").
class BRISK_EXPORT Monitor {
 public:
  Monitor() = default;  ///< not set
  bool set() const { return !name_.empty(); }
  /// "loss", a metric, or "loss.<term>".
  const std::string& name() const { return name_; }
  /// Whether `value` is better than `other` by more than `by`. NaN is never better; anything is better than NaN.
  bool better(double value, double other, double by = 0) const;
  /// Whether `value` is as good as `target` or better.
  bool reaches(double value, double target) const { return higher_ ? value >= target : value <= target; }
  /// The opposite of the best value.
  double worst() const;
  friend BRISK_EXPORT Monitor highest(std::string name);
  friend BRISK_EXPORT Monitor lowest(std::string name);

 private:
  Monitor(std::string name, bool higher) : higher_(higher), name_(std::move(name)) {}
  bool higher_ = false;
  std::string name_;
};
BRISK_EXPORT Monitor highest(std::string name);
BRISK_EXPORT Monitor lowest(std::string name);

/// Ends fit() when a value of the validation set gets better no more, or good enough.
struct EarlyStop {
  double min_delta = 0;  ///< >= 0: a value is better only by more than this
  Monitor monitor{};     ///< required
  int patience = 0;      ///< required, >= 1: so many evaluations in a row without a better one stop the run
  /// fit() ends with the parameters and running statistics of its best evaluation, whatever ended it. They are kept in
  /// memory, once the model's size. The optimizer's moments stay where they are.
  bool restore_best = false;
  std::optional<double> target{};  ///< a value this good ends the run: StopReason::target_reached
  int warmup = 0;                  ///< the first evaluations, which count neither as better nor as worse
};

}  // namespace brisk
