// precision: which format each value has. Everything is computed in f32 for now; other recipes are refused.
#include "passes/common.h"

namespace brisk::passes {

graph::Graph precision(graph::Graph graph, const PlanRequest& request) {
  if (request.precision != Precision::f32)
    throw Error(ErrorCode::option, "StepOptions.precision", "this release computes in f32; use Precision::f32");
  return graph;
}

namespace {

/// The rule that a value in memory that outlasts a run, or is shared with the host, would break; nullptr: none.
const char* f32_rule(graph::Place place) {
  switch (place) {
    case graph::Place::parameter:
      return "parameters";
    case graph::Place::buffer:
      return "statistics";
    case graph::Place::gradient:
      return "gradients";
    case graph::Place::moment1:
    case graph::Place::moment2:
      return "moments";
    case graph::Place::scalar:
      return "scalars";
    case graph::Place::totals:
      return "totals";
    default:
      return nullptr;
  }
}

}  // namespace

void verify_precision(const graph::Graph& graph, const PlanRequest& request) {
  const char* pass = "precision";
  verify_structure(graph, pass);
  check(request.precision == Precision::f32, pass, "recipe", "the graph computes in f32, another recipe was asked for");
  for (const graph::Value& value : graph.values) {
    const DType dtype = value.type.dtype;
    if (const char* rule = f32_rule(value.place))
      check(dtype == DType::f32, pass, rule, cat(graph::name(value.place), " is ", name(dtype)));
    check(dtype != DType::f16 && dtype != DType::bf16, pass, "low", cat("a value is ", name(dtype), " in an f32 plan"));
  }
  for (const graph::Node& node : graph.nodes)
    for (const graph::ValueId id : node.inputs)
      check(!node.op->elementwise || graph.type(id).dtype == DType::f32, pass, "arithmetic",
            cat(graph::label(node), " reads integers"));
  for (const auto* terms : {&graph.objective, &graph.metrics})
    for (const graph::Term& term : *terms)
      check(graph.type(term.per_row).dtype == DType::f32, pass, "terms", cat("term ", term.name, " is not f32"));
  verify_types(graph, pass);
}

}  // namespace brisk::passes
