// autodiff: who gets a gradient, where contributions meet, and graphs that its verifier refuses. (Values of gradients
// are compared with finite differences elsewhere.)
#include <set>

#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/reduce.h"
#include "passes/broken.h"

namespace brisk::passes::test {
namespace {

/// sample_mean of a function of x [N, 6].
Program mean_program(const Model& model) {
  return trace_program(Inputs{{"x", {6}}}, [&](const Vars& in) { return sample_mean(model(in["x"])); });
}
Program mean_program(const ModelFunction& function) { return mean_program(Model(function, Shape{6})); }

std::set<std::string> with_gradient(const Graph& graph) {
  std::set<std::string> names;
  for (const graph::Value& value : graph.values)
    if (value.place == Place::gradient && value.producer >= 0)
      names.insert(graph.parameters[static_cast<size_t>(value.slot)].name);
  return names;
}

std::set<std::string> trained(const Graph& graph) {
  std::set<std::string> names;
  for (const graph::ParameterRef& ref : graph.parameters)
    if (ref.trainable) names.insert(ref.name);
  return names;
}

TEST(Autodiff, EveryTrainedParameterGetsOneGradient) {
  const Graph graph = after("autodiff");
  EXPECT_EQ(with_gradient(graph), trained(graph));
  EXPECT_EQ(with_gradient(graph).size(), 11u);
}

TEST(Autodiff, EachTermHasItsSeed) {
  const Graph graph = after("autodiff");
  EXPECT_EQ(graph.scalars, (std::vector<std::string>{"seed.class", "seed.value"}));
  EXPECT_EQ(count(graph, "seed_rows"), 2);
  EXPECT_EQ(count(graph, "seed_count"), 0);
}

TEST(Autodiff, TermsWithACountOfTheirOwnMayBeCountedFirst) {
  PlanRequest request = request_for(Phase::train);
  request.seeds_from_host = false;
  const Graph graph = after("autodiff", small_program().graph, request);
  EXPECT_EQ(graph.scalars, std::vector<std::string>{"seed.value"}) << "rows of an mse are known without a count";
  EXPECT_EQ(count(graph, "seed_count"), 1);
}

TEST(Autodiff, FrozenParametersGetNone) {
  Model model = small_model();
  model.freeze({"conv1.*", "fc1.bias"});
  const Graph graph = after("autodiff", small_program(model).graph, request_for(Phase::train));
  const std::set<std::string> names = with_gradient(graph);
  EXPECT_EQ(names, trained(graph));
  EXPECT_EQ(names.count("conv1.weight") + names.count("conv1.bias") + names.count("fc1.bias"), 0u);
  EXPECT_EQ(count(graph, "conv2d_weight_gradient"), 1);
  EXPECT_EQ(count(graph, "max_pool2d_gradient"), 0) << "nothing below needs a gradient";
}

TEST(Autodiff, WithEverythingFrozenThereIsNoBackwardPass) {
  Model model = small_model();
  model.freeze({"*"});
  const Graph graph = after("autodiff", small_program(model).graph, request_for(Phase::train));
  for (const Node& node : graph.nodes) EXPECT_EQ(node.stage, Stage::forward) << graph::label(node);
}

TEST(Autodiff, EvaluationHasNoBackwardPass) {
  for (const Phase phase : {Phase::evaluate, Phase::count}) {
    const Graph graph = after("autodiff", small_program().graph, request_for(phase));
    for (const Node& node : graph.nodes) EXPECT_EQ(node.stage, Stage::forward) << graph::label(node);
    EXPECT_TRUE(with_gradient(graph).empty());
    EXPECT_TRUE(graph.scalars.empty());
  }
}

TEST(Autodiff, NothingIsDifferentiatedBelowAStop) {
  const Program program = mean_program([](Var x) { return linear(stop_gradient(tanh(linear(x, 6))), 6); });
  const Graph graph = after("autodiff", program.graph, request_for(Phase::train));
  EXPECT_EQ(with_gradient(graph), (std::set<std::string>{"fc2.bias", "fc2.weight"}));
  EXPECT_EQ(count(graph, "linear_input_gradient"), 0);
  EXPECT_EQ(count(graph, "tanh_gradient"), 0);
}

TEST(Autodiff, AConditionIsNotDifferentiated) {
  const Program program = mean_program([](Var x) { return where(linear(x, 6), x, linear(x, 6)); });
  const Graph graph = after("autodiff", program.graph, request_for(Phase::train));
  EXPECT_EQ(with_gradient(graph), (std::set<std::string>{"fc2.bias", "fc2.weight"}));
  EXPECT_EQ(count(graph, "where_gradient"), 1) << "x needs none";
}

TEST(Autodiff, SharedWeightsAddTheirContributions) {
  const Program program = mean_program([](Var x) {
    const Shared tower("tower", [](Var in) { return linear(in, 6); });
    return tower(tower(x));
  });
  const Graph graph = after("autodiff", program.graph, request_for(Phase::train));
  EXPECT_EQ(count(graph, "linear_weight_gradient"), 2);
  EXPECT_EQ(count(graph, "store_gradient"), 2) << "weight and bias, each once";
  for (const Node& node : graph.nodes)
    if (is(node, "store_gradient")) {
      const Node& sum = node_at(graph, graph.value(node.inputs[0]).producer);
      ASSERT_TRUE(is(sum, "add"));
      // Reverse order of the walk: the later call's contribution stands first.
      EXPECT_LT(graph.value(sum.inputs[0]).producer, graph.value(sum.inputs[1]).producer);
    }
}

TEST(Autodiff, AGradientMadeOnceIsBoundToItsPlace) {
  const Graph graph =
      after("autodiff", mean_program([](Var x) { return linear(x, 3); }).graph, request_for(Phase::train));
  EXPECT_EQ(count(graph, "store_gradient"), 0);
  EXPECT_EQ(graph.value(output(graph, "linear_weight_gradient")).place, Place::gradient);
  EXPECT_EQ(graph.value(output(graph, "channel_sum")).place, Place::gradient);
}

TEST(Autodiff, OneGradientOfTwoParametersIsStoredTwice) {
  // What adds up in one parameter's place over micro-batches must not be what the other one reads.
  const Program program =
      mean_program([](Var x) { return bias_add(x, parameter("first", {6}) + parameter("second", {6})); });
  const Graph graph = after("autodiff", program.graph, request_for(Phase::train));
  EXPECT_EQ(with_gradient(graph), (std::set<std::string>{"first", "second"}));
  EXPECT_EQ(count(graph, "store_gradient"), 2);
  EXPECT_EQ(graph.value(output(graph, "channel_sum")).place, Place::activation);
}

TEST(Autodiff, TwoTermsOfTheSameRows) {
  const Model model([](Var x) { return reduce_mean(linear(x, 3)); }, Shape{6});
  const Program program = trace_program(Inputs{{"x", {6}}}, [&](const Vars& in) {
    const Var rows = model(in["x"]);
    return sample_mean(rows, {.name = "a"}) + 0.5 * sample_mean(rows, {.name = "b"});
  });
  ASSERT_EQ(program.graph.objective[0].per_row, program.graph.objective[1].per_row);
  const Graph graph = after("autodiff", program.graph, request_for(Phase::train));
  EXPECT_EQ(count(graph, "seed_rows"), 2);
  EXPECT_EQ(count(graph, "add"), 1) << "their seeds are added";
}

TEST(Autodiff, GradientsOfInputsBecomeOutputs) {
  Program program = mean_program([](Var x) { return tanh(linear(x, 3)); });
  program.graph.wanted_gradients = {output(program.graph, "load")};
  const Graph graph = after("autodiff", program.graph, request_for(Phase::train));
  ASSERT_EQ(graph.outputs.size(), 1u);
  EXPECT_EQ(graph.outputs[0].name, "gradient.x");
  EXPECT_EQ(graph.value(graph.outputs[0].value).place, Place::output);
  EXPECT_EQ(graph.type(graph.outputs[0].value).text(), "[N, 6]");
  EXPECT_EQ(count(graph, "linear_input_gradient"), 1);
  EXPECT_EQ(
      count(after("autodiff", mean_program([](Var x) { return tanh(linear(x, 3)); }).graph, request_for(Phase::train)),
            "linear_input_gradient"),
      0)
      << "nobody else needs it";
}

ValueId gradient(const Graph& graph, int nth) {
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (graph.values[i].place == Place::gradient && graph.values[i].producer >= 0 && nth-- == 0)
      return static_cast<ValueId>(i);
  return graph::kNoValue;
}

int32_t end(const Graph& graph) { return static_cast<int32_t>(graph.nodes.size()); }

const std::vector<Broken> kBroken = {
    {"CommitTooEarly", Phase::train, [](Graph& g, PlanRequest&) { g.nodes.back().stage = Stage::commit; }, "stages"},
    {"GradientOfAFrozenParameter", Phase::train,
     [](Graph& g, PlanRequest&) { g.parameters[static_cast<size_t>(g.value(gradient(g, 0)).slot)].trainable = false; },
     "frozen"},
    {"GradientOfAnotherShape", Phase::train,
     [](Graph& g, PlanRequest&) {
       g.value(output(g, "conv2d_weight_gradient")).slot = g.value(output(g, "linear_weight_gradient")).slot;
     },
     "shape"},
    {"TwoGradientsOfOneParameter", Phase::train,
     [](Graph& g, PlanRequest&) {
       const Node& norm = node(g, "batch_norm_gradient");
       g.value(norm.outputs[2]).slot = g.value(norm.outputs[1]).slot;
     },
     "once"},
    {"GradientInTheForwardPass", Phase::train,
     [](Graph& g, PlanRequest&) {
       const ValueId bias = node(g, "conv2d").inputs[2];
       insert(g, 0, "store_gradient", {bias}, {{"slot", int64_t{g.value(bias).slot}}});
     },
     "backward"},
    {"BackwardPassInEvaluation", Phase::predict, [](Graph& g, PlanRequest&) { g.nodes.back().stage = Stage::backward; },
     "evaluation"},
    {"TermSeededTwice", Phase::train,
     [](Graph& g, PlanRequest&) { insert(g, end(g), "seed_rows", node(g, "seed_rows").inputs, {}, Stage::backward); },
     "seeds"},
    {"ParameterForgotten", Phase::train, [](Graph& g, PlanRequest&) { erase(g, find(g, "conv2d_weight_gradient")); },
     "complete"},
    {"SumOfMicroBatchesRead", Phase::train,
     [](Graph& g, PlanRequest&) { insert(g, end(g), "relu", {gradient(g, 0)}, {}, Stage::backward); }, "accumulates"},
    {"ForwardValueThatIsNotKept", Phase::train,
     [](Graph& g, PlanRequest&) { insert(g, end(g), "relu", {output(g, "accuracy")}, {}, Stage::backward); }, "reads"},
};

class BrokenAutodiff : public testing::TestWithParam<Broken> {};
TEST_P(BrokenAutodiff, IsRefused) { expect_refused("autodiff", GetParam()); }
INSTANTIATE_TEST_SUITE_P(Ten, BrokenAutodiff, testing::ValuesIn(kBroken), name_of);
TEST(Autodiff, TenBrokenGraphs) { expect_ten_or_more(kBroken); }

TEST(Autodiff, AScalarWithoutASeedIsRefused) {
  expect_refused("autodiff",
                 {"Scalar", Phase::train,
                  [](Graph& g, PlanRequest&) { std::swap(g.objective[0].seed, g.objective[1].seed); }, "seeds"});
}

}  // namespace
}  // namespace brisk::passes::test
