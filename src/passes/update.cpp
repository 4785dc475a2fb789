// update: appends what closes a micro-batch (running statistics) and a window (one walk of the optimizer over all
// trained parameters, gated by the finiteness of their gradients).
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "passes/common.h"

namespace brisk::passes {

using graph::Graph;
using graph::Node;
using graph::Place;
using graph::Stage;
using graph::ValueId;

namespace {

ValueId find_value(Graph& graph, Place place, int32_t slot) {
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (graph.values[i].place == place && graph.values[i].slot == slot && graph.values[i].producer < 0)
      return static_cast<ValueId>(i);
  return graph.add_value({DType::f32, 0, graph.parameters[static_cast<size_t>(slot)].shape}, place, slot);
}

/// Whether running statistics of a batch_norm move: not those of a model that the step does not update.
bool commits(const Graph& graph, const Node& node) {
  const graph::Value& weight = graph.value(node.inputs[1]);
  return weight.place != Place::parameter || graph.parameters[static_cast<size_t>(weight.slot)].trainable;
}

/// A layer that is called twice commits twice, one after the other.
void commit_statistics(Graph& graph) {
  const size_t count = graph.nodes.size();
  std::map<ValueId, ValueId> latest;
  const auto running = [&](ValueId id) { return latest.count(id) ? latest[id] : id; };
  for (size_t i = 0; i < count; ++i) {
    const Node node = graph.nodes[i];
    if (!is(node, "batch_norm") || !commits(graph, node)) continue;
    const int32_t made = graph.add_node(
        "batch_norm_commit", {node.outputs[1], node.outputs[3], running(node.inputs[3]), running(node.inputs[4])},
        {{"momentum", node.attributes.real("momentum")}}, node.name, node.where, Stage::commit);
    for (size_t k = 0; k < 2; ++k) latest[node.inputs[k + 3]] = node_at(graph, made).outputs[k];
  }
}

ParameterRule rule_of(const std::vector<ParameterRule>& rules, int32_t slot) {
  return static_cast<size_t>(slot) < rules.size() ? rules[static_cast<size_t>(slot)] : ParameterRule{};
}

struct WalkInputs {
  ValueId rate, ratio, stats;
};

/// One walk over parameters that have been trained since the same update.
void add_walk(Graph& graph, const PlanRequest& request, const std::vector<ValueId>& gradients, int64_t started,
              WalkInputs given) {
  const Optimizer& optimizer = request.optimizer;
  const auto scalar = [&](const char* name) {
    return graph.scalar_value(graph.add_scalar(cohort_scalar(name, started)));
  };
  const bool adam = optimizer.kind == Optimizer::Kind::adam;
  std::vector<ValueId> inputs = {given.rate, given.ratio};
  for (const char* name : adam ? std::vector<const char*>{"bias1", "bias2"} : std::vector<const char*>{"first"}) {
    inputs.push_back(scalar(name));
  }
  inputs.push_back(given.stats);
  std::vector<double> decay, scale;
  for (const ValueId gradient : gradients) {
    const int32_t slot = graph.value(gradient).slot;
    const ParameterRule rule = rule_of(request.rules, slot);
    inputs.push_back(find_value(graph, Place::parameter, slot));
    inputs.push_back(gradient);
    if (optimizer.moments() >= 1) inputs.push_back(find_value(graph, Place::moment1, slot));
    if (optimizer.moments() == 2) inputs.push_back(find_value(graph, Place::moment2, slot));
    decay.push_back(rule.weight_decay);
    scale.push_back(rule.rate_scale);
  }
  graph::Attributes attributes = {{"weight_decay", decay}, {"rate_scale", scale}};
  if (adam) {
    attributes.set("beta1", optimizer.beta1);
    attributes.set("beta2", optimizer.beta2);
    attributes.set("epsilon", optimizer.epsilon);
    attributes.set("decoupled", optimizer.decoupled);
  } else {
    attributes.set("momentum", optimizer.beta1);
    attributes.set("dampening", optimizer.dampening);
    attributes.set("nesterov", optimizer.nesterov);
  }
  graph.add_node(adam ? "adam_walk" : "sgd_walk", inputs, attributes, optimizer.name, {}, Stage::update);
}

}  // namespace

std::string cohort_scalar(const std::string& name, int64_t started) {
  return started == 0 ? name : cat(name, ".", started);
}

Graph update(Graph graph, const PlanRequest& request) {
  if (graph.phase != graph::Phase::train) return graph;
  commit_statistics(graph);
  std::vector<ValueId> gradients;
  for (const graph::Value& value : graph.values)
    if (value.place == Place::gradient && value.producer >= 0)
      gradients.push_back(static_cast<ValueId>(&value - graph.values.data()));
  std::sort(gradients.begin(), gradients.end(),
            [&](ValueId a, ValueId b) { return graph.value(a).slot < graph.value(b).slot; });
  if (gradients.empty()) return graph;

  const auto scalar = [&](const char* name) { return graph.scalar_value(graph.add_scalar(name)); };
  const ValueId ratio = scalar("ratio"), rate = scalar("rate");
  std::vector<ValueId> inputs = {ratio};
  inputs.insert(inputs.end(), gradients.begin(), gradients.end());
  const ValueId stats =
      graph.emit("gradient_stats", inputs, {{"clip_norm", request.clip_norm}}, "gradient_stats", {}, Stage::update);
  std::map<int64_t, std::vector<ValueId>> cohorts;
  for (const ValueId gradient : gradients)
    cohorts[rule_of(request.rules, graph.value(gradient).slot).started].push_back(gradient);
  for (const auto& [started, members] : cohorts) add_walk(graph, request, members, started, {rate, ratio, stats});
  return graph;
}

namespace {

bool is_walk(const Node& node) { return is(node, "sgd_walk") || is(node, "adam_walk"); }

/// Where a walk's operands of each parameter begin, and how many there are.
struct WalkForm {
  size_t first;
  size_t stride;
};
WalkForm form_of(const Node& node) {
  if (is(node, "adam_walk")) return {5, 4};
  return {4, node.attributes.real("momentum") != 0 ? size_t{3} : size_t{2}};
}

void verify_walk(const Graph& graph, const char* pass, const Node& node, const PlanRequest& request) {
  const std::string at = graph::label(node);
  const bool adam = is(node, "adam_walk");
  check(adam == (request.optimizer.kind == Optimizer::Kind::adam), pass, "optimizer",
        cat(at, " is not what was asked for"));
  for (const char* list : {"weight_decay", "rate_scale"})
    for (const double value : node.attributes.reals(list))
      check(std::isfinite(value) && value >= 0, pass, "rules", cat(at, " has ", list, " = ", value));
  const std::vector<const char*> names = adam ? std::vector<const char*>{"rate", "ratio", "bias1", "bias2"}
                                              : std::vector<const char*>{"rate", "ratio", "first"};
  const auto [first, stride] = form_of(node);
  const int64_t started = rule_of(request.rules, graph.value(node.inputs[first]).slot).started;
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string name = i < 2 ? names[i] : cohort_scalar(names[i], started);
    const graph::Value& value = graph.value(node.inputs[i]);
    check(value.place == Place::scalar && graph.scalars[static_cast<size_t>(value.slot)] == name, pass, "scalars",
          cat(at, " does not read ", name, " as its input ", i));
  }
  constexpr Place kPlaces[] = {Place::parameter, Place::gradient, Place::moment1, Place::moment2};
  for (size_t i = first; i < node.inputs.size(); ++i) {
    const graph::Value& value = graph.value(node.inputs[i]);
    const graph::Value& parameter = graph.value(node.inputs[i - (i - first) % stride]);
    check(value.place == kPlaces[(i - first) % stride] && value.slot == parameter.slot, pass, "pairs",
          cat(at, " mixes the operands of two parameters"));
    check(rule_of(request.rules, value.slot).started == started, pass, "cohort",
          cat(at, " moves parameters that count different updates"));
  }
}

}  // namespace

