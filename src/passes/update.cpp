// update: appends what closes a micro-batch (running statistics) and a window (one walk of the optimizer over all
// trained parameters, gated by the finiteness of their gradients).
#include <cmath>
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

void commit_statistics(Graph& graph) {
  const size_t count = graph.nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const Node node = graph.nodes[i];
    if (!is(node, "batch_norm")) continue;
    graph.add_node("batch_norm_commit", {node.outputs[1], node.outputs[3], node.inputs[3], node.inputs[4]},
                   {{"momentum", node.attributes.real("momentum")}}, node.name, node.where, Stage::commit);
  }
}

}  // namespace

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

  const Optimizer& optimizer = request.optimizer;
  const auto scalar = [&](const char* name) { return graph.scalar_value(graph.add_scalar(name)); };
  const ValueId ratio = scalar("ratio");
  std::vector<ValueId> inputs = {ratio};
  inputs.insert(inputs.end(), gradients.begin(), gradients.end());
  const ValueId stats = graph.emit("gradient_stats", inputs, {}, "gradient_stats", {}, Stage::update);

  const bool adam = optimizer.kind == Optimizer::Kind::adam;
  inputs = adam ? std::vector<ValueId>{scalar("rate"), ratio, scalar("bias1"), scalar("bias2"), stats}
                : std::vector<ValueId>{scalar("rate"), ratio, scalar("first"), stats};
  std::vector<double> decay, scale;
  for (const ValueId gradient : gradients) {
    const int32_t slot = graph.value(gradient).slot;
    inputs.push_back(find_value(graph, Place::parameter, slot));
    inputs.push_back(gradient);
    if (optimizer.moments() >= 1) inputs.push_back(find_value(graph, Place::moment1, slot));
    if (optimizer.moments() == 2) inputs.push_back(find_value(graph, Place::moment2, slot));
    const ParameterRule rule =
        static_cast<size_t>(slot) < request.rules.size() ? request.rules[static_cast<size_t>(slot)] : ParameterRule{};
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
  return graph;
}

void verify_update(const Graph& graph, const PlanRequest& request) {
  const char* pass = "update";
  verify_structure(graph, pass);
  verify_types(graph, pass);
  std::set<int32_t> gradients, updated, committed;
  int walks = 0, stats = 0;
  for (const Node& node : graph.nodes) {
    const bool walk = is(node, "sgd_walk") || is(node, "adam_walk");
    if (walk) {
      ++walks;
      check(node.stage == Stage::update, pass, "stage", cat(graph::label(node), " is not of the update stage"));
      check(stats == 1, pass, "guard", cat(graph::label(node), " is not preceded by the gradients' statistics"));
      for (const char* list : {"weight_decay", "rate_scale"})
        for (const double value : node.attributes.reals(list))
          check(std::isfinite(value) && value >= 0, pass, "rules", cat(list, " = ", value));
      check(walk == is(node, request.optimizer.kind == Optimizer::Kind::adam ? "adam_walk" : "sgd_walk"), pass,
            "optimizer", cat(graph::label(node), " is not what was asked for"));
    }
    if (is(node, "gradient_stats")) {
      ++stats;
      check(node.stage == Stage::update, pass, "stage", cat(graph::label(node), " is not of the update stage"));
      std::set<int32_t> read;
      for (size_t i = 1; i < node.inputs.size(); ++i) read.insert(graph.value(node.inputs[i]).slot);
      check(read == gradients, pass, "guard", "the statistics do not cover all gradients");
    }
    if (is(node, "batch_norm_commit"))
      check(node.stage == Stage::commit, pass, "stage", cat(graph::label(node), " is not of the commit stage"));
    for (const ValueId id : node.outputs) {
      const graph::Value& value = graph.value(id);
      if (value.place == Place::gradient) gradients.insert(value.slot);
      if (value.place == Place::parameter) {
        check(walk, pass, "writer", cat(graph::label(node), " writes a parameter"));
        check(updated.insert(value.slot).second, pass, "once",
              cat(graph.parameters[static_cast<size_t>(value.slot)].name, " is updated twice"));
      }
      if (value.place == Place::buffer) committed.insert(value.slot);
    }
  }
  if (graph.phase != graph::Phase::train) {
    check(walks == 0 && committed.empty(), pass, "evaluation", "an evaluation graph changes parameters or buffers");
    return;
  }
  check(walks == (gradients.empty() ? 0 : 1), pass, "walk", cat("there are ", walks, " optimizer walks"));
  check(updated == gradients, pass, "complete", "the walk does not update exactly the parameters that have a gradient");
  for (const Node& node : graph.nodes)
    if (is(node, "batch_norm"))
      check(committed.count(graph.value(node.inputs[3]).slot) == 1, pass, "statistics",
            cat(graph::label(node), " does not commit its running statistics"));
}

}  // namespace brisk::passes
