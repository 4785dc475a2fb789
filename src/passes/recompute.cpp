// recompute: repeats cheap forward nodes in the backward stage instead of keeping their outputs. Nothing asks for it
// yet (recompute none); its rules hold for whatever repeats a node.
#include "passes/common.h"

namespace brisk::passes {

graph::Graph recompute(graph::Graph graph, const PlanRequest&) { return graph; }

void verify_recompute(const graph::Graph& graph, const PlanRequest&) {
  const char* pass = "recompute";
  verify_structure(graph, pass);
  verify_types(graph, pass);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const graph::Node& node = graph.nodes[i];
    if (node.recomputes < 0) continue;
    const std::string at = graph::label(node);
    check(static_cast<size_t>(node.recomputes) < i, pass, "earlier", cat(at, " repeats a node that comes later"));
    const graph::Node& original = node_at(graph, node.recomputes);
    check(original.stage == graph::Stage::forward && node.stage == graph::Stage::backward, pass, "stage",
          cat(at, " must repeat a forward node in the backward stage"));
    check(original.op == node.op && original.attributes == node.attributes, pass, "same",
          cat(at, " is not what it repeats"));
    check(!node.op->random, pass, "random", cat(at, " would draw its random bits again"));
    check(!node.op->training_only, pass, "statistics", cat(at, " would take its statistics again"));
    check(original.recomputes < 0, pass, "once", cat(at, " repeats a repetition"));
    for (const graph::ValueId id : node.outputs)
      check(graph.value(id).place == graph::Place::activation, pass, "effects", cat(at, " would repeat an effect"));
  }
}

}  // namespace brisk::passes