void verify_update(const Graph& graph, const PlanRequest& request) {
  const char* pass = "update";
  verify_structure(graph, pass);
  std::set<int32_t> gradients, updated, committed;
  int walks = 0, stats = 0;
  for (const Node& node : graph.nodes) {
    const std::string at = graph::label(node);
    const bool walk = is_walk(node), commit = is(node, "batch_norm_commit");
    const Stage stage = walk || is(node, "gradient_stats") ? Stage::update : commit ? Stage::commit : node.stage;
    check(node.stage == stage && (walk || commit || is(node, "gradient_stats") || node.stage <= Stage::backward), pass,
          "stage", cat(at, " is of the ", graph::name(node.stage), " stage"));
    walks += walk;
    if (walk) {
      check(stats == 1, pass, "guard", cat(at, " is not preceded by the gradients' statistics"));
      verify_walk(graph, pass, node, request);
    }
    if (is(node, "gradient_stats")) {
      ++stats;
      std::set<int32_t> read;
      for (size_t i = 1; i < node.inputs.size(); ++i) read.insert(graph.value(node.inputs[i]).slot);
      check(read == gradients, pass, "guard", "the statistics do not cover all gradients");
      check(node.attributes.real("clip_norm") == request.clip_norm, pass, "clip", cat(at, " clips at another norm"));
    }
    for (const ValueId id : node.outputs) {
      const graph::Value& value = graph.value(id);
      if (value.place == Place::gradient) gradients.insert(value.slot);
      if (value.place == Place::parameter) {
        check(walk, pass, "writer", cat(at, " writes a parameter"));
        check(updated.insert(value.slot).second, pass, "once",
              cat(graph.parameters[static_cast<size_t>(value.slot)].name, " is updated twice"));
      }
      if (value.place == Place::buffer) committed.insert(value.slot);
    }
  }
  verify_types(graph, pass);
  if (graph.phase != graph::Phase::train) return;
  std::set<int64_t> starts;
  for (const int32_t slot : gradients) starts.insert(rule_of(request.rules, slot).started);
  check(walks == static_cast<int>(starts.size()), pass, "walk", cat("there are ", walks, " optimizer walks"));
  check(updated == gradients, pass, "complete", "the walk does not update exactly the parameters that have a gradient");
  for (const Node& node : graph.nodes)
    if (is(node, "batch_norm") && commits(graph, node))
      check(committed.count(graph.value(node.inputs[3]).slot) == 1, pass, "statistics",
            cat(graph::label(node), " does not commit its running statistics"));
}

}  // namespace brisk::passes
