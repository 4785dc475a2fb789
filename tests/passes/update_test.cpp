// update: what closes a micro-batch and a window, for each optimizer, and graphs that its verifier refuses.
#include <algorithm>
#include <limits>

#include "brisk/ops/linear.h"
#include "brisk/ops/norm.h"
#include "passes/broken.h"

namespace brisk::passes::test {
namespace {

const Node& walk_of(const Graph& graph) {
  return node_at(graph, find(graph, count(graph, "adam_walk") ? "adam_walk" : "sgd_walk"));
}

TEST(Update, OneWalkOverAllGradientsInCanonicalOrder) {
  const Graph graph = after("update");
  const Node& walk = walk_of(graph);
  std::vector<int32_t> slots;
  for (const ValueId id : walk.outputs)
    if (graph.value(id).place == Place::parameter) slots.push_back(graph.value(id).slot);
  EXPECT_EQ(slots.size(), 11u);
  EXPECT_TRUE(std::is_sorted(slots.begin(), slots.end()));
  EXPECT_EQ(walk.stage, Stage::update);
  EXPECT_EQ(node_at(graph, find(graph, "gradient_stats")).inputs.size(), 12u) << "the ratio and all gradients";
}

TEST(Update, WhatEachOptimizerReads) {
  struct Case {
    Optimizer optimizer;
    size_t operands;  // of each parameter
    std::vector<std::string> scalars;
  };
  const std::vector<std::string> sgd_scalars = {"ratio", "rate", "first"},
                                 adam_scalars = {"ratio", "rate", "bias1", "bias2"};
  const std::vector<Case> cases = {{sgd({.learning_rate = 0.1}), 2, sgd_scalars},
                                   {sgd({.learning_rate = 0.1, .momentum = 0.9, .nesterov = true}), 3, sgd_scalars},
                                   {adam(), 4, adam_scalars},
                                   {adamw(), 4, adam_scalars}};
  for (const Case& expected : cases) {
    PlanRequest request = request_for(Phase::train);
    request.optimizer = expected.optimizer;
    const Graph graph = after("update", small_program().graph, request);
    const Node& walk = walk_of(graph);
    EXPECT_EQ(walk.inputs.size(), expected.scalars.size() + 1 + 11 * expected.operands);
    EXPECT_EQ(walk.outputs.size(), 11 * (expected.operands - 1));
    for (const std::string& name : expected.scalars)
      EXPECT_EQ(std::count(graph.scalars.begin(), graph.scalars.end(), name), 1) << name;
    EXPECT_EQ(walk.name, expected.optimizer.name);
  }
}

TEST(Update, HandsTheOptimizersNumbersOn) {
  PlanRequest request = request_for(Phase::train);
  request.optimizer = sgd({.learning_rate = 0.1, .momentum = 0.8, .nesterov = true});
  const Graph momentum = after("update", small_program().graph, request);
  EXPECT_EQ(walk_of(momentum).attributes.real("momentum"), 0.8);
  EXPECT_TRUE(walk_of(momentum).attributes.flag("nesterov"));
  request.optimizer = adamw({.betas = {0.8, 0.95}, .epsilon = 1e-6});
  const Graph graph = after("update", small_program().graph, request);
  EXPECT_EQ(walk_of(graph).attributes.real("beta1"), 0.8);
  EXPECT_EQ(walk_of(graph).attributes.real("beta2"), 0.95);
  EXPECT_EQ(walk_of(graph).attributes.real("epsilon"), 1e-6);
  EXPECT_TRUE(walk_of(graph).attributes.flag("decoupled"));
}

TEST(Update, RulesFollowTheirParameters) {
  const Graph program = small_program().graph;
  PlanRequest request = request_for(Phase::train);
  for (size_t i = 0; i < program.parameters.size(); ++i)
    request.rules.push_back({static_cast<double>(i), 1 + static_cast<double>(i)});
  const Graph graph = after("update", program, request);
  const Node& walk = walk_of(graph);
  const std::vector<double>& decay = walk.attributes.reals("weight_decay");
  const std::vector<double>& scale = walk.attributes.reals("rate_scale");
  ASSERT_EQ(decay.size(), 11u);
  for (size_t i = 0; i < decay.size(); ++i) {
    EXPECT_EQ(decay[i], graph.value(walk.outputs[i]).slot);
    EXPECT_EQ(scale[i], graph.value(walk.outputs[i]).slot + 1);
  }
}

TEST(Update, BatchNormCommitsItsStatistics) {
  const Graph graph = after("update");
  const Node &norm = node_at(graph, find(graph, "batch_norm")),
             &commit = node_at(graph, find(graph, "batch_norm_commit"));
  EXPECT_EQ(commit.stage, Stage::commit);
  EXPECT_EQ(commit.attributes.real("momentum"), norm.attributes.real("momentum"));
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(graph.value(commit.outputs[i]).place, Place::buffer);
    EXPECT_EQ(graph.value(commit.outputs[i]).slot, graph.value(norm.inputs[i + 3]).slot);
  }
}

TEST(Update, ALayerCalledTwiceCommitsOneAfterTheOther) {
  const Model model(
      [](Var x) {
        const Shared block("block", [](Var in) { return batch_norm(in); });
        return block(block(x));
      },
      Shape{6});
  const Program program =
      trace_program(Inputs{{"x", {6}}}, [&](const Vars& in) { return sample_mean(model(in["x"])); });
  const Graph graph = after("schedule", program.graph, request_for(Phase::train));
  const Node &first = node_at(graph, find(graph, "batch_norm_commit")),
             &second = node_at(graph, find(graph, "batch_norm_commit", 1));
  EXPECT_EQ(second.inputs[2], first.outputs[0]);
  EXPECT_EQ(second.inputs[3], first.outputs[1]);
  EXPECT_LT(first.wave, second.wave);
}

TEST(Update, NothingOutsideTraining) {
  const Graph graph = after("update", small_program().graph, request_for(Phase::evaluate));
  for (const Node& node : graph.nodes) EXPECT_EQ(node.stage, Stage::forward);
  EXPECT_EQ(count(graph, "gradient_stats"), 0);
}

TEST(Update, FrozenNetworksHaveNoWalk) {
  Model model = small_model();
  model.freeze({"*"});
  const Graph graph = after("update", small_program(model).graph, request_for(Phase::train));
  EXPECT_EQ(count(graph, "sgd_walk") + count(graph, "gradient_stats") + count(graph, "batch_norm_commit"), 0);
}

/// Leaves the last parameter out of the walk.
void shorten_walk(Graph& g) {
  Node& walk = node(g, "sgd_walk");
  const size_t parameters = walk.outputs.size() / 2;
  for (const size_t gone : {2 * parameters - 1, parameters - 1}) {
    g.value(walk.outputs[gone]).producer = -1;
    walk.outputs.erase(walk.outputs.begin() + static_cast<std::ptrdiff_t>(gone));
  }
  walk.inputs.resize(walk.inputs.size() - 3);
  for (const char* list : {"weight_decay", "rate_scale"}) {
    std::vector<double> numbers = walk.attributes.reals(list);
    numbers.pop_back();
    walk.attributes.set(list, numbers);
  }
}

/// Swaps the moments of two parameters of one shape.
void swap_moments(Graph& g) {
  Node& walk = node(g, "sgd_walk");
  for (size_t a = 6; a < walk.inputs.size(); a += 3)
    for (size_t b = a + 3; b < walk.inputs.size(); b += 3)
      if (g.type(walk.inputs[a]) == g.type(walk.inputs[b])) return std::swap(walk.inputs[a], walk.inputs[b]);
}

const std::vector<Broken> kBroken = {
    {"StatisticsBeforeTheWindowEnds", Phase::train,
     [](Graph& g, PlanRequest&) { node(g, "gradient_stats").stage = Stage::commit; }, "stage"},
    {"GradientThatIsNotGuarded", Phase::train,
     [](Graph& g, PlanRequest&) { node(g, "gradient_stats").inputs.pop_back(); }, "guard"},
    {"ClipsAtAnotherNorm", Phase::train,
     [](Graph& g, PlanRequest&) { node(g, "gradient_stats").attributes.set("clip_norm", 1.0); }, "clip"},
    {"NegativeDecay", Phase::train,
     [](Graph& g, PlanRequest&) {
       Node& walk = node(g, "sgd_walk");
       std::vector<double> decay = walk.attributes.reals("weight_decay");
       decay[3] = -1;
       walk.attributes.set("weight_decay", decay);
     },
     "rules"},
    {"AnotherOptimizer", Phase::train, [](Graph&, PlanRequest& request) { request.optimizer = adamw(); }, "optimizer"},
    {"ForwardNodeThatWritesAParameter", Phase::train,
     [](Graph& g, PlanRequest&) {
       g.value(output(g, "tanh")).place = Place::parameter;
       g.value(output(g, "tanh")).slot = 0;
     },
     "writer"},
    {"NoWalk", Phase::train, [](Graph& g, PlanRequest&) { erase(g, find(g, "sgd_walk")); }, "walk"},
    {"ParameterLeftOut", Phase::train, [](Graph& g, PlanRequest&) { shorten_walk(g); }, "complete"},
    {"StatisticsNotCommitted", Phase::train, [](Graph& g, PlanRequest&) { erase(g, find(g, "batch_norm_commit")); },
     "statistics"},
    {"CommitInEvaluation", Phase::predict,
     [](Graph& g, PlanRequest&) {
       const std::vector<ValueId> norm = node(g, "batch_norm_inference").inputs;
       insert(g, static_cast<int32_t>(g.nodes.size()), "batch_norm_commit", {norm[3], norm[4], norm[3], norm[4]},
              {{"chained", false}, {"momentum", 0.1}}, Stage::commit);
     },
     "evaluation"},
    {"MomentOfAnotherParameter", Phase::train, [](Graph& g, PlanRequest&) { swap_moments(g); }, "pairs"},
};

class BrokenUpdate : public testing::TestWithParam<Broken> {};
TEST_P(BrokenUpdate, IsRefused) { expect_refused("update", GetParam()); }
INSTANTIATE_TEST_SUITE_P(Ten, BrokenUpdate, testing::ValuesIn(kBroken), name_of);
TEST(Update, TenBrokenGraphs) { expect_ten_or_more(kBroken); }

TEST(Update, FurtherRules) {
  expect_refused("update", {"Scalars", Phase::train,
                            [](Graph& g, PlanRequest&) {
                              Node& walk = node(g, "sgd_walk");
                              std::swap(walk.inputs[0], walk.inputs[2]);
                            },
                            "scalars"});
  expect_refused("update", {"Infinite", Phase::train,
                            [](Graph& g, PlanRequest&) {
                              Node& walk = node(g, "sgd_walk");
                              std::vector<double> scale = walk.attributes.reals("rate_scale");
                              scale[0] = std::numeric_limits<double>::infinity();
                              walk.attributes.set("rate_scale", scale);
                            },
                            "rules"});
  expect_refused("update", {"Unguarded", Phase::train,
                            [](Graph& g, PlanRequest&) {
                              move(g, find(g, "gradient_stats"), static_cast<int32_t>(g.nodes.size()) - 1);
                            },
                            "order"});
}

}  // namespace
}  // namespace brisk::passes::test
