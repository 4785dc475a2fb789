// group: elementwise chains become one kernel. A producer joins its only reader when both make values of one type, so
// that every other operand is there when the last member's turn comes. Reversible: select may run the members apart.
#include <algorithm>
#include <map>

#include "graph/low_forms.h"
#include "passes/common.h"

namespace brisk::passes {

using graph::Graph;
using graph::Node;
using graph::ValueId;

namespace {

/// Operand kinds that a fused kernel reads: a tile like the output's, or one number for all.
bool operand_fits(const graph::ValueType& operand, const graph::ValueType& output) {
  return operand == output || (!operand.batched() && operand.shape.count() == 1 && operand.dtype == DType::f32);
}

bool may_be_member(const Graph& graph, const Node& node) {
  if (!node.op->elementwise || node.outputs.size() != 1) return false;
  const graph::Value& out = graph.value(node.outputs[0]);
  if (out.place != graph::Place::activation || !(out.type.dtype == DType::f32 || graph::is_low(out.type.dtype)))
    return false;
  for (const ValueId id : node.inputs)
    if (!operand_fits(graph.type(id), out.type)) return false;
  return true;
}

std::vector<int> uses(const Graph& graph) {
  std::vector<int> counts(graph.values.size(), 0);
  for (const Node& node : graph.nodes)
    for (const ValueId id : node.inputs) ++counts[static_cast<size_t>(id)];
  return counts;
}

}  // namespace

Graph group(Graph graph, const PlanRequest&) {
  const std::vector<int> counts = uses(graph);
  int32_t groups = 0;
  // From the back: a reader has its group before its producers are looked at.
  for (auto index = static_cast<int32_t>(graph.nodes.size()) - 1; index >= 0; --index) {
    Node& node = graph.nodes[static_cast<size_t>(index)];
    if (!may_be_member(graph, node)) continue;
    for (const ValueId id : node.inputs) {
      const int32_t from = graph.value(id).producer;
      if (from < 0 || counts[static_cast<size_t>(id)] != 1) continue;
      Node& producer = graph.nodes[static_cast<size_t>(from)];
      if (producer.stage != node.stage || !may_be_member(graph, producer) ||
          !(graph.type(id) == graph.type(node.outputs[0])))
        continue;
      if (node.group < 0) node.group = groups++;
      producer.group = node.group;
    }
  }
  std::map<int32_t, int32_t> last;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].group >= 0) last[graph.nodes[i].group] = static_cast<int32_t>(i);
  std::vector<int32_t> order;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const int32_t member_of = graph.nodes[i].group;
    if (member_of < 0) order.push_back(static_cast<int32_t>(i));
    if (member_of < 0 || last[member_of] != static_cast<int32_t>(i)) continue;
    for (size_t k = 0; k <= i; ++k)
      if (graph.nodes[k].group == member_of) order.push_back(static_cast<int32_t>(k));
  }
  reorder(graph, order);
  return graph;
}

namespace {

void verify_member(const Graph& graph, const char* pass, const Node& node, const Node& last) {
  const std::string at = graph::label(node);
  check(node.op->elementwise, pass, "elementwise", cat(at, " is not elementwise"));
  check(node.stage == last.stage, pass, "stage", cat(at, " is of another stage than its group"));
  check(graph.type(node.outputs[0]) == graph.type(last.outputs[0]), pass, "type",
        cat(at, " makes another type than its group"));
  check(may_be_member(graph, node), pass, "operands", cat(at, " has an operand that a fused kernel cannot read"));
}

}  // namespace

void verify_group(const Graph& graph, const PlanRequest&) {
  const char* pass = "group";
  verify_structure(graph, pass);
  verify_types(graph, pass);
  const auto readers = graph.consumers();
  std::map<int32_t, std::vector<int32_t>> members;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    check(graph.nodes[i].group >= -1, pass, "number", cat("there is a group ", graph.nodes[i].group));
    if (graph.nodes[i].group >= 0) members[graph.nodes[i].group].push_back(static_cast<int32_t>(i));
  }
  for (const auto& [id, nodes] : members) {
    check(nodes.size() >= 2, pass, "size", cat("group ", id, " has one member"));
    check(nodes.back() - nodes.front() + 1 == static_cast<int32_t>(nodes.size()), pass, "contiguous",
          cat("group ", id, " is torn apart"));
    for (const int32_t index : nodes) {
      const Node& node = node_at(graph, index);
      verify_member(graph, pass, node, node_at(graph, nodes.back()));
      if (index == nodes.back()) continue;
      const auto& list = readers[static_cast<size_t>(node.outputs[0])];
      const auto inside = [&, group = id](int32_t reader) { return node_at(graph, reader).group == group; };
      check(!list.empty() && std::any_of(list.begin(), list.end(), inside), pass, "connected",
            cat(graph::label(node), " is read by nobody in its group"));
      check(std::all_of(list.begin(), list.end(), inside), pass, "escape",
            cat(graph::label(node), " is read outside its group"));
    }
  }
}

}  // namespace brisk::passes
