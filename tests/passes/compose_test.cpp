// compose: which pairs become one operation, what keeps them apart, and graphs that its verifier refuses.
#include "brisk/ops/conv.h"
#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/norm.h"
#include "brisk/ops/shape.h"
#include "brisk/ops/softmax.h"
#include "graph/model_state.h"
#include "passes/broken.h"

namespace brisk::passes::test {
namespace {

Graph composed(const ModelFunction& function, Shape input = {2, 5, 5}) {
  return after("compose", Model(function, input).state()->graph, request_for(Phase::predict));
}

std::string activation(const Graph& graph, std::string_view op, int nth = 0) {
  return node_at(graph, find(graph, op, nth)).attributes.text("activation");
}

TEST(Compose, ConvolutionBiasActivation) {
  const Graph graph = composed([](Var x) {
    const Var y = conv2d(x, {.bias = false, .channels = 3, .kernel = 3});
    return relu(bias_add(y, parameter("shift", {3})));
  });
  EXPECT_EQ(count(graph, "bias_add") + count(graph, "relu"), 0) << graph::print(graph);
  EXPECT_EQ(node_at(graph, find(graph, "conv2d")).inputs.size(), 3u);
  EXPECT_EQ(activation(graph, "conv2d"), "relu");
}

TEST(Compose, LinearWithEachActivation) {
  const std::vector<std::pair<std::string, Var (*)(Var, Where)>> functions = {
      {"relu", relu}, {"tanh", tanh}, {"sigmoid", sigmoid}};
  for (const auto& [name, function] : functions) {
    const Graph graph = composed([f = function](Var x) { return f(linear(x, 3), Where{}); }, {6});
    EXPECT_EQ(count(graph, name), 0);
    EXPECT_EQ(activation(graph, "linear"), name);
  }
}

TEST(Compose, OneActivationOnly) {
  const Graph graph = composed([](Var x) { return tanh(relu(linear(x, 3))); }, {6});
  EXPECT_EQ(activation(graph, "linear"), "relu");
  EXPECT_EQ(count(graph, "tanh"), 1);
}

TEST(Compose, ABiasBehindAnActivationStays) {
  const Graph graph = composed([](Var x) {
    return bias_add(relu(conv2d(x, {.bias = false, .channels = 3, .kernel = 3})), parameter("shift", {3}));
  });
  EXPECT_EQ(count(graph, "bias_add"), 1);
  const Graph second =
      composed([](Var x) { return bias_add(conv2d(x, {.channels = 3, .kernel = 3}), parameter("shift", {3})); });
  EXPECT_EQ(count(second, "bias_add"), 1) << "the convolution has its own bias already";
}

TEST(Compose, BatchNormAddActivation) {
  for (const bool left : {true, false}) {
    const Graph graph = composed([left](Var x) {
      const Var y = batch_norm(x);
      return relu(left ? y + x : x + y);
    });
    const Node& norm = node_at(graph, find(graph, "batch_norm_inference"));
    EXPECT_EQ(count(graph, "add") + count(graph, "relu"), 0);
    ASSERT_EQ(norm.inputs.size(), 6u);
    EXPECT_EQ(norm.inputs[5], output(graph, "load"));
    EXPECT_EQ(norm.attributes.text("activation"), "relu");
  }
}

TEST(Compose, AnAdditionThatBroadcastsStays) {
  const Graph graph = composed([](Var x) { return batch_norm(x) + parameter("shift", {5}); });
  EXPECT_EQ(count(graph, "add"), 1);
}

TEST(Compose, OfTwoNormsOneTakesTheOtherAsResidual) {
  const Graph graph = composed([](Var x) { return relu(batch_norm(x) + batch_norm(x)); });
  EXPECT_EQ(count(graph, "batch_norm_inference"), 2);
  EXPECT_EQ(count(graph, "add") + count(graph, "relu"), 0);
}

TEST(Compose, SiluJoinsANormWithoutResidualAlone) {
  const Graph norm = composed([](Var x) { return silu(batch_norm(x)); });
  EXPECT_EQ(count(norm, "silu"), 0);
  EXPECT_EQ(activation(norm, "batch_norm_inference"), "silu");
  EXPECT_EQ(count(composed([](Var x) { return silu(batch_norm(x) + x); }), "silu"), 1);
  EXPECT_EQ(count(composed([](Var x) { return silu(linear(x, 3)); }, {6}), "silu"), 1) << "its input is kept";
}

TEST(Compose, SoftmaxCrossEntropy) {
  const Graph graph = after("compose");
  EXPECT_EQ(count(graph, "log_softmax") + count(graph, "negative_log_likelihood"), 0);
  const Node& loss = node_at(graph, find(graph, "softmax_cross_entropy"));
  ASSERT_EQ(loss.outputs.size(), 3u) << "the probabilities are kept for the derivative";
  EXPECT_EQ(graph.objective[0].per_row, loss.outputs[0]);
  EXPECT_EQ(graph.objective[0].row_weight, loss.outputs[1]);
}

TEST(Compose, TheSmallNetwork) {
  const Graph graph = after("compose");
  EXPECT_EQ(count(graph, "relu"), 0) << graph::print(graph);
  EXPECT_EQ(count(graph, "tanh"), 1) << "behind a pool it stays alone";
  EXPECT_EQ(activation(graph, "batch_norm"), "relu");
  EXPECT_EQ(node_at(graph, find(graph, "batch_norm")).name, "bn1");
}

TEST(Compose, FanOutKeepsApart) {
  const Graph twice = composed(
      [](Var x) {
        const Var y = linear(x, 3);
        return relu(y) + y;
      },
      {6});
  EXPECT_EQ(count(twice, "relu"), 1) << "the sum before the activation is needed too";
  EXPECT_EQ(activation(twice, "linear"), "none");

  const Graph kept = composed(
      [](const Vars& in) {
        const Var y = linear(in["input"], 3);
        return Vars{{"before", y}, {"after", relu(y)}};
      },
      {6});
  EXPECT_EQ(count(kept, "relu"), 1) << "an output is a reader";

  const Graph log = composed([](Var x) { return log_softmax(linear(x, 3)); }, {6});
  EXPECT_EQ(count(log, "log_softmax"), 1) << "there is no loss to join";
}

TEST(Compose, RunsToTheEnd) {
  const PlanRequest request = request_for(Phase::train);
  const Graph once = after("compose");
  EXPECT_EQ(graph::print(compose(once, request)), graph::print(once));
}

const std::vector<Broken> kBroken = {
    {"UnknownActivation", Phase::train,
     [](Graph& g, PlanRequest&) { node(g, "conv2d").attributes.set("activation", std::string("swish")); },
     "activation"},
    {"ResidualOfAnotherType", Phase::train,
     [](Graph& g, PlanRequest&) { node(g, "batch_norm").inputs.back() = output(g, "conv2d"); }, "residual"},
    {"PairLeftApart", Phase::train,
     [](Graph& g, PlanRequest&) {
       node(g, "conv2d").attributes.set("activation", std::string("none"));
       const ValueId made = insert(g, find(g, "conv2d") + 1, "relu", {output(g, "conv2d")});
       node(g, "max_pool2d").inputs[0] = made;
     },
     "complete"},
    {"ProducerOfASwallowedValue", Phase::train,
     [](Graph& g, PlanRequest&) {
       const ValueId left = g.add_value({DType::f32, 1, {3}});
       g.value(left).producer = static_cast<int32_t>(g.nodes.size());
     },
     "producer"},
    {"SwallowedNodeLeft", Phase::train,
     [](Graph& g, PlanRequest&) { insert(g, find(g, "batch_norm"), "relu", {output(g, "tanh")}); }, "dead"},
    {"TermOfASwallowedValue", Phase::train,
     [](Graph& g, PlanRequest&) {
       g.objective[0].per_row = g.add_value({DType::f32, 1, {}});
     },
     "terms"},
    {"BiasOfAnotherLayer", Phase::train,
     [](Graph& g, PlanRequest&) { node(g, "conv2d").inputs[2] = node(g, "linear").inputs[2]; }, "types"},
    {"BatchStatisticsInEvaluation", Phase::predict,
     [](Graph& g, PlanRequest&) {
       Node& norm = node(g, "batch_norm_inference");
       norm.op = &graph::op("batch_norm");
       norm.attributes.set("momentum", 0.1);
     },
     "evaluation"},
    {"BackwardNode", Phase::train, [](Graph& g, PlanRequest&) { g.nodes.back().stage = Stage::backward; }, "forward"},
    {"NoProbabilitiesKept", Phase::train,
     [](Graph& g, PlanRequest&) { node(g, "softmax_cross_entropy").outputs.pop_back(); }, "outputs"},
};

class BrokenCompose : public testing::TestWithParam<Broken> {};
TEST_P(BrokenCompose, IsRefused) { expect_refused("compose", GetParam()); }
INSTANTIATE_TEST_SUITE_P(Ten, BrokenCompose, testing::ValuesIn(kBroken), name_of);
TEST(Compose, TenBrokenGraphs) { expect_ten_or_more(kBroken); }

}  // namespace
}  // namespace brisk::passes::test
