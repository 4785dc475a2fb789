// Trainer: a model, a loss and an optimizer made into a step, and the loop around it.
#include "brisk/trainer.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "brisk/predictor.h"
#include "core/text.h"
#include "train/fit_loop.h"
#include "train/step_access.h"
#include "train/summary.h"

namespace brisk {

class Trainer::Impl {
 public:
  Impl(Model& model, LossFunction loss, Optimizer optimizer, StepOptions options)
      : model_(model.state()), loss_(std::move(loss)), optimizer_(std::move(optimizer)), options_(std::move(options)) {
    if (loss_.infer_targets() || !options_.targets.empty()) compile(nullptr);
  }

  void add_metric(std::string name, MetricFunction metric) {
    check_new_metric(name);
    metrics_.emplace_back(std::move(name), std::move(metric));
    recompile(metrics_);
  }
  void add_host_metric(std::string name, HostMetricOfMany metric) {
    check_new_metric(name);
    if (!metric) throw Error(ErrorCode::option, cat("metric \"", name, "\""), "the function is empty");
    host_metrics_.functions.emplace_back(std::move(name), std::move(metric));
    recompile(host_metrics_.functions);
  }
  void on_update(UpdateCallback callback, UpdateCallbackOptions options) {
    if (!callback) throw Error(ErrorCode::option, "Trainer::on_update", "the function is empty");
    if (!options.every.set() || !(options.every.count() > 0 && std::isfinite(options.every.count())))
      throw Error(ErrorCode::option, cat("UpdateCallbackOptions.every = ", options.every),
                  "must be a finite length of more than 0, for example 100_updates");
    callbacks_.update.emplace_back(std::move(callback), options);
  }
  void on_evaluation(EvaluationCallback callback) {
    if (!callback) throw Error(ErrorCode::option, "Trainer::on_evaluation", "the function is empty");
    callbacks_.evaluation.push_back(std::move(callback));
  }

  FitResult fit(const Dataset& data, const Dataset* validation, const FitOptions& options) {
    if (fitting_)
      throw Error(ErrorCode::state, "Trainer::fit", "is running already; a callback may stop() it, and fit() after it");
    const Fitting fitting(fitting_);
    prepare(data);
    train::BoundData train = bound(data);
    std::optional<train::BoundData> held_out;
    if (validation != nullptr) held_out = bound(*validation);
    // What an exception left in an earlier run: errors, and an open window.
    train::forget_reports(*step_);
    step_->flush();
    step_->read();
    train::FitLoop::Parts parts;
    parts.step = &*step_;
    parts.state = &state_;
    parts.train = &train;
    parts.validation = held_out ? &*held_out : nullptr;
    parts.factors = &traced_->factors;
    parts.host_metrics = &host_metrics_;
    parts.model = &model_;
    parts.callbacks = callbacks_;
    parts.facts = facts();
    return train::FitLoop(std::move(parts), options).run();
  }

  EvaluationResult evaluate(const Dataset& data) {
    prepare(data);
    train::BoundData bound_data = bound(data);
    return train::evaluate_all(*step_, bound_data, host_metrics_, {});
  }

  Tensor predict(const Dataset& data, std::string_view output) {
    check_samples(data);
    const int64_t batch = std::min(step_ ? step_->batch() : options_.batch.value_or(32), data.size());
    const Predictor predictor(model_, {.batches = {batch}, .threads = options_.threads});
    const Field field = chosen_output(predictor.outputs(), output);
    Shape shape = {data.size()};
    for (const int64_t size : field.shape) shape.append(size);
    Tensor out(shape, field.dtype);
    train::Binding binding(data, model_.inputs(), {});
    data::BatcherOptions reading = train::reading_options(data, {});
    reading.batch = batch;
    data::Batcher batcher(data, reading);
    int64_t done = 0;
    while (const Batch* rows = batcher.next()) {
      predictor.run(binding.feed(*rows), {{field.name, View(out).rows(done, rows->size())}});
      done += rows->size();
    }
    return out;
  }

  std::string summary() const {
    return train::summary_text(*owner_of(model_.state()), optimizer_, options_, step_ ? &*step_ : nullptr);
  }
  Clock clock() const { return state_.clock; }
  FitStatistics statistics() const { return state_.statistics; }

 private:
  struct Fitting {
    explicit Fitting(bool& flag) : flag_(flag) { flag_ = true; }
    ~Fitting() { flag_ = false; }
    bool& flag_;
  };

  /// data: where targets come from when the loss does not tell them, and who is named in errors; may be null.
  void compile(const Dataset* data) {
    StepOptions options = options_;
    std::vector<Field> fields;
    std::string data_name;
    if (data != nullptr) {
      options.targets = train::remaining_fields(*data, model_.inputs());
      fields = data->fields();
      data_name = data->name();
    }
    traced_->targets = options.targets;
    Step step(model_, train::observed(loss_, traced_, data_name, fields), optimizer_, options);
    for (const auto& [name, metric] : metrics_) {
      step.add_metric(name, train::observed(metric, std::make_shared<train::TracedLoss>(), data_name, fields));
    }
    if (!host_metrics_.functions.empty()) host_metrics_.outputs = train::keep_outputs(step);
    host_metrics_.targets = traced_->targets;
    step_.emplace(std::move(step));
  }

