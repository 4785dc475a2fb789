// Step::Impl, first half: from options, models and losses to a program and its plans.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "core/log.h"
#include "core/machine.h"
#include "core/text.h"
#include "exec/devices.h"
#include "exec/step_impl.h"
#include "graph/op_table.h"
#include "optim/rules.h"
#include "optim/schedule_body.h"

namespace brisk {

using graph::Access;
using graph::Phase;

namespace {

constexpr int64_t kMaximumCount = int64_t{1} << 31;  // a sample's index in the window is a 32-bit RNG counter word

[[noreturn]] void refuse(const char* field, int64_t value, const std::string& why) {
  throw Error(ErrorCode::option, cat("StepOptions.", field, " = ", value), why);
}

void check_at_least_one(const char* field, const Count& count, const char* meaning) {
  if (!count.set()) return;
  if (count.value() < 1) refuse(field, count.value(), cat("must be at least 1; it is ", meaning));
  if (count.value() > kMaximumCount) refuse(field, count.value(), cat("must be at most ", grouped(kMaximumCount)));
}

/// Any two of batch, accumulate and global_batch give the third.
std::pair<int64_t, int64_t> batch_and_accumulate(const StepOptions& options) {
  check_at_least_one("batch", options.batch, "the micro-batch of one rank, for example .batch = 64");
  check_at_least_one("accumulate", options.accumulate,
                     "the number of micro-batches of an update, for example .accumulate = 1");
  check_at_least_one("global_batch", options.global_batch,
                     "the number of samples of an update, for example .global_batch = 256");
  if (!options.global_batch.set()) return {options.batch.value_or(32), options.accumulate.value_or(1)};
  const int64_t global = options.global_batch.value();
  const bool by_batch = options.batch.set();
  const int64_t part = by_batch ? options.batch.value() : options.accumulate.value_or(1);
  if (global % part != 0) {
    const int64_t below = global / part * part;
    const std::string nearest = below > 0 ? cat(below, " or ", below + part) : cat(part);
    refuse("global_batch", global,
           cat("must be a multiple of ", by_batch ? "batch " : "accumulate ", part, " x ranks 1; nearest ", nearest));
  }
  const int64_t other = global / part;
  if (by_batch && options.accumulate.set() && options.accumulate.value() != other)
    refuse("global_batch", global,
           cat("contradicts batch ", part, " x accumulate ", options.accumulate.value(), " = ",
               part * options.accumulate.value(), "; leave one of the three out"));
  return by_batch ? std::pair(part, other) : std::pair(other, part);
}

void check_loss_scale(const LossScale& scale) {
  const auto want = [](const char* field, auto value, bool right, const char* range) {
    if (!right) throw Error(ErrorCode::option, cat("StepOptions.loss_scale.", field, " = ", value), range);
  };
  constexpr double kLeast = std::numeric_limits<float>::min(), kMost = std::numeric_limits<float>::max();
  want("backoff", scale.backoff, scale.backoff > 0 && scale.backoff < 1,
       "must be above 0 and below 1, for example 0.5");
  want("growth", scale.growth, scale.growth >= 1 && scale.growth <= kMost,
       "must be from 1 (constant) to 3.4e38, for example 2");
  want("growth_interval", scale.growth_interval, scale.growth_interval >= 1,
       "must be at least 1; it counts updates, for example 2000");
  want("maximum", scale.maximum, scale.maximum >= kLeast && scale.maximum <= kMost,
       "must be finite as an f32 and above 1.2e-38, for example 16777216");
  want("minimum", scale.minimum, scale.minimum >= kLeast && scale.minimum <= scale.maximum,
       "must be above 1.2e-38 and at most .maximum, for example 1");
  want("initial", scale.initial, scale.initial >= scale.minimum && scale.initial <= scale.maximum,
       "must be from .minimum to .maximum, for example 65536");
  want("maximum_skips", scale.maximum_skips, scale.maximum_skips >= 1, "must be at least 1, for example 50");
}

}  // namespace

Step::Impl::Impl(Model& model, const LossFunction& loss, Optimizer made, const StepOptions& options) {
  begin(std::move(made), options);
  Mean objective;
  {
    const graph::TraceGuard guard(tracer_);
    const Vars inputs = graph::declare_inputs(tracer_, model.inputs());
    outputs_ = graph::inline_model(tracer_, model.state(), inputs);
    std::vector<Field> targets = options.targets;
    if (targets.empty() && loss.infer_targets()) targets = loss.infer_targets()(outputs_);
    if (targets.empty())
      throw Error(ErrorCode::option, "StepOptions.targets",
                  "a loss of your own does not say what it compares with; for example .targets = {{\"target\", {1}}}");
    targets_ = graph::declare_inputs(tracer_, targets);
    fields_ = model.inputs();
    fields_.insert(fields_.end(), targets.begin(), targets.end());
    objective = loss(outputs_, targets_);
  }
  keep(objective);
}

Step::Impl::Impl(const Objective& function, const Inputs& inputs, Optimizer made, const StepOptions& options) {
  begin(std::move(made), options);
  Mean objective;
  {
    const graph::TraceGuard guard(tracer_);
    targets_ = graph::declare_inputs(tracer_, inputs.fields());
    fields_ = inputs.fields();
    objective = function(targets_);
  }
  keep(objective);
}

Step::Impl::~Impl() { forget_reports(); }

void Step::Impl::begin(Optimizer made, const StepOptions& options) {
  std::tie(batch, accumulate) = batch_and_accumulate(options);
  if (batch > kMaximumCount / accumulate)
    refuse("accumulate", accumulate, cat("batch x accumulate must be at most ", grouped(kMaximumCount)));
  if (options.threads < 0 || options.threads > 4096)
    refuse("threads", options.threads, "must be 0 (all allowed) to 4096");
  check_loss_scale(options.loss_scale);
  loss_scale_ = options.loss_scale;
  // With denormals flushed a smaller one would be 0, and so off.
  if (options.clip_norm != 0 && !(options.clip_norm >= std::numeric_limits<float>::min() &&
                                  options.clip_norm <= std::numeric_limits<float>::max()))
    throw Error(ErrorCode::option, cat("StepOptions.clip_norm = ", options.clip_norm),
                "must be 0 (off), or finite as an f32 and above 1.2e-38, for example .clip_norm = 1.0");
  clip_norm = options.clip_norm;
  threads = options.threads == 0 ? allowed_threads() : options.threads;
  optimizer = std::move(made);
  optim::check_rate(optimizer.name + ".learning_rate", optimizer.learning_rate);
  schedule_ = optimizer.learning_rate;
  device_ = options.device;
  target_ = exec::target_of(device_);
  precision = exec::resolve(options.precision, *target_);
  if (options.precision == Precision::automatic)
    log_info("precision: automatic is ", name(precision), " on ", target_->name());
  if (precision == Precision::fp16) scale_ = gradient_scale_ = static_cast<float>(loss_scale_.initial);
  in_flight_ = target_->asynchronous() ? kInFlight : 0;
  if (target_->asynchronous()) threads = 1;  // the host's only queue
  for (Model* model : options.update) {
    if (!model) throw Error(ErrorCode::option, "StepOptions.update", "holds a null pointer; give &model");
    if (!model->state()) throw Error(ErrorCode::option, "StepOptions.update", "holds a model that was moved from");
    update_states_.push_back(owner_of(model->state()));
  }
  tracer_ = std::make_shared<graph::Tracer>("objective", 0, false);
}

void Step::Impl::keep(const Mean& objective) {
  traced_terms_ = objective.terms();
  if (traced_terms_.empty())
    throw Error(ErrorCode::option, "loss", "has no term; return for example cross_entropy(out, target)");
  std::set<std::string> names;
  std::set<std::string> fields;
  for (const Field& field : fields_)
    if (!fields.insert(field.name).second)
      throw Error(ErrorCode::data, cat("field \"", field.name, "\""), "is both an input and a target; rename one");
  for (const Mean::Term& term : traced_terms_)
    if (!names.insert(term.name).second)
      throw Error(ErrorCode::option, cat("loss term '", term.name, "'"), "two terms have this name; give each a .name",
                  term.where);
  for (const auto& state : update_states_)
    if (std::find(tracer_->models.begin(), tracer_->models.end(), state) == tracer_->models.end())
      throw Error(ErrorCode::option, "StepOptions.update",
                  cat("model '", state->name, "' is not called by the objective"));
  input_pointers_.assign(fields_.size(), nullptr);
  input_rows_.assign(fields_.size(), -1);
}

void Step::Impl::add_metric(const std::string& name, const MetricFunction& metric) {
  if (!tracer_)
    throw Error(ErrorCode::state, cat("metric \"", name, "\""), "must be added before the step's first plan or run");
  if (outputs_.size() == 0)
    throw Error(ErrorCode::state, cat("metric \"", name, "\""), "an objective of your own has no outputs to measure");
  if (name.empty() || name == "loss" ||
      std::find(metric_names_.begin(), metric_names_.end(), name) != metric_names_.end())
    throw Error(ErrorCode::option, cat("metric \"", name, "\""), "needs a name of its own");
  const graph::TraceGuard guard(tracer_);
  const Mean mean = metric(outputs_, targets_);
  if (mean.terms().size() != 1)
    throw Error(ErrorCode::option, cat("metric \"", name, "\""),
                cat("must be one mean, it has ", mean.terms().size(), " terms"));
  traced_metrics_.push_back(mean.terms()[0]);
  metric_names_.push_back(name);
}

std::vector<Field> Step::Impl::keep_outputs() {
  keeps_outputs_ = true;
  std::vector<Field> out;
  for (const auto& [name, value] : outputs_.entries()) {
    const graph::ValueType& type = Access::type(value);
    if (type.rows != 1)
      throw Error(ErrorCode::state, cat("output \"", name, "\""),
                  cat("is ", type, "; what the host sees of a data set has one row a sample"));
    out.push_back({name, type.shape, type.dtype});
  }
  return out;
}

void Step::Impl::seal() {
  if (!tracer_) {
    follow_freeze();
    return;
  }
  std::vector<graph::ValueId> roots;
  for (const auto* list : {&traced_terms_, &traced_metrics_})
    for (const Mean::Term& term : *list) {
      roots.push_back(Access::value(term.per_row, *tracer_));
      if (!Access::empty(term.row_weight)) roots.push_back(Access::value(term.row_weight, *tracer_));
    }
  const size_t first_output = roots.size();
  if (keeps_outputs_)
    for (const auto& [name, value] : outputs_.entries()) roots.push_back(Access::value(value, *tracer_));
  tracer_->finish(roots);
  program_ = std::move(tracer_->graph);
  models_ = tracer_->models;
  for (size_t i = first_output; i < roots.size(); ++i)
    program_.outputs.push_back({outputs_.entries()[i - first_output].first, roots[i]});
  size_t root = 0;
  const auto make = [&](const Mean::Term& traced, const std::string& name) {
    graph::Term term;
    term.name = name;
    term.weight = traced.factor;
    term.per_row = roots[root++];
    if (!Access::empty(traced.row_weight)) term.row_weight = roots[root++];
    return term;
  };
  for (const Mean::Term& traced : traced_terms_) {
    program_.objective.push_back(make(traced, traced.name));
    const graph::Term& term = program_.objective.back();
    terms_.push_back({traced.name, traced.factor, term.row_weight != graph::kNoValue, traced.explicit_count,
                      program_.type(term.per_row).rows, traced.where});
  }
  for (size_t i = 0; i < traced_metrics_.size(); ++i)
    program_.metrics.push_back(make(traced_metrics_[i], metric_names_[i]));
  tracer_.reset();
  outputs_ = targets_ = Vars();
  traced_terms_.clear();
  traced_metrics_.clear();

  mark_trained();
  freeze_versions_ = freeze_versions();
  layout_ = exec::trained_layout(program_);
  const size_t totals = terms_.size() + metric_names_.size();
  for (Sums* sums : {&train_, &evaluation_}) {
    sums->sum.assign(totals, 0);
    sums->count.assign(totals, 0);
  }
  counted_.reserve(terms_.size());
  window_.expected.assign(terms_.size(), 0);
  window_.count.assign(terms_.size(), 0);
}

std::shared_ptr<const exec::CompiledPlan> Step::Impl::make_plan(Phase phase, int64_t samples, bool seeds_from_host,
                                                                std::shared_ptr<const backend::Target> target) {
  exec::PlanSource source;
  source.program = program_;
  source.request.clip_norm = clip_norm;
  source.request.phase = phase;
  source.request.samples = samples;
  source.request.seeds_from_host = seeds_from_host;
  source.request.loss_scale = loss_scale_;
  source.request.optimizer = optimizer;
  source.request.precision = precision;
  source.request.rules = rules_;
  source.threads = target ? 1 : threads;
  source.target = target ? std::move(target) : target_;
  return exec::compile_plan(std::move(source));
}

Plan Step::Impl::plan(int64_t rows, const std::string& target) {
  if (rows < 0 || rows > kMaximumCount)
    throw Error(ErrorCode::option, cat("Step::plan.batch = ", rows),
                cat("must be 0 (the step's own) or 1 to ", grouped(kMaximumCount)));
  seal();
  return Plan(make_plan(Phase::train, rows == 0 ? batch : rows, accumulate > 1,
                        target.empty() ? nullptr : backend::target_named(target)));
}

int64_t Step::Impl::largest_batch(const LargestBatchOptions& options) {
  if (options.budget_bytes < 0)
    throw Error(ErrorCode::option, cat("LargestBatchOptions.budget_bytes = ", options.budget_bytes),
                "must be 0 (what is available now) or more");
  const int64_t budget =
      options.budget_bytes > 0 ? options.budget_bytes : exec::backend_of(device_).memory().available_bytes();
  const auto fits = [&](int64_t rows) {
    try {
      return plan(rows).bytes().total <= budget;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::memory) throw;
      return false;  // more bytes than a plan can count
    }
  };
  if (!fits(1)) return 0;
  if (fits(kMaximumCount)) return kMaximumCount;
  int64_t low = 1, high = 2;
  while (high < kMaximumCount && fits(high)) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

void Step::Impl::check_batch(int64_t rows) {
  seal();
  for (const graph::Node& node : program_.nodes) {
    if (node.op->name != "batch_norm") continue;
    const graph::ValueType& type = program_.type(node.inputs[0]);
    if (node.frozen) continue;
    if (rows * type.rows * (type.shape.count() / type.shape[0]) == 1)
      throw Error(ErrorCode::data, graph::label(node),
                  cat("a training batch of ", rows,
                      " row has one value a channel, whose variance is undefined; choose a batch "
                      "that does not leave one row over, or leave it out with .drop_last = true"),
                  node.where);
  }
}

std::vector<Step::Impl::CountedTerm> Step::Impl::counted_terms() {
  seal();
  std::vector<CountedTerm> counted;
  for (const Term& term : terms_)
    if (term.counted) counted.push_back({term.name, term.explicit_count});
  return counted;
}

void Step::Impl::resolve_schedule(int64_t updates_per_epoch, int64_t samples_per_update, int64_t total_updates) {
  take_reports();
  for (const auto& entry : entries_)
    if (!entry->schedule.empty()) bind(*entry);  // the rates of updates that are scheduled already are others now
  schedule_ = optimizer.learning_rate.resolve(updates_per_epoch, samples_per_update, total_updates);
}

}  // namespace brisk
