// brisk/step.h: the compiled training step, for loops of your own.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "brisk/feed.h"
#include "brisk/loss.h"
#include "brisk/model.h"
#include "brisk/optimizer.h"
#include "brisk/plan.h"
#include "brisk/precision.h"
#include "brisk/schedule.h"
#include "brisk/tensor.h"

namespace brisk {

/// A count that may be unset.
class Count {
 public:
  constexpr Count() = default;
  constexpr Count(int64_t value) : value_(value), set_(true) {}  // NOLINT: a number is a count
  constexpr bool set() const { return set_; }
  constexpr int64_t value() const { return value_; }
  constexpr int64_t value_or(int64_t other) const { return set_ ? value_ : other; }

 private:
  int64_t value_ = 0;
  bool set_ = false;
};

/// What is compiled. Fields that are out of range are refused with Error [option] at construction.
struct StepOptions {
  Count accumulate{};  ///< micro-batches of a window (one update); with batch and global_batch: any two give the third
  Count batch{};       ///< samples of a micro-batch; none of the three set: batch 32, accumulate 1
  /// Largest norm of an update's gradient over all trained parameters; a longer one is scaled down to it (PyTorch's
  /// clip_grad_norm_). 0: off. StepTotals::gradient_norm is the norm before.
  double clip_norm = 0;
  /// Where the step runs; needed from prepare() on, plans are made without it. A GPU works on while run() returns: what
  /// a run did is known up to two runs later.
  Device device = cpu();
  Count global_batch{};    ///< samples of an update = batch x accumulate
  LossScale loss_scale{};  ///< of Precision::fp16
  Precision precision = Precision::f32;
  std::vector<Field> targets{};  ///< of a loss of the user's own; built-in losses infer theirs
  int threads = 0;               ///< 0: as many as this process is allowed
  /// The models that change; empty: all that the objective calls. No gradient is made or kept for the others, and
  /// nothing of theirs changes; they compute as in training (batch statistics, dropout) unless frozen.
  std::vector<Model*> update{};
};

/// A mean since the last read: its sum and its count.
struct NamedMean {
  std::string name{};
  double sum = 0;
  double count = 0;
  double value() const { return count > 0 ? sum / count : 0; }
};

/// Exact sums since the last read, over all runs up to it.
struct StepTotals {
  Clock clock{};
  double gradient_norm = 0;  ///< of the last update
  double learning_rate = 0;  ///< of the last update (of the next one when there was none)
  double loss = 0;           ///< sum over terms of factor x mean
  double loss_scale = 1;     ///< of the next update; 1 but in Precision::fp16
  std::vector<NamedMean> metrics{};
  int64_t samples = 0;  ///< since the last read
  int64_t skipped = 0;  ///< updates skipped since the step's start, whose gradients were not finite (fp16)
  std::vector<NamedMean> terms{};
};

struct LargestBatchOptions {
  int64_t budget_bytes = 0;  ///< 0: what the machine has available now
};

/// An objective of the user's own over named inputs; it may call several models.
using Objective = std::function<Mean(const Vars&)>;

/// A compiled step. Moves, does not copy; shares the models' state: moving or destroying the Model object first is
/// safe.
class BRISK_EXPORT Step {
 public:
  /// Throws Error [option], [shape] or [schedule]; allocates nothing of the plan's size (see prepare()).
  Step(Model& model, LossFunction loss, Optimizer optimizer, StepOptions options = {});
  Step(Objective objective, Inputs inputs, Optimizer optimizer, StepOptions options = {});
  Step(Step&&) noexcept;
  Step& operator=(Step&&) noexcept;
  ~Step();

  /// One metric more, computed in the plan on the model's outputs and targets. Before the first run.
  void add_metric(std::string name, MetricFunction metric);

  /// One micro-batch: at most `batch` rows (fewer: exact, with a plan of its own). Updates at the end of a window.
  /// Views may be reused when it returns. Throws Error [data] for wrong names, shapes, dtypes, bad labels; [numeric]
  /// for a gradient that is not finite (the update is skipped, parameters untouched; in fp16 only when it is the last
  /// of LossScale::maximum_skips in a row); [memory] when it does not fit.
  /// On a GPU, [data] of labels and [numeric] may be those of one of the two runs before, as the message says; the rows
  /// of this call are taken in any case.
  void run(const ConstView& input, const ConstView& target);
  void run(const Feed& feed);
  /// The same for an objective without inputs, which makes its values from random_normal() and the like. Throws Error
  /// [data] when the step has inputs.
  void run(int64_t rows);
  /// Closes an open window with an update; nothing when none is open.
  void flush();
  /// Says how many samples, and rows that count, the next window has: {{"samples", 200}, {"lane", 120}}. Needed before
  /// the first micro-batch of a window with accumulate > 1 when a term has a count of its own (ignore_index, class
  /// weights).
  void expect(const std::vector<std::pair<std::string, double>>& counts);
  /// The parts of run(): gradients without an update; then an update.
  void forward_backward(const ConstView& input, const ConstView& target);
  void forward_backward(const Feed& feed);
  void update();
  /// Gradient of a parameter in PyTorch's layout: of the window so far, without the loss scale. Throws Error [state]
  /// for an unknown name.
  Tensor gradient(std::string_view parameter) const;
  void set_gradient(std::string_view parameter, const ConstView& value);

  /// Exact means since the last read; starts anew.
  StepTotals read();
  /// Loss and metrics over rows without training: dropout off, running statistics used. Any number of rows per call up
  /// to `batch`; sums go to read_evaluation(). Harmless inside a window.
  void evaluate(const Feed& feed);
  StepTotals read_evaluation();

  /// The plan of a training micro-batch of `batch` rows (0: StepOptions.batch): pure arithmetic. target: a device by
  /// the name of its kind, for example "h200", that need not be in the machine; empty: the step's own. Throws Error
  /// [option] listing the names for one that is not known, Error [backend] for an operation that the device has no
  /// kernel of.
  Plan plan(int64_t batch = 0, const std::string& target = {}) const;
  /// The largest micro-batch whose plan fits the budget; 0 when not even one row does.
  int64_t largest_batch(LargestBatchOptions options = {}) const;
  /// Allocates exactly plan().bytes(), or throws Error [memory] before it touches memory. run() does it at its first
  /// call.
  void prepare();

  /// What is known of the runs so far (on a GPU not yet of the last two; after read() of all).
  Clock clock() const;
  int64_t batch() const;
  int64_t accumulate() const;
  int threads() const;
  /// Pool entries, plans made and heap allocations of optional libraries so far: for tests and benchmarks.
  struct Counters {
    int64_t pool_entries = 0;
    int64_t plans = 0;
  };
  Counters counters() const;

  class Impl;
  Impl& impl() const { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace brisk
