// select: asks the target for the implementation of each step, and gives each value its layout.
#include "passes/common.h"

namespace brisk::passes {

using graph::Graph;
using graph::Layout;
using graph::Node;
using graph::Place;

namespace {

Layout layout_of(const graph::Value& value) {
  return value.type.batched() && value.place == Place::activation ? Layout::lanes : Layout::plain;
}

}  // namespace

Graph select(Graph graph, const PlanRequest& request) {
  for (graph::Value& value : graph.values) value.layout = layout_of(value);
  for (size_t i = 0; i < graph.nodes.size();) {
    std::vector<int32_t> nodes = {static_cast<int32_t>(i)};
    while (graph.nodes[i].group >= 0 && i + nodes.size() < graph.nodes.size() &&
           graph.nodes[i + nodes.size()].group == graph.nodes[i].group)
      nodes.push_back(static_cast<int32_t>(i + nodes.size()));
    const backend::Choice choice = request.target->choose(graph, nodes, request.samples);
    if (choice.implementation.empty()) {
      std::string reasons;
      for (const std::string& reason : choice.declined) reasons += (reasons.empty() ? "" : "; ") + reason;
      throw Error(ErrorCode::backend, graph::label(graph.nodes[i]),
                  cat(request.target->name(), " has no implementation", reasons.empty() ? "" : ": " + reasons),
                  graph.nodes[i].where);
    }
    for (const int32_t index : nodes) {
      Node& node = graph.nodes[static_cast<size_t>(index)];
      node.implementation = choice.implementation;
      node.declined = choice.declined;
      node.workspace_bytes = index == nodes.back() ? choice.workspace_bytes : 0;
    }
    i += nodes.size();
  }
  return graph;
}

void verify_select(const Graph& graph, const PlanRequest& request) {
  const char* pass = "select";
  verify_structure(graph, pass);
  verify_types(graph, pass);
  check(request.target != nullptr, pass, "target", "there is no target");
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    check(!node.implementation.empty(), pass, "implementation", cat(graph::label(node), " has none"));
    check(node.workspace_bytes >= 0 && node.workspace_bytes % 64 == 0, pass, "workspace",
          cat(graph::label(node), " has ", node.workspace_bytes, " bytes"));
    if (i > 0 && node.group >= 0 && graph.nodes[i - 1].group == node.group)
      check(node.implementation == graph.nodes[i - 1].implementation, pass, "group",
            cat(graph::label(node), " differs from its group"));
    for (const graph::ValueId id : node.outputs)
      check(graph.value(id).layout == layout_of(graph.value(id)), pass, "layout",
            cat(graph::label(node), " makes a value of another layout than its readers expect"));
    for (const graph::ValueId id : node.inputs)
      check(graph.value(id).layout == layout_of(graph.value(id)), pass, "layout",
            cat(graph::label(node), " reads a value of another layout"));
    if (node.op->view)
      check(graph.value(node.inputs[0]).layout == graph.value(node.outputs[0]).layout, pass, "view",
            cat(graph::label(node), " would change the layout"));
  }
}

}  // namespace brisk::passes