  void check_new_metric(const std::string& name) const {
    const auto same = [&name](const auto& known) { return known.first == name; };
    const auto& host = host_metrics_.functions;
    if (name.empty() || name == "loss" || name.rfind("loss.", 0) == 0 ||
        std::any_of(metrics_.begin(), metrics_.end(), same) || std::any_of(host.begin(), host.end(), same))
      throw Error(ErrorCode::option, cat("metric \"", name, "\""), "needs a name of its own");
    if (used_)
      throw Error(ErrorCode::state, cat("metric \"", name, "\""), "must be added before the first fit() or evaluate()");
  }

  /// A step that has not run yet is made anew with the metric that was added last; one that does not fit is dropped.
  template <class Metrics>
  void recompile(Metrics& added) {
    if (!step_) return;
    try {
      compile(nullptr);
    } catch (...) {
      added.pop_back();
      throw;
    }
  }

  void prepare(const Dataset& data) {
    if (!step_) compile(&data);
    used_ = true;
  }

  static void check_samples(const Dataset& data) {
    if (data.size() < 1) throw Error(ErrorCode::data, train::data_set_text(data.name()), "has no samples");
  }

  static Field chosen_output(const std::vector<Field>& outputs, std::string_view wanted) {
    std::string names;
    for (const Field& field : outputs) {
      if (field.name == wanted || (wanted.empty() && outputs.size() == 1)) return field;
      names += (names.empty() ? "" : ", ") + field.name;
    }
    throw Error(ErrorCode::data, cat("Trainer::predict output \"", wanted, "\""),
                cat("must be one of the model's outputs: ", names));
  }

  train::BoundData bound(const Dataset& data) const {
    check_samples(data);
    return {&data, train::Binding(data, model_.inputs(), traced_->targets)};
  }

  train::RunFacts facts() const {
    train::RunFacts out;
    out.accumulate = step_->accumulate();
    out.batch = step_->batch();
    out.learning_rate = optimizer_.learning_rate.text();
    out.machine = train::machine_text(*step_);
    out.model = model_.name();
    out.optimizer = train::optimizer_text(optimizer_);
    out.parameters = model_.parameter_count();
    out.plan_bytes = step_->plan().bytes().total;
    out.precision = name(step_->plan().precision());
    out.threads = step_->threads();
    return out;
  }

  Model model_;  // a handle of its own: the user's may move or go
  LossFunction loss_;
  Optimizer optimizer_;
  StepOptions options_;
  std::vector<std::pair<std::string, MetricFunction>> metrics_;
  train::HostMetrics host_metrics_;
  train::Callbacks callbacks_;
  std::shared_ptr<train::TracedLoss> traced_ = std::make_shared<train::TracedLoss>();
  std::optional<Step> step_;
  train::TrainerState state_;
  bool fitting_ = false;
  bool used_ = false;  // the step has run, or will
};

Trainer::Trainer(Model& model, LossFunction loss, Optimizer optimizer, StepOptions options)
    : impl_(std::make_unique<Impl>(model, std::move(loss), std::move(optimizer), std::move(options))) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

void Trainer::add_metric(std::string name, MetricFunction metric) {
  impl_->add_metric(std::move(name), std::move(metric));
}
void Trainer::add_host_metric(std::string name, HostMetric metric) {
  impl_->add_host_metric(std::move(name), train::of_first(std::move(metric)));
}
void Trainer::add_host_metric(std::string name, HostMetricOfMany metric) {
  impl_->add_host_metric(std::move(name), std::move(metric));
}
void Trainer::on_update(UpdateCallback callback, UpdateCallbackOptions options) {
  impl_->on_update(std::move(callback), options);
}
void Trainer::on_evaluation(EvaluationCallback callback) { impl_->on_evaluation(std::move(callback)); }
FitResult Trainer::fit(const Dataset& train, FitOptions options) { return impl_->fit(train, nullptr, options); }
FitResult Trainer::fit(const Dataset& train, const Dataset& validation, FitOptions options) {
  return impl_->fit(train, &validation, options);
}
EvaluationResult Trainer::evaluate(const Dataset& data) { return impl_->evaluate(data); }
Tensor Trainer::predict(const Dataset& data, std::string_view output) { return impl_->predict(data, output); }
std::string Trainer::summary() const { return impl_->summary(); }
Clock Trainer::clock() const { return impl_->clock(); }
FitStatistics Trainer::statistics() const { return impl_->statistics(); }

}  // namespace brisk
