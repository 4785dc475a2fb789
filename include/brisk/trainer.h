// brisk/trainer.h: the training loop: a Step with data, evaluation, progress and an event log.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "brisk/callback.h"
#include "brisk/data.h"
#include "brisk/early_stop.h"
#include "brisk/step.h"

namespace brisk {

/// How long to train and what to keep. Fields out of range are refused with Error [option].
struct FitOptions {
  bool drop_last = false;  ///< true: rows that do not fill a micro-batch at an epoch's end are left out
  Duration duration{};     ///< required: epochs, samples or updates; counts from the trainer's start
  EarlyStop early_stop{};  ///< watches the validation set; not set: never
  Duration evaluate_every = Duration(1, Duration::Unit::epochs);  ///< not set: at the end only, where it always is
  Duration log_every{};  ///< a running-loss line; not set: about ten lines an epoch
  int prefetch = 2;      ///< micro-batches read ahead of the step
  bool progress = true;  ///< lines to the program's logger (level info) when it has set one; else to stdout: a bar on
                         ///< a terminal, plain lines otherwise; false: none of them
  std::string run_folder{};  ///< events.jsonl is appended here; empty: no event log
  uint64_t seed = 0;         ///< of the sample order
  bool shuffle = true;       ///< a new order each epoch, pure in (seed, epoch, index)
  /// SIGTERM, SIGINT and SIGUSR1 end the run after the update at hand, without a last evaluation: StopReason::signal.
  /// The program's own handlers come back when fit() ends.
  bool stop_on_signals = false;
  std::string stop_when_file_exists{};  ///< looked for about once a second: StopReason::requested; empty: none
  Duration time_limit{};                ///< a budget in seconds; ends the run, does not bend the schedule
  /// Threads that call Dataset::read ahead of the step; 0: the step's own thread. Not set: as many as this process has
  /// processors (at most 16) for a data set that makes its samples when they are read, none for an InMemoryDataset.
  /// Order, samples and results do not depend on it.
  Count workers{};
};

enum class StopReason : uint8_t { finished, diverged, early_stop, requested, signal, target_reached, time_limit };
BRISK_EXPORT const char* name(StopReason reason);

/// Why fit() ended.
struct FitResult {
  EvaluationReport best{};  ///< the best one of this run, see EvaluationReport::is_best; samples = 0: none was made
  Clock clock{};
  EvaluationResult evaluation{};  ///< the last one, or that of the restored values; samples = 0: none was made
  std::string machine{};          ///< "28 MB, cpu avx512, f32": plan bytes, where it ran, precision
  std::string message{};          ///< what ended it, in words; empty: its duration or its time
  StopReason reason = StopReason::finished;
  int signal = 0;      ///< the signal that ended it; 0: none did
  StepTotals train{};  ///< exact means of the last epoch, or of the part of it that was run
  /// "finished: 2 epochs, 30,000 updates in 9.8 s; validation loss 0.41, accuracy 0.853; 28 MB, cpu avx512, f32"
  BRISK_EXPORT std::string text() const;
  /// 0; 1 after divergence; 128 + the signal's number after a signal (143 after SIGTERM).
  int exit_code() const { return signal > 0 ? 128 + signal : reason == StopReason::diverged ? 1 : 0; }
};

/// A metric over a whole data set, computed on the host: all rows of the output and of the target in the data set's
/// order.
using HostMetric = std::function<double(ConstView output, ConstView target)>;
/// The same for several outputs or targets, by name.
using HostMetricOfMany = std::function<double(const Feed& outputs, const Feed& targets)>;

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

  /// Computed in the plan beside the loss, in training and evaluation. Before the first fit() or evaluate().
  void add_metric(std::string name, MetricFunction metric);
  /// Computed on the host once an evaluation, never in training. Takes the memory of all outputs and targets of the
  /// data set. Before the first fit() or evaluate().
  void add_host_metric(std::string name, HostMetric metric);
  void add_host_metric(std::string name, HostMetricOfMany metric);
  /// Calls back each time the clock passes a multiple of `every`; one that is given while fit() runs joins the next
  /// one.
  void on_update(UpdateCallback callback, UpdateCallbackOptions options = {});
  /// Calls back after each evaluation of fit().
  void on_evaluation(EvaluationCallback callback);

  /// Trains until the duration is reached; a second fit goes on with the same clock. The data set's fields must include
  /// the model's inputs; all others are targets. Throws Error [data] naming a missing field.
  FitResult fit(const Dataset& train, FitOptions options);
  FitResult fit(const Dataset& train, const Dataset& validation, FitOptions options);
  /// Exact sample-weighted means over a data set, dropout off, running statistics used.
  EvaluationResult evaluate(const Dataset& data);
  /// What the model makes of all samples, [samples, ...] in the data set's order: its only output, or the one of that
  /// name. Targets are not needed. Each call makes a Predictor; a program that asks often keeps one of its own.
  Tensor predict(const Dataset& data, std::string_view output = {});

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
