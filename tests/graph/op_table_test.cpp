// The op table as a whole: every operation has an example, and what the entries say holds of it.
#include "graph/op_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "graph/examples.h"

namespace brisk::graph {
namespace {

using test::build;
using test::error_of;
using test::Example;
using test::examples;

TEST(OpTable, NamesAreUniqueAndFound) {
  std::set<std::string_view> names;
  for (const OpInfo* info : all_ops()) {
    EXPECT_TRUE(names.insert(info->name).second) << info->name << " twice";
    EXPECT_EQ(find_op(info->name), info);
    EXPECT_NE(info->infer, nullptr) << info->name;
    EXPECT_TRUE(std::is_sorted(info->attributes.begin(), info->attributes.end(),
                               [](const AttributeInfo& a, const AttributeInfo& b) { return a.name < b.name; }) ||
                info->attributes.back().name == "classes")
        << info->name;
  }
  EXPECT_EQ(find_op("conv3d"), nullptr);
  EXPECT_NE(error_of([] { op("conv3d"); }).find("did you mean conv2d?"), std::string::npos);
}

TEST(OpTable, EveryOperationHasAnExample) {
  for (const OpInfo* info : all_ops()) {
    EXPECT_TRUE(std::any_of(examples().begin(), examples().end(), [&](const Example& example) {
      return example.op == info->name;
    })) << info->name;
  }
}

TEST(OpTable, TrainingOnlyOperationsBecomeOthers) {
  int seen = 0;
  for (const Example& example : examples()) {
    const OpInfo& info = op(example.op);
    EXPECT_EQ(info.training_only, info.evaluation != nullptr) << info.name;
    if (!info.evaluation) continue;
    ++seen;
    Graph g = build(example);
    const ValueType before = g.type(g.nodes[0].outputs[0]);
    info.evaluation(g, 0);
    EXPECT_FALSE(g.nodes[0].op->training_only) << info.name;
    ASSERT_EQ(g.nodes[0].outputs.size(), 1u) << info.name;
    EXPECT_EQ(infer(g, g.nodes[0]), std::vector<ValueType>{before}) << info.name;
    for (size_t i = 0; i < g.values.size(); ++i) {
      const bool made = g.nodes[0].outputs[0] == static_cast<ValueId>(i);
      EXPECT_EQ(g.values[i].producer, made ? 0 : -1) << info.name << " %" << i;
    }
  }
  EXPECT_GE(seen, 3);
}

TEST(OpTable, EvaluationKeepsSettingsAndResidual) {
  for (const Example& example : examples()) {
    if (example.op != "batch_norm" || example.inputs.size() != 6) continue;
    Graph g = build(example);
    g.nodes[0].op->evaluation(g, 0);
    EXPECT_EQ(g.nodes[0].op->name, "batch_norm_inference");
    EXPECT_EQ(g.nodes[0].inputs.size(), 6u);
    EXPECT_EQ(g.nodes[0].attributes.print(), "{activation = relu, epsilon = 0.1}");
    return;
  }
  FAIL() << "no example with a residual";
}

TEST(OpTable, FlopsAreFiniteAndOfOneSample) {
  for (const Example& example : examples()) {
    const Graph g = build(example);
    const double count = flops(g, g.nodes[0]);
    EXPECT_TRUE(std::isfinite(count) && count >= 0) << example.op;
  }
}

double flops_of(const std::string& name, size_t skip = 0) {
  for (const Example& example : examples()) {
    if (example.op != name || skip-- > 0) continue;
    const Graph g = build(example);
    return flops(g, g.nodes[0]);
  }
  return -1;
}

TEST(OpTable, FlopsCountMultiplyAddsTwice) {
  EXPECT_EQ(flops_of("conv2d"), 2.0 * 20 * 24 * 24 * 25);
  EXPECT_EQ(flops_of("conv2d", 1), 2.0 * 2 * 6 * 3 * 1 * 3 * 3 * 2) << "two rows; taps on padding count";
  EXPECT_EQ(flops_of("conv2d_input_gradient"), 2.0 * 6 * 3 * 1 * 3 * 3 * 2);
  EXPECT_EQ(flops_of("conv2d_weight_gradient"), 2.0 * 6 * 3 * 1 * 3 * 3 * 2);
  EXPECT_EQ(flops_of("linear", 1), 2.0 * 2 * 3 * 5);
  EXPECT_EQ(flops_of("linear_weight_gradient"), 2.0 * 3 * 5);
  EXPECT_EQ(flops_of("matmul", 2), 2.0 * 2 * 2 * 4 * 3);
  EXPECT_EQ(flops_of("relu"), 6) << "the default: one an output element";
  EXPECT_EQ(flops_of("reshape"), 0);
}

TEST(OpTable, OutputsLiveWhereTheirInputsDo) {
  const auto homes = [](const std::string& name, size_t skip) {
    std::string text;
    for (const Example& example : examples()) {
      if (example.op != name || skip-- > 0) continue;
      const Graph g = build(example);
      for (const ValueId id : g.nodes[0].outputs) {
        text += std::string(brisk::graph::name(g.value(id).place)) + " " + std::to_string(g.value(id).slot) + "; ";
      }
      break;
    }
    return text;
  };
  EXPECT_EQ(homes("sgd_walk", 0), "parameter 0; parameter 1; ");
  EXPECT_EQ(homes("sgd_walk", 1), "parameter 0; parameter 1; moment1 0; moment1 1; ");
  EXPECT_EQ(homes("adam_walk", 0), "parameter 0; parameter 1; moment1 0; moment1 1; moment2 0; moment2 1; shadow 1; ");
  EXPECT_EQ(homes("batch_norm_commit", 0), "buffer 4; buffer 6; ");
  EXPECT_EQ(homes("batch_norm_commit", 1), "staged 4; staged 6; ");
  EXPECT_EQ(homes("commit_staged", 0), "buffer 4; buffer 6; ");
  EXPECT_EQ(homes("scale_update", 0), "state 0; state 1; ");
  EXPECT_EQ(homes("select_scalars", 0), "scalar 2; scalar 0; ");
  EXPECT_EQ(homes("store", 0), "output 1; ");
  EXPECT_EQ(homes("store_gradient", 0), "gradient 1; ");
  EXPECT_EQ(homes("total", 0), "totals 1; ");
  EXPECT_EQ(homes("linear", 0), "activation -1; ");
}

}  // namespace
}  // namespace brisk::graph
