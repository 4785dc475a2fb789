// infer: shapes and element types of all values by the op table.
#include "passes/common.h"

namespace brisk::passes {

graph::Graph infer(graph::Graph graph, const PlanRequest&) {
  for (graph::Node& node : graph.nodes) {
    const std::vector<graph::ValueType> types = graph::infer(graph, node);
    for (size_t i = 0; i < types.size(); ++i) graph.value(node.outputs[i]).type = types[i];
  }
  return graph;
}

void verify_infer(const graph::Graph& graph, const PlanRequest&) {
  const char* pass = "infer";
  verify_structure(graph, pass);
  verify_types(graph, pass);
  for (const graph::Value& value : graph.values) {
    check(value.type.rows >= 0, pass, "rows", cat("a value has ", value.type.rows, " rows"));
    for (const int64_t size : value.type.shape)
      check(size >= 1, pass, "sizes", cat("a value has shape ", value.type.shape));
  }
  for (const graph::Value& value : graph.values) {
    if (value.place != graph::Place::parameter && value.place != graph::Place::buffer) continue;
    check(value.slot >= 0 && static_cast<size_t>(value.slot) < graph.parameters.size(), pass, "parameters",
          cat("there is no parameter ", value.slot));
    const graph::ParameterRef& ref = graph.parameters[static_cast<size_t>(value.slot)];
    check(
        value.type == graph::ValueType{DType::f32, 0, ref.shape} && ref.buffer == (value.place == graph::Place::buffer),
        pass, "parameters", cat(ref.name, " ", ref.shape, " appears as ", value.type));
  }
  for (const auto& input : graph.inputs)
    check(graph.type(input.value).batched(), pass, "inputs", cat("input ", input.name, " has no batch dimension"));
}

}  // namespace brisk::passes
