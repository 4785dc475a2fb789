// Step, inside: the program it compiles, its plans, its arenas, the open window, and the sums since the last read.
#pragma once

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "brisk/step.h"
#include "exec/compiled_plan.h"
#include "exec/device_arena.h"
#include "exec/store.h"
#include "graph/model_state.h"
#include "graph/trace.h"

namespace brisk {

class Step::Impl {
 public:
  Impl(Model& model, const LossFunction& loss, Optimizer optimizer, const StepOptions& options);
  Impl(const Objective& objective, const Inputs& inputs, Optimizer optimizer, const StepOptions& options);
  ~Impl();

  void add_metric(const std::string& name, const MetricFunction& metric);
  /// From now on each evaluation gives the model's outputs. Before the first plan or run.
  std::vector<Field> keep_outputs();
  /// Says what the next run, evaluate or count reads; throws Error [data] for wrong names, shapes or dtypes.
  void feed(const Feed& feed);
  void feed(const ConstView& input, const ConstView& target);
  void feed(int64_t rows);
  enum class Close : uint8_t { when_full, never };
  void run(Close close);
  void close_window();
  void flush();
  void expect(const std::vector<std::pair<std::string, double>>& counts);
  /// outputs: where the model's outputs go, row-major, when keep_outputs() asked for them.
  void evaluate(void* const* outputs = nullptr);
  /// Sums over the feed of each counted term's row weights (labels are looked at, nothing is trained).
  std::vector<std::pair<std::string, double>> count();
  /// Of all runs.
  StepTotals read();
  StepTotals read_evaluation();
  /// Of the runs whose reports have been taken; on a device that runs ahead, run() takes that of the run two before.
  StepTotals read_reported();
  /// Waits for the reports of all runs; throws what one met.
  void take_reports();
  /// The same, whatever they met.
  void forget_reports() noexcept;
  /// Micro-batches of training so far, and how many of them have not been reported.
  int64_t micro_batches() const { return micro_batches_; }
  int64_t unreported_micro_batches() const;
  /// Updates, if all that have not been reported succeed.
  int64_t expected_updates() const;
  Plan plan(int64_t batch, const std::string& target = {});
  int64_t largest_batch(const LargestBatchOptions& options);
  void prepare();
  Tensor gradient(std::string_view name);
  void set_gradient(std::string_view name, const ConstView& value);

  /// Gives open lengths of the schedule their number; the trainer knows the run.
  void resolve_schedule(int64_t updates_per_epoch, int64_t samples_per_update, int64_t total_updates);
  /// Throws Error [data] naming the layer when a training batch of this many rows cannot be normalised.
  void check_batch(int64_t rows);
  /// Terms whose mean divides by a count of its own, and whether the user asked for that count.
  struct CountedTerm {
    std::string name;
    bool explicit_count = false;
  };
  std::vector<CountedTerm> counted_terms();
  std::vector<Field> fields() const { return fields_; }  ///< of the feed: inputs, then targets
  Clock clock() const;
  /// What the arenas hold at this moment: equals plan().bytes().total after prepare().
  int64_t held_bytes() const;
  std::string target_name() const { return target_->name(); }

  int64_t batch = 0;
  int64_t accumulate = 1;
  double clip_norm = 0;
  Precision precision = Precision::f32;  ///< what automatic has become
  int threads = 1;
  Optimizer optimizer;
  Step::Counters counters() const;
  /// How messages name a row of a feed (0: the last one, 1: the one before); the trainer says which sample of which
  /// data set it is.
  std::function<std::string(int64_t row, int64_t feeds_ago)> describe_row;
  /// Called when the report of a window's end has been taken, its sums, clock and counts included.
  std::function<void()> window_reported;
  const std::vector<std::shared_ptr<ModelState>>& models() const { return models_; }

 private:
  struct Term {
    std::string name;
    double factor = 1;
    bool counted = false;
    bool explicit_count = false;
    int64_t rows = 1;  ///< rows of a sample
    Where where;
  };
  struct Sums {
    std::vector<double> sum, count;  // by Graph::totals index of the training program: terms, then metrics
    int64_t samples = 0;
  };
  /// Parameters trained since the same update, and where their scalars are.
  struct Cohort {
    int64_t started = 0;
    int32_t first = -1, bias1 = -1, bias2 = -1;
  };
  struct PlanEntry {
    graph::Phase phase;
    int64_t samples;
    bool seeds_from_host;
    std::shared_ptr<const exec::CompiledPlan> plan;
    std::unique_ptr<backend::Program> program;
    uint64_t used = 0;
    int64_t shadows_of = -1;          // values_epoch_ whose shadows it has read
    std::vector<size_t> writes;       // models whose values it changes
    std::vector<float> schedule;      // see Bindings::schedule; empty: the host writes each run's scalars
    int64_t scheduled = 0;            // updates below are in it
    std::vector<int32_t> seed_slots;  // scalar of each term, or -1
    std::vector<Cohort> cohorts;
    int32_t rate = -1, ratio = -1;
  };
  struct Window {
    int64_t micro_batches = 0;
    int64_t samples = 0;
    double expected_samples = 0;
    bool seeds_from_host = true;
    std::vector<double> expected;  // by term
    std::vector<double> count;     // by term, as far as reported
  };
  /// A run whose report has not been taken.
  struct Pending {
    PlanEntry* entry = nullptr;
    int64_t attempt = 0;  // window that it belongs to
    int64_t feed = 0;     // number of the feed that it read
    int64_t rows = 0;     // 0: an update alone
    bool updates = false;
  };
  static constexpr int kInFlight = 2;

