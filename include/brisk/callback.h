// brisk/callback.h: what fit() tells the program while it runs, and what the program may ask of it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "brisk/schedule.h"
#include "brisk/step.h"

namespace brisk {

/// What evaluate() or an evaluation of fit() found: exact means over all samples.
struct EvaluationResult {
  double loss = 0;
  std::vector<NamedMean> metrics{};  ///< those of the plan, then those of the host (each a value with count 1)
  int64_t samples = 0;
  std::vector<NamedMean> terms{};
  /// "loss", a metric, or "loss.<term>". Throws Error [option] that lists the names it has.
  BRISK_EXPORT double metric(const std::string& name) const;
};

/// One evaluation of fit().
struct EvaluationReport : EvaluationResult {
  Clock clock{};
  bool is_best =
      false;  ///< better than all before it in this fit() by FitOptions.early_stop.monitor, by default the loss
};

/// Training since the last report of the same kind.
struct UpdateReport {
  Clock clock{};
  double gradient_norm = 0;  ///< of the last update
  double learning_rate = 0;  ///< of the last update
  double loss = 0;           ///< exact mean over `samples`, as metrics and terms are
  double loss_scale = 1;     ///< of the next update; 1 but in Precision::fp16
  std::vector<NamedMean> metrics{};
  int64_t samples = 0;
  double samples_per_s = 0;  ///< evaluations and other callbacks' time left out
  int64_t skipped = 0;       ///< updates skipped since the trainer's start (fp16)
  std::vector<NamedMean> terms{};
};

/// What a callback may ask fit() for; it is done once all callbacks of this update have been called.
class BRISK_EXPORT Control {
 public:
  explicit Control(bool has_validation) : has_validation_(has_validation) {}
  /// Ends fit() after this update: StopReason::requested, FitResult.message = message. The first message stays.
  void stop(std::string message = {});
  /// Evaluates at the end of this update, or of the next one when an evaluation's callback asks. Throws Error [state]
  /// when fit() has no validation data set.
  void evaluate();

  bool stopped() const { return stopped_; }
  const std::string& message() const { return message_; }
  /// Whether evaluate() was called since this was last asked.
  bool take_evaluation() { return std::exchange(evaluates_, false); }

 private:
  bool evaluates_ = false;
  bool has_validation_;
  std::string message_;
  bool stopped_ = false;
};

/// Both are called in fit()'s own thread, between two windows, in the order in which they were given to the Trainer.
/// What they throw leaves fit() as it is; trainer and model can be used on. They may read and set parameters and
/// evaluate, but not fit. On a GPU, which runs ahead of the host, update callbacks come late: each report in order,
/// with the sums and the clock of its own update, while the parameters are up to two runs further on. Evaluations are
/// made at their update and wait for it.
using UpdateCallback = std::function<void(const UpdateReport&, Control&)>;
using EvaluationCallback = std::function<void(const EvaluationReport&, Control&)>;

struct UpdateCallbackOptions {
  Duration every = Duration(1, Duration::Unit::updates);  ///< multiples of it on the trainer's clock
};

}  // namespace brisk
