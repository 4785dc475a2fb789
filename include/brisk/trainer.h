// brisk/trainer.h: the training loop: a Step with data, evaluation, progress and an event log.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "brisk/data.h"
#include "brisk/step.h"

namespace brisk {

/// How long to train and what to keep. Fields out of range are refused with Error [option].
struct FitOptions {
  bool drop_last = false;  ///< true: rows that do not fill a micro-batch at an epoch's end are left out
  Duration duration{};     ///< required: epochs, samples or updates; counts from the trainer's start
  Duration evaluate_every = Duration(1, Duration::Unit::epochs);  ///< not set: at the end only, where it always is
  Duration log_every{};      ///< a running-loss line; not set: about ten lines an epoch
  int prefetch = 2;          ///< micro-batches read ahead of the step
  bool progress = true;      ///< a bar on a terminal, plain lines otherwise; false: neither
  std::string run_folder{};  ///< events.jsonl is appended here; empty: no event log
  uint64_t seed = 0;         ///< of the sample order
  bool shuffle = true;       ///< a new order each epoch, pure in (seed, epoch, index)
  Duration time_limit{};     ///< a budget in seconds; ends the run, does not bend the schedule
  /// Threads that call Dataset::read ahead of the step; 0: the step's own thread. Not set: as many as this process has
  /// processors (at most 16) for a data set that makes its samples when they are read, none for an InMemoryDataset.
  /// Order, samples and results do not depend on it.
  Count workers{};
};

enum class StopReason : uint8_t { finished, diverged, time_limit };
BRISK_EXPORT const char* name(StopReason reason);

/// What evaluate() or the end of fit() found: exact means over all samples.
struct EvaluationResult {
  double loss = 0;
  std::vector<NamedMean> metrics{};
  int64_t samples = 0;
  std::vector<NamedMean> terms{};
  /// Throws Error [option] that lists the names it has. "loss" is one of them.
  BRISK_EXPORT double metric(const std::string& name) const;
};

/// Why fit() ended.
struct FitResult {
  Clock clock{};
  EvaluationResult evaluation{};  ///< the last one; samples = 0: none was made
  std::string machine{};          ///< "28 MB, cpu avx512, f32": plan bytes, where it ran, precision
  std::string message{};          ///< of the error that ended it; empty: none did
  StopReason reason = StopReason::finished;
  StepTotals train{};  ///< exact means of the last epoch, or of the part of it that was run
  /// "finished: 2 epochs, 30,000 updates in 9.8 s; validation loss 0.41, accuracy 0.853; 28 MB, cpu avx512, f32"
  BRISK_EXPORT std::string text() const;
  /// 0; 1 after divergence.
  int exit_code() const { return reason == StopReason::diverged ? 1 : 0; }
};

/// A running-loss report: also what a line in the event log holds.
struct UpdateReport {
  Clock clock{};
  double gradient_norm = 0;
  double learning_rate = 0;
  double loss = 0;  ///< mean since the last report
  std::vector<NamedMean> metrics{};
  double samples_per_s = 0;
  std::vector<NamedMean> terms{};
};

/// Where the time of the last fit() went. A data_wait_s near 0: the step is the brake, and more workers gain nothing.
struct FitStatistics {
  double data_wait_s = 0;   ///< the step waited for training samples, or read them itself (workers = 0)
  double evaluation_s = 0;  ///< in evaluations
  double seconds = 0;       ///< of the whole run
  int64_t workers = 0;      ///< threads that read ahead
  /// How many times as fast training would have been with its data always ready: the most that more workers can gain.
  double most_gain() const {
    const double training_s = seconds - evaluation_s;
    return training_s > data_wait_s ? training_s / (training_s - data_wait_s) : 1;
  }
};

/// A model with its loss, optimizer and loop. Moves, does not copy.
class BRISK_EXPORT Trainer {
 public:
  /// Compiles the step now when the loss tells its targets, otherwise at the first fit() or evaluate().
  Trainer(Model& model, LossFunction loss, Optimizer optimizer, StepOptions options = {});
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  /// Computed in the plan beside the loss, in training and evaluation. Before the first fit.
  void add_metric(std::string name, MetricFunction metric);
  /// Called in fit()'s thread after each running-loss line's worth of updates (FitOptions.log_every).
  void on_report(std::function<void(const UpdateReport&)> callback);

  /// Trains until the duration is reached; a second fit goes on with the same clock. The data set's fields must include
  /// the model's inputs; all others are targets. Throws Error [data] naming a missing field.
  FitResult fit(const Dataset& train, FitOptions options);
  FitResult fit(const Dataset& train, const Dataset& validation, FitOptions options);
  /// Exact sample-weighted means over a data set, dropout off, running statistics used.
  EvaluationResult evaluate(const Dataset& data);

  /// Parameters, decay, batch, precision, plan bytes.
  std::string summary() const;
  Clock clock() const;
  /// Of the last fit(); of the running one when a callback asks.
  FitStatistics statistics() const;

  class Impl;

 private:
  std::unique_ptr<Impl> impl_;
};

struct PictureOptions {
  int columns = 72;
  int rows = 16;
};
/// The losses of the newest run in <run_folder>/events.jsonl as characters. Throws Error [file] when it cannot be read.
BRISK_EXPORT std::string loss_picture(const std::string& run_folder, PictureOptions options = {});
/// The same as <run_folder>/loss.svg, a file that needs no other; returns its path.
BRISK_EXPORT std::string write_loss_svg(const std::string& run_folder);

}  // namespace brisk
