// precision: which format each value has. Everything is computed in f32 for now; other recipes are refused.
#include "passes/common.h"

namespace brisk::passes {

graph::Graph precision(graph::Graph graph, const PlanRequest& request) {
  if (request.precision != Precision::f32)
    throw Error(ErrorCode::option, "StepOptions.precision", "this release computes in f32; use Precision::f32");
  return graph;
}

void verify_precision(const graph::Graph& graph, const PlanRequest&) {
  const char* pass = "precision";
  verify_structure(graph, pass);
  verify_types(graph, pass);
  for (const graph::Value& value : graph.values) {
    const bool master = value.place == graph::Place::parameter || value.place == graph::Place::buffer ||
                        value.place == graph::Place::gradient || value.place == graph::Place::moment1 ||
                        value.place == graph::Place::moment2 || value.place == graph::Place::scalar ||
                        value.place == graph::Place::totals;
    check(!master || value.type.dtype == DType::f32, pass, "masters",
          cat(graph::name(value.place), " is ", name(value.type.dtype)));
    check(value.type.dtype != DType::f16 && value.type.dtype != DType::bf16, pass, "low",
          cat("a value is ", name(value.type.dtype), " in an f32 plan"));
  }
  for (const graph::Node& node : graph.nodes)
    for (const graph::ValueId id : node.inputs)
      check(!is(node, "add") || graph.type(id).dtype == DType::f32, pass, "arithmetic",
            cat(graph::label(node), " reads integers"));
}

}  // namespace brisk::passes
