// trace: what each phase keeps of a program, and graphs that its verifier refuses.
#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "passes/broken.h"

namespace brisk::passes::test {
namespace {

TEST(Trace, TrainingKeepsWhatRandomnessAndStatisticsNeed) {
  const Graph graph = after("trace");
  EXPECT_EQ(graph.phase, Phase::train);
  EXPECT_EQ(count(graph, "dropout"), 1);
  EXPECT_EQ(count(graph, "batch_norm"), 1);
  EXPECT_EQ(count(graph, "total"), 3) << "two terms and a metric";
  EXPECT_EQ(graph.totals, (std::vector<std::string>{"class", "value", "accuracy"}));
  EXPECT_TRUE(graph.outputs.empty());
}

TEST(Trace, EvaluationHasNoDropoutAndNoBatchStatistics) {
  for (const Phase phase : {Phase::evaluate, Phase::predict}) {
    const Graph graph = after("trace", phase);
    EXPECT_EQ(count(graph, "dropout"), 0);
    EXPECT_EQ(count(graph, "batch_norm"), 0);
    EXPECT_EQ(count(graph, "batch_norm_inference"), 1);
    for (const Node& node : graph.nodes) EXPECT_FALSE(node.op->training_only) << graph::label(node);
  }
}

TEST(Trace, PredictionStoresOutputsInTheirOrder) {
  const Graph graph = after("trace", Phase::predict);
  ASSERT_EQ(graph.outputs.size(), 2u);
  EXPECT_EQ(graph.outputs[0].name, "logits");
  EXPECT_EQ(graph.outputs[1].name, "value");
  for (int32_t slot = 0; slot < 2; ++slot) {
    const graph::Value& stored = graph.value(graph.outputs[static_cast<size_t>(slot)].value);
    EXPECT_EQ(stored.place, Place::output);
    EXPECT_EQ(stored.slot, slot);
  }
  EXPECT_EQ(count(graph, "total"), 0);
}

TEST(Trace, CountingNeedsTheLabelsAlone) {
  const Graph graph = after("trace", small_program().graph, request_for(Phase::count));
  EXPECT_EQ(count(graph, "total"), 1) << "the mse counts rows, which need no graph";
  EXPECT_EQ(graph.totals, std::vector<std::string>{"class"});
  EXPECT_EQ(count(graph, "accuracy"), 0);
}

TEST(Trace, WhatNobodyNeedsIsDropped) {
  const Graph graph = after("trace", function_graph([](Var x) {
                              const Var left = linear(x, 3);
                              linear(x, 5);
                              return left;
                            }),
                            request_for(Phase::predict));
  EXPECT_EQ(count(graph, "linear"), 1);
}

TEST(Trace, AFrozenLayerUsesItsRunningStatistics) {
  Model model = small_model();
  model.freeze({"bn1.*"});
  const Graph graph = after("trace", small_program(model).graph, request_for(Phase::train));
  EXPECT_EQ(count(graph, "batch_norm"), 0);
  EXPECT_EQ(count(graph, "batch_norm_inference"), 1);
  EXPECT_EQ(count(graph, "dropout"), 1);
}

const std::vector<Broken> kBroken = {
    {"AnotherPhase", Phase::predict, [](Graph& g, PlanRequest&) { g.phase = Phase::evaluate; }, "phase"},
    {"TwoInputsOfOneName", Phase::train, [](Graph& g, PlanRequest&) { g.inputs[1].name = g.inputs[0].name; }, "inputs"},
    {"BackwardNode", Phase::train, [](Graph& g, PlanRequest&) { g.nodes.back().stage = Stage::backward; }, "forward"},
    {"DropoutLeft", Phase::predict,
     [](Graph& g, PlanRequest&) {
       Node& left = node(g, "identity");
       left.op = &graph::op("dropout");
       left.attributes = {{"rate", 0.5}, {"stream", int64_t{1}}};
     },
     "evaluation"},
    {"InputReadWithoutLoad", Phase::train, [](Graph& g, PlanRequest&) { insert(g, 0, "relu", {g.inputs[0].value}); },
     "load"},
    {"NodeWithoutEffect", Phase::train,
     [](Graph& g, PlanRequest&) { insert(g, static_cast<int32_t>(g.nodes.size()), "relu", {output(g, "linear")}); },
     "dead"},
    {"TermNotAddedUp", Phase::train, [](Graph& g, PlanRequest&) { g.objective[0].totals = -1; }, "totals"},
    {"TwoTermsOneAccumulator", Phase::train,
     [](Graph& g, PlanRequest&) { g.objective[1].totals = g.objective[0].totals; }, "accumulators"},
    {"TermOfWholeRows", Phase::train, [](Graph& g, PlanRequest&) { g.objective[1].per_row = output(g, "linear"); },
     "objective"},
    {"OutputNotStored", Phase::predict, [](Graph& g, PlanRequest&) { g.outputs[0].value = output(g, "linear"); },
     "outputs"},
};

class BrokenTrace : public testing::TestWithParam<Broken> {};
TEST_P(BrokenTrace, IsRefused) { expect_refused("trace", GetParam()); }
INSTANTIATE_TEST_SUITE_P(Ten, BrokenTrace, testing::ValuesIn(kBroken), name_of);
TEST(Trace, TenBrokenGraphs) { expect_ten_or_more(kBroken); }

TEST(Trace, AMetricNeedsAnAccumulatorToo) {
  expect_refused("trace", {"Metric", Phase::train, [](Graph& g, PlanRequest&) { g.metrics[0].totals = 9; }, "totals"});
}

}  // namespace
}  // namespace brisk::passes::test
