// 16-bit forms: each operation that has one infers it, whole or not at all; the others refuse 16 bits.
#include "graph/low_forms.h"

#include <gtest/gtest.h>

#include "graph/examples.h"
#include "graph/op_table.h"

namespace brisk::graph {
namespace {

using test::build;
using test::error_of;
using test::Example;
using test::examples;

bool touches_batch(const Graph& graph, const Node& node) {
  for (const auto* list : {&node.inputs, &node.outputs})
    for (const ValueId id : *list)
      if (graph.type(id).batched()) return true;
  return false;
}

TEST(LowForms, OutputsFollowTheInputs) {
  int seen = 0;
  for (const Example& example : examples()) {
    Graph graph = build(example);
    const Node& node = graph.nodes[0];
    const LowForm form = low_form(node);
    if (form.format == Format::f32 || !touches_batch(graph, node)) continue;
    const std::vector<ValueType> wide = infer(graph, node);
    bool any = false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!low_input(graph, node, static_cast<int>(i))) continue;
      graph.value(node.inputs[i]).type.dtype = DType::bf16;
      any = true;
    }
    if (!any) continue;
    ++seen;
    EXPECT_EQ(low_type(graph, node), DType::bf16) << example.op;
    const std::vector<ValueType> low = infer(graph, node);
    for (size_t i = 0; i < wide.size(); ++i) {
      const bool narrow = (form.outputs >> i & 1u) != 0 && wide[i].dtype == DType::f32;
      EXPECT_EQ(low[i].dtype, narrow ? DType::bf16 : wide[i].dtype) << example.op << " output " << i;
      EXPECT_EQ(low[i].shape, wide[i].shape) << example.op;
    }
  }
  EXPECT_GT(seen, 40);
}

TEST(LowForms, OthersRefuse16Bits) {
  int seen = 0;
  for (const Example& example : examples()) {
    Graph graph = build(example);
    const Node& node = graph.nodes[0];
    if (low_form(node).format != Format::f32 || node.inputs.empty()) continue;
    if (example.op == "load" || example.op == "store" || example.op == "cast") continue;
    if (graph.type(node.inputs[0]).dtype != DType::f32) continue;
    graph.value(node.inputs[0]).type.dtype = DType::f16;
    ++seen;
    EXPECT_NE(error_of([&] { infer(graph, node); }).find("is f16: must be f32"), std::string::npos) << example.op;
  }
  EXPECT_GT(seen, 10);
}

TEST(LowForms, OperandsOfTwoKindsAreRefused) {
  const auto refusal = [](DType a, DType b) {
    Graph graph;
    const ValueId x = graph.add_value({a, 1, {3}}), y = graph.add_value({b, 1, {3}});
    return error_of([&] { graph.emit("add", {x, y}); });
  };
  EXPECT_EQ(refusal(DType::f16, DType::f16), "");
  EXPECT_NE(refusal(DType::f16, DType::bf16).find("another 16-bit type"), std::string::npos);
  EXPECT_NE(refusal(DType::f16, DType::f32).find("others have 16 bits"), std::string::npos);
}

TEST(LowForms, ParametersOfElementwiseOperationsStayF32) {
  Graph graph;
  const ValueId x = graph.add_value({DType::f16, 1, {3}}), w = graph.add_value({DType::f32, 0, {3}});
  EXPECT_EQ(graph.type(graph.emit("mul", {x, w})).dtype, DType::f16);
}

}  // namespace
}  // namespace brisk::graph
