// select: asks the target for the implementation of each step, and gives each value its layout.
#include "passes/common.h"

namespace brisk::passes {

using graph::Graph;
using graph::Layout;
using graph::Node;
using graph::Place;

namespace {

Layout layout_of(const backend::Target& target, const graph::Value& value, bool plain) {
  return value.type.batched() && value.place == Place::activation && !plain ? target.layout(value.type) : Layout::plain;
}

/// All values together stay far below 63 bits, so that no arithmetic on sizes overflows behind this line.
void check_bytes(const Graph& graph, int64_t samples, int lanes) {
  constexpr int64_t kMost = int64_t{1} << 61;
  int64_t total = 0;
  for (const graph::Value& value : graph.values) {
    int64_t bytes = value.type.elements() * size_of(value.type.dtype);  // of one sample: fits, as tracing has checked
    const int64_t rounded = value.type.batched() ? (samples + lanes - 1) / lanes * lanes : 1;
    if (__builtin_mul_overflow(bytes, rounded, &bytes) || __builtin_add_overflow(total, bytes, &total) || total > kMost)
      throw Error(ErrorCode::memory, cat("batch ", samples),
                  "needs more than 2^61 bytes; use a smaller batch or model");
  }
}

}  // namespace

Graph select(Graph graph, const PlanRequest& request) {
  check_bytes(graph, request.samples, request.target->lanes());
  const bool plain = request.target->plain(graph, request.samples);
  for (graph::Value& value : graph.values) value.layout = layout_of(*request.target, value, plain);
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
      node.launches = index == nodes.back() ? choice.launches : 0;
      node.seconds = index == nodes.back() ? choice.seconds : 0;
    }
    i += nodes.size();
  }
  return graph;
}

namespace {

/// What the members of one group have in common: one kernel, which has the last member's workspace.
void verify_members(const char* pass, const Node& node, const Node& next) {
  if (node.group < 0 || node.group != next.group) return;
  check(node.implementation == next.implementation, pass, "group", cat(graph::label(node), " differs from its group"));
  check(node.workspace_bytes == 0, pass, "shared workspace",
        cat(graph::label(node), " has a workspace apart from its group's"));
}

}  // namespace

void verify_select(const Graph& graph, const PlanRequest& request) {
  const char* pass = "select";
  verify_structure(graph, pass);
  check(request.target != nullptr, pass, "target", "there is no target");
  const bool plain = request.target->plain(graph, request.samples);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const std::string at = graph::label(node);
    check(!node.implementation.empty(), pass, "implementation", cat(at, " has none"));
    check(node.workspace_bytes >= 0 && node.workspace_bytes % 64 == 0, pass, "workspace",
          cat(at, " has ", node.workspace_bytes, " bytes"));
    for (const std::string& reason : node.declined)
      check(reason.find(": ") != std::string::npos &&
                reason.compare(0, node.implementation.size() + 2, node.implementation + ": ") != 0,
            pass, "reasons", cat(at, " declined \"", reason, "\""));
    if (i + 1 < graph.nodes.size()) verify_members(pass, node, graph.nodes[i + 1]);
    for (const auto* list : {&node.inputs, &node.outputs})
      for (const graph::ValueId id : *list)
        check(graph.value(id).layout == layout_of(*request.target, graph.value(id), plain), pass, "layout",
              cat(at, " refers to a value of another layout than its kind has"));
    const auto lanes = [&](graph::ValueId id) { return graph.value(id).layout == Layout::lanes; };
    if (node.op->view)
      check(lanes(node.inputs[0]) == lanes(node.outputs[0]), pass, "view", cat(at, " would change the layout"));
  }
  verify_types(graph, pass);
}

}  // namespace brisk::passes
