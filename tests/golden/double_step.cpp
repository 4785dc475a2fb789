// Traces an objective as Step does, runs the passes that define it, and keeps what an executor would keep.
#include "golden/double_step.h"

#include <cmath>
#include <stdexcept>

#include "exec/freeze.h"
#include "graph/model_state.h"
#include "passes/passes.h"

namespace brisk::golden {

using graph::Place;

DoubleStep::DoubleStep(const Model& model, const Objective& objective, const Inputs& inputs, Optimizer optimizer,
                       int64_t samples, Precision precision)
    : optimizer_(std::move(optimizer)), samples_(samples), model_(model) {
  trace(objective, inputs);
  compile(precision);
  for (const graph::Value& value : graph_.values) {
    if (value.producer >= 0 || value.place == Place::activation || value.place == Place::input) continue;
    if (value.place != Place::scalar) memory_.try_emplace({value.place, value.slot}, initial(value));
  }
}

void DoubleStep::trace(const Objective& objective, const Inputs& inputs) {
  const auto tracer = std::make_shared<graph::Tracer>("objective", 0, false);
  const Vars in = graph::declare_inputs(tracer, inputs.fields());
  const graph::TraceGuard guard(tracer);
  const Mean mean = objective(in);
  std::vector<graph::ValueId> roots;
  for (const Mean::Term& term : mean.terms()) {
    roots.push_back(graph::Access::value(term.per_row));
    if (!graph::Access::empty(term.row_weight)) roots.push_back(graph::Access::value(term.row_weight));
  }
  tracer->finish(roots);
  graph_ = std::move(tracer->graph);
  size_t next = 0;
  for (const Mean::Term& term : mean.terms()) {
    graph::Term made{term.name, term.factor, roots[next++]};
    if (!graph::Access::empty(term.row_weight)) made.row_weight = roots[next++];
    graph_.objective.push_back(made);
  }
  models_ = tracer->models;
  for (graph::ParameterRef& ref : graph_.parameters) {
    const graph::Segment& segment = models_[static_cast<size_t>(ref.store)]->segments[static_cast<size_t>(ref.segment)];
    ref.trainable = !segment.frozen && !segment.spec.buffer;
  }
  exec::mark_frozen(graph_, models_);
}

void DoubleStep::compile(Precision precision) {
  const auto target = backend::target_for(cpu());
  passes::PlanRequest request;
  request.precision = precision;
  request.target = target.get();
  request.samples = samples_;
  request.seeds_from_host = false;
  request.optimizer = optimizer_;
  const double decay = optimizer_.groups.empty() ? 0.0 : optimizer_.groups[0].weight_decay.value_or(0.0);
  request.rules.assign(graph_.parameters.size(), {decay, 1.0});
  for (const passes::Pass& pass : passes::all()) {
    graph_ = pass.run(std::move(graph_), request);
    pass.verify(graph_, request);
    if (std::string(pass.name) == "precision") return;
  }
}

oracle::Array DoubleStep::initial(const graph::Value& value) const {
  oracle::Array array = oracle::zeros(value.type, samples_);
  if (value.place == Place::state && value.slot == 0) array.data = {LossScale().initial};
  if (value.place != Place::parameter && value.place != Place::buffer) return array;
  const graph::ParameterRef& ref = graph_.parameters[static_cast<size_t>(value.slot)];
  const Tensor torch = model_.parameter(ref.name);
  // Where each canonical element stands in PyTorch's layout.
  std::vector<double> places(array.data.size());
  for (size_t i = 0; i < places.size(); ++i) places[i] = static_cast<double>(i);
  const std::vector<double> canonical = to_torch(value.slot, places);
  for (size_t i = 0; i < places.size(); ++i) array.data[static_cast<size_t>(canonical[i])] = torch.data<float>()[i];
  return array;
}

double DoubleStep::scalar(const std::string& name) const {
  const double steps = static_cast<double>(updates_ + 1);
  if (name == "rate") return optimizer_.learning_rate.at({.updates = updates_});
  if (name == "ratio") return 1;
  if (name == "first") return updates_ == 0 ? 1 : 0;
  if (name == "bias1") return 1 - std::pow(optimizer_.beta1, steps);
  if (name == "bias2") return 1 - std::pow(optimizer_.beta2, steps);
  for (const graph::Term& term : graph_.objective) {
    if (name != "seed." + term.name) continue;
    const auto rows = static_cast<double>(oracle::full_shape(graph_.type(term.per_row), samples_).count());
    return term.weight / rows;
  }
  throw std::logic_error("no scalar " + name);
}

double DoubleStep::run(const std::map<std::string, std::vector<double>>& inputs) {
  oracle::Values given;
  for (size_t id = 0; id < graph_.values.size(); ++id) {
    const graph::Value& value = graph_.values[id];
    const auto key = static_cast<graph::ValueId>(id);
    if (value.place == Place::totals) {
      given[key] = oracle::zeros(value.type, samples_);
    } else if (value.place == Place::gradient && value.producer >= 0) {
      given[key] = oracle::zeros(value.type, samples_);
    }
    if (value.producer >= 0 || value.place == Place::activation) continue;
    if (value.place == Place::input) {
      const std::string& name = graph_.inputs[static_cast<size_t>(value.slot)].name;
      given[key] = {oracle::full_shape(value.type, samples_), inputs.at(name)};
    } else if (value.place == Place::scalar) {
      given[key] = {Shape{}, {scalar(graph_.scalars[static_cast<size_t>(value.slot)])}};
    } else {
      given[key] = memory_.at({value.place, value.slot});
    }
  }
  oracle::Values after = oracle::evaluate(graph_, samples_, std::move(given));
  double loss = 0;
  for (const auto& [id, array] : after) {
    const graph::Value& value = graph_.value(id);
    if (value.producer < 0 || value.place == Place::activation) continue;
    if (value.place == Place::totals) {
      loss += graph_.objective.at(static_cast<size_t>(value.slot)).weight * array.data[0] / array.data[1];
    } else {
      memory_[{value.place, value.slot}] = array;
    }
  }
  ++updates_;
  return loss;
}

int32_t DoubleStep::slot_of(const std::string& name) const {
  for (size_t i = 0; i < graph_.parameters.size(); ++i) {
    if (graph_.parameters[i].name == name) return static_cast<int32_t>(i);
  }
  throw std::logic_error("no parameter " + name);
}

std::vector<double> DoubleStep::to_torch(int32_t slot, const std::vector<double>& canonical) const {
  const graph::ParameterRef& ref = graph_.parameters[static_cast<size_t>(slot)];
  const graph::ParameterSpec& spec =
      models_[static_cast<size_t>(ref.store)]->segments[static_cast<size_t>(ref.segment)].spec;
  if (spec.torch != graph::TorchLayout::convolution) return canonical;
  const int64_t height = spec.shape[1], width = spec.shape[2], inputs = spec.shape[3];
  std::vector<double> out;
  for (int64_t o = 0; o < spec.shape[0]; ++o) {
    for (int64_t i = 0; i < inputs; ++i) {
      for (int64_t k = 0; k < height * width; ++k) {
        out.push_back(canonical[static_cast<size_t>((o * height * width + k) * inputs + i)]);
      }
    }
  }
  return out;
}

std::vector<double> DoubleStep::parameter(const std::string& name) const {
  const int32_t slot = slot_of(name);
  const auto found = memory_.find({Place::parameter, slot});
  return to_torch(slot, found != memory_.end() ? found->second.data : memory_.at({Place::buffer, slot}).data);
}

std::vector<double> DoubleStep::gradient(const std::string& name) const {
  const int32_t slot = slot_of(name);
  return to_torch(slot, memory_.at({Place::gradient, slot}).data);
}

}  // namespace brisk::golden
