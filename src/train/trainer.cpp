// Trainer: a model, a loss and an optimizer made into a step, and the loop around it.
#include "brisk/trainer.h"

#include <optional>

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
    if (step_) {
      step_->add_metric(std::move(name), std::move(metric));
    } else {
      metrics_.emplace_back(std::move(name), std::move(metric));
    }
  }
  void on_report(std::function<void(const UpdateReport&)> callback) { callback_ = std::move(callback); }

  FitResult fit(const Dataset& data, const Dataset* validation, const FitOptions& options) {
    prepare(data);
    train::BoundData train = bound(data);
    std::optional<train::BoundData> held_out;
    if (validation != nullptr) held_out = bound(*validation);
    step_->flush();  // a window that an exception left open in an earlier run
    train::FitLoop::Parts parts;
    parts.step = &*step_;
    parts.state = &state_;
    parts.train = &train;
    parts.validation = held_out ? &*held_out : nullptr;
    parts.factors = &traced_->factors;
    parts.callback = &callback_;
    parts.facts = facts();
    return train::FitLoop(std::move(parts), options).run();
  }

  EvaluationResult evaluate(const Dataset& data) {
    prepare(data);
    train::BoundData bound_data = bound(data);
    return train::evaluation_of(train::evaluate_all(*step_, bound_data, {}));
  }

  std::string summary() const {
    return train::summary_text(*model_.state(), optimizer_, options_, step_ ? &*step_ : nullptr);
  }
  Clock clock() const { return state_.clock; }
  FitStatistics statistics() const { return state_.statistics; }

 private:
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
    metrics_.clear();
    step_.emplace(std::move(step));
  }

  void prepare(const Dataset& data) {
    if (!step_) compile(&data);
  }

  train::BoundData bound(const Dataset& data) const {
    if (data.size() < 1) throw Error(ErrorCode::data, train::data_set_text(data.name()), "has no samples");
    return {&data, train::Binding(data, model_.inputs(), traced_->targets)};
  }

  train::RunFacts facts() const {
    train::RunFacts out;
    out.accumulate = step_->accumulate();
    out.batch = step_->batch();
    out.learning_rate = optimizer_.learning_rate.text();
    out.machine = train::machine_text(*step_, options_.precision);
    out.model = model_.name();
    out.optimizer = train::optimizer_text(optimizer_);
    out.parameters = model_.parameter_count();
    out.plan_bytes = step_->plan().bytes().total;
    out.precision = train::precision_text(options_.precision);
    out.threads = step_->threads();
    return out;
  }

  Model model_;  // a handle of its own: the user's may move or go
  LossFunction loss_;
  Optimizer optimizer_;
  StepOptions options_;
  std::vector<std::pair<std::string, MetricFunction>> metrics_;  // until the step is compiled
  std::function<void(const UpdateReport&)> callback_;
  std::shared_ptr<train::TracedLoss> traced_ = std::make_shared<train::TracedLoss>();
  std::optional<Step> step_;
  train::TrainerState state_;
};

Trainer::Trainer(Model& model, LossFunction loss, Optimizer optimizer, StepOptions options)
    : impl_(std::make_unique<Impl>(model, std::move(loss), std::move(optimizer), std::move(options))) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

void Trainer::add_metric(std::string name, MetricFunction metric) {
  impl_->add_metric(std::move(name), std::move(metric));
}
void Trainer::on_report(std::function<void(const UpdateReport&)> callback) { impl_->on_report(std::move(callback)); }
FitResult Trainer::fit(const Dataset& train, FitOptions options) { return impl_->fit(train, nullptr, options); }
FitResult Trainer::fit(const Dataset& train, const Dataset& validation, FitOptions options) {
  return impl_->fit(train, &validation, options);
}
EvaluationResult Trainer::evaluate(const Dataset& data) { return impl_->evaluate(data); }
std::string Trainer::summary() const { return impl_->summary(); }
Clock Trainer::clock() const { return impl_->clock(); }
FitStatistics Trainer::statistics() const { return impl_->statistics(); }

}  // namespace brisk
