// recompute: repeats cheap forward nodes in the backward stage instead of keeping their outputs. Nothing asks for it
// yet (recompute none); its rules hold for whatever repeats a node.
#include <algorithm>

#include "passes/common.h"

namespace brisk::passes {

graph::Graph recompute(graph::Graph graph, const PlanRequest&) { return graph; }

namespace {

/// A repetition reads what the original read, or what repeats that.
bool repeats(const graph::Graph& graph, graph::ValueId repeated, graph::ValueId original) {
  if (repeated == original) return true;
  const int32_t from = graph.value(original).producer, again = graph.value(repeated).producer;
  if (from < 0 || again < 0 || node_at(graph, again).recomputes != from) return false;
  const auto place = [](const graph::Node& node, graph::ValueId id) {
    return std::find(node.outputs.begin(), node.outputs.end(), id) - node.outputs.begin();
  };
  return place(node_at(graph, again), repeated) == place(node_at(graph, from), original);
}

void verify_repetition(const graph::Graph& graph, const char* pass, const graph::Node& node,
                       const graph::Node& original) {
  const std::string at = graph::label(node);
  check(original.recomputes < 0, pass, "once", cat(at, " repeats a repetition"));
  check(original.stage == graph::Stage::forward && node.stage == graph::Stage::backward, pass, "stage",
        cat(at, " must repeat a forward node in the backward stage"));
  check(original.op == node.op && original.attributes == node.attributes, pass, "same",
        cat(at, " is not what it repeats"));
  check(!node.op->random, pass, "random", cat(at, " would draw its random bits again"));
  check(!node.op->training_only, pass, "statistics", cat(at, " would take its statistics again"));
  for (const graph::ValueId id : node.outputs)
    check(graph.value(id).place == graph::Place::activation, pass, "effects", cat(at, " would repeat an effect"));
  bool same = node.inputs.size() == original.inputs.size();
  for (size_t i = 0; same && i < node.inputs.size(); ++i) same = repeats(graph, node.inputs[i], original.inputs[i]);
  check(same, pass, "inputs", cat(at, " reads something else than what it repeats"));
}

}  // namespace

void verify_recompute(const graph::Graph& graph, const PlanRequest&) {
  const char* pass = "recompute";
  verify_structure(graph, pass);
  const auto readers = graph.consumers();
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const graph::Node& node = graph.nodes[i];
    if (node.recomputes < 0) continue;
    check(static_cast<size_t>(node.recomputes) < i, pass, "earlier",
          cat(graph::label(node), " repeats a node that comes later"));
    verify_repetition(graph, pass, node, node_at(graph, node.recomputes));
    const bool used = std::any_of(node.outputs.begin(), node.outputs.end(),
                                  [&](graph::ValueId id) { return !readers[static_cast<size_t>(id)].empty(); });
    check(used, pass, "used", cat(graph::label(node), " is repeated for nobody"));
  }
  verify_types(graph, pass);
}

}  // namespace brisk::passes