  void begin(Optimizer made, const StepOptions& options);
  void keep(const Mean& objective);
  void seal();
  void bind(PlanEntry& entry);
  /// target: another device than the step's.
  std::shared_ptr<const exec::CompiledPlan> make_plan(graph::Phase phase, int64_t samples, bool seeds_from_host,
                                                      std::shared_ptr<const backend::Target> target = nullptr);
  PlanEntry& entry_for(graph::Phase phase, int64_t samples, bool seeds_from_host);
  PlanEntry& add_entry(std::shared_ptr<const exec::CompiledPlan> plan);
  [[noreturn]] void refuse_call(const char* call, const char* suits) const;
  void check_fed(size_t field, const ConstView& view);
  int64_t rows_of_feed();
  void open_window(int64_t rows);
  void write_seeds(PlanEntry& entry);
  void write_update_scalars(PlanEntry& entry);
  void write_scalars_of(const PlanEntry& entry, int64_t update, float* scalars) const;
  void fill_schedule(PlanEntry& entry);
  void bring_values(PlanEntry& entry);
  void check_counts();
  void launch(PlanEntry& entry, backend::StepList list, bool accumulates, int64_t rows, void* const* outputs = nullptr);
  void take();
  void take_late();
  const Pending& pending(int index) const;
  void take_totals(const Pending& run, const double* totals);
  void finish_update(const Pending& run, const backend::Report& report);
  void skip_update(const Pending& run, const backend::Report& report);
  void end_window();
  [[noreturn]] void raise(const Pending& run, const backend::Fault& fault);
  void mark_trained();
  void take_memory();
  void give_memory();
  void take_state(const graph::Graph& plan);
  void bind_parameters();
  void bind_slots();
  bool grow(const graph::Graph& plan);
  void follow_freeze();
  void keep_moments(const exec::TrainedLayout& before, const exec::DeviceArena& moments);
  std::vector<int64_t> freeze_versions() const;
  graph::Segment& segment_of(const graph::ParameterRef& parameter) const;
  int64_t plans_made_ = 0;
  StepTotals report(Sums& sums) const;
  size_t find_parameter(std::string_view name) const;

  std::shared_ptr<graph::Tracer> tracer_;                  // until sealed
  Vars outputs_, targets_;                                 // until sealed
  std::vector<Mean::Term> traced_terms_, traced_metrics_;  // until sealed
  std::vector<std::string> metric_names_;
  bool keeps_outputs_ = false;
  std::vector<Field> fields_;
  std::vector<Model*> update_;
  std::vector<std::shared_ptr<ModelState>> update_states_;

  std::vector<std::shared_ptr<ModelState>> models_;
  std::vector<int64_t> freeze_versions_;
  graph::Graph program_;
  std::vector<Term> terms_;
  std::vector<passes::ParameterRule> rules_;
  exec::TrainedLayout layout_;
  Schedule schedule_;

  Device device_;
  const backend::Backend* backend_ = nullptr;  // of the device, from prepare() on: plans do without one
  std::shared_ptr<const backend::Target> target_;
  int in_flight_ = 0;  // runs that may be unreported when a call returns
  std::unique_ptr<backend::Runtime> runtime_;
  exec::DeviceArena activations_, gradients_, moments_, shadows_, staged_, state_;
  exec::SlotLayout shadow_layout_, staged_layout_;
  std::vector<exec::Store*> stores_;    // of models_
  std::vector<int64_t> seen_versions_;  // of each store's values
  int64_t values_epoch_ = 0;            // changes when others than this step's updates have changed values
  std::vector<float> scalars_;
  backend::Bindings bindings_;
  std::vector<std::unique_ptr<PlanEntry>> entries_;
  uint64_t uses_ = 0;
  std::vector<const void*> input_pointers_;  // by field; what was fed last
  std::vector<int64_t> input_rows_;
  int64_t rows_without_inputs_ = 0;
  int64_t feeds_ = 0;
  std::array<Pending, kInFlight + 1> pending_{};  // a ring
  int first_pending_ = 0, pending_count_ = 0;
  int64_t micro_batches_ = 0;
  int64_t failed_attempt_ = -1;  // window that has met an error

  Window window_;
  std::vector<std::pair<std::string, double>> told_;
  Sums train_, evaluation_;                              // as far as reported
  int64_t evaluation_samples_ = 0;                       // since the last read, reported or not
  std::vector<std::pair<std::string, double>> counted_;  // of the last count()
  int64_t updates_ = 0, attempts_ = 0, samples_ = 0;
  LossScale loss_scale_;
  float scale_ = 1;           // that the next update's gradient carries, as far as reported
  float gradient_scale_ = 1;  // that the gradients carry which lie in the arena
  int64_t skipped_ = 0;
  int64_t ended_attempts_ = 0;  // windows that have ended, as far as reported
  double gradient_norm_ = 0, rate_ = 0;
  std::chrono::steady_clock::time_point started_{};
};

}  // namespace brisk
