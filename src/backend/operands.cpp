#include "backend/operands.h"

#include <algorithm>

namespace brisk::backend {

using graph::Graph;
using graph::Node;
using graph::ValueId;

std::vector<ValueId> bound_inputs(const Graph& graph, const std::vector<int32_t>& nodes) {
  if (nodes.size() == 1) return graph.nodes[static_cast<size_t>(nodes[0])].inputs;
  std::vector<ValueId> made, inputs;
  const auto in = [](const std::vector<ValueId>& list, ValueId id) {
    return std::find(list.begin(), list.end(), id) != list.end();
  };
  for (const int32_t index : nodes) {
    const Node& node = graph.nodes[static_cast<size_t>(index)];
    for (const ValueId id : node.inputs)
      if (!in(made, id) && !in(inputs, id)) inputs.push_back(id);
    made.insert(made.end(), node.outputs.begin(), node.outputs.end());
  }
  return inputs;
}

std::vector<ValueId> bound_outputs(const Graph& graph, const std::vector<int32_t>& nodes) {
  return graph.nodes[static_cast<size_t>(nodes.back())].outputs;
}

}  // namespace brisk::backend
