// One run of fit(): micro-batches, windows, reports, evaluations, and why it ended.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>

#include "brisk/trainer.h"
#include "data/batcher.h"
#include "train/binding.h"
#include "train/early_stop.h"
#include "train/epoch_plan.h"
#include "train/event_log.h"
#include "train/host_metrics.h"
#include "train/progress.h"
#include "train/step_access.h"
#include "train/stop_signals.h"
#include "train/totals.h"

namespace brisk::train {

/// What outlives a run: the next fit() goes on from here.
struct TrainerState {
  Clock clock{};
  int64_t data_samples = 0;  ///< of the data set that `position` refers to
  Position position{};
  FitStatistics statistics{};  ///< of the last run
};

/// Seconds since it was made.
class Stopwatch {
 public:
  Stopwatch();
  double seconds() const;

 private:
  int64_t start_ns_;
};

/// A data set and how its fields reach the step.
struct BoundData {
  const Dataset* dataset = nullptr;
  Binding binding;
};

/// While it lives, the step's errors name a row by its sample: `sample 17 of "train"`.
class RowNames {
 public:
  RowNames(Step& step, const Dataset& dataset);
  ~RowNames();
  RowNames(const RowNames&) = delete;
  RowNames& operator=(const RowNames&) = delete;
  /// Before each batch that the step is fed with.
  void look_at(const Batch* batch);

 private:
  static constexpr int64_t kKept = 4;  // errors come late
  Step& step_;
  std::array<std::vector<int64_t>, kKept> samples_;
  int64_t looks_ = 0;
  DescribeRow previous_;
};

/// How a data set is read when a program asks for so many workers.
data::BatcherOptions reading_options(const Dataset& dataset, const Count& workers);

/// Exact means over all samples of a data set, and the host's metrics of them.
EvaluationResult evaluate_all(Step& step, BoundData& data, const HostMetrics& host_metrics, const Count& workers);

/// What the program wants to be told.
struct Callbacks {
  std::vector<EvaluationCallback> evaluation;
  std::vector<std::pair<UpdateCallback, UpdateCallbackOptions>> update;
};

class FitLoop {
 public:
  /// What a run works with; all of it outlives the loop.
  struct Parts {
    Step* step = nullptr;
    TrainerState* state = nullptr;
    BoundData* train = nullptr;
    BoundData* validation = nullptr;  ///< null: none
    const Factors* factors = nullptr;
    const HostMetrics* host_metrics = nullptr;
    Model* model = nullptr;
    Callbacks callbacks{};
    RunFacts facts{};
  };
  /// Checks the options against the data.
  FitLoop(Parts parts, const FitOptions& options);
  FitResult run();

 private:
  /// Training since a report.
  struct Interval {
    double begin_s = 0;  // in training_seconds()
    StepTotals totals;
  };
  struct Listener {
    UpdateCallback call;
    Trigger trigger;
    Interval interval;
  };
  /// A report that is due: it is made when the step has reported an update, and told between two windows.
  struct Due {
    Listener* listener;  // null: the line, the event and the bar
    UpdateReport report;
  };
  void begin();
  void train();
  bool ends_early();
  bool asked_to_end();
  void announce_window(data::Batcher& batcher, RowNames& names);
  void micro_batch(data::Batcher& batcher, RowNames& names);
  void end_epoch(data::Batcher& batcher);
  void after_update();
  void follow_reports();
  void take_reports();
  void tell();
  void read();
  UpdateReport take(Interval& interval, const Clock& clock);
  void report_rest();
  void tell_line(const UpdateReport& report);
  void evaluate();
  void keep_best(const EvaluationReport& report);
  void close_window();
  void finish();
  void update_clock();
  double elapsed() const { return watch_.seconds(); }
  double training_seconds() const { return elapsed() - paused_seconds_; }
  Position reported_position() const;
  Clock reported_clock() const;
  ProgressState progress_state(const Clock& clock) const;

  Parts parts_;
  const FitOptions options_;
  const EpochShape shape_;
  const Start start_;
  const Horizon horizon_;
  Stopwatch watch_;
  const double seconds_before_;
  Trigger evaluate_trigger_;
  Trigger log_trigger_;
  EventLog events_;
  Progress progress_;
  FitResult result_;
  BestSoFar best_;
  std::vector<std::pair<std::string, Tensor>> best_parameters_;
  Control control_;
  const StopSignals signals_;
  std::vector<Listener> listeners_;
  std::vector<Due> due_;
  StepTotals epoch_totals_;  // of the current epoch
  Interval report_;          // of the line, the event and the bar
  std::string values_;       // of the last report, for the bar
  double samples_per_s_ = 0;
  double paused_seconds_ = 0;  // spent in evaluation and callbacks
  double next_file_look_ = 0;  // in elapsed()
  int64_t done_micro_batches_ = 0;
  int64_t window_micro_batches_ = 0;  // of the open window
  int64_t counted_micro_batches_;     // of the step, as far as `position` counts them
  int64_t evaluated_updates_ = -1;
  bool stepping_ = false;     // what throws while it is false is no divergence of this run
  bool counts_terms_ = true;  // until the step says that no term has a count of its own
  const WindowReports reports_;
};

}  // namespace brisk::train
