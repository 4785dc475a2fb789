// recompute: repeats nothing by itself; a repetition made by hand is accepted, and broken ones are refused.
#include <stdexcept>

#include "passes/broken.h"

namespace brisk::passes::test {
namespace {

int32_t repetition(const Graph& graph) {
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].recomputes >= 0) return static_cast<int32_t>(i);
  throw std::logic_error("nothing is repeated");
}

Node& repeated(Graph& graph) { return graph.nodes[static_cast<size_t>(repetition(graph))]; }

/// tanh is computed again right before its derivative, which reads the repetition.
Graph with_repetition() {
  Graph graph = after("recompute");
  const ValueId made =
      insert(graph, find(graph, "tanh_gradient"), "tanh", node(graph, "tanh").inputs, {}, Stage::backward);
  graph.nodes[static_cast<size_t>(graph.value(made).producer)].recomputes = find(graph, "tanh");
  node(graph, "tanh_gradient").inputs[1] = made;
  return graph;
}

TEST(Recompute, RepeatsNothingUnasked) {
  const PlanRequest request = request_for(Phase::train);
  const Graph given = before("recompute", small_program().graph, request);
  EXPECT_EQ(graph::print(recompute(given, request)), graph::print(given));
  for (const Node& node : given.nodes) EXPECT_EQ(node.recomputes, -1);
}

TEST(Recompute, ARepetitionGoesThroughAllLaterPasses) {
  const PlanRequest request = request_for(Phase::train);
  Graph graph = with_repetition();
  EXPECT_NO_THROW(verify_recompute(graph, request));
  bool later = false;
  for (const Pass& pass : all()) {
    if (later) {
      graph = pass.run(std::move(graph), request);
      pass.verify(graph, request);
    }
    later |= pass.name == std::string_view("recompute");
  }
  const Node& again = repeated(graph);
  EXPECT_TRUE(is(node_at(graph, again.recomputes), "tanh")) << "the reference follows the node through reordering";
  EXPECT_EQ(node_at(graph, again.recomputes).stage, Stage::forward);
}

TEST(Recompute, ARepetitionMayReadARepetition) {
  Graph graph = with_repetition();
  // exp(tanh(x)), both again: the second repetition reads the first.
  const ValueId forward = insert(graph, find(graph, "tanh") + 1, "exp", {output(graph, "tanh")});
  const int32_t original = graph.value(forward).producer;
  const ValueId again = insert(graph, repetition(graph) + 1, "exp", {repeated(graph).outputs[0]}, {}, Stage::backward);
  graph.nodes[static_cast<size_t>(graph.value(again).producer)].recomputes = original;
  insert(graph, graph.value(again).producer + 1, "relu", {again}, {}, Stage::backward);
  EXPECT_NO_THROW(verify_recompute(graph, request_for(Phase::train)));
}

const std::vector<Broken> kBroken = {
    {"NodeThatDoesNotExist", Phase::train, [](Graph& g, PlanRequest&) { repeated(g).recomputes = 9999; }, "earlier"},
    {"InTheForwardPass", Phase::train,
     [](Graph& g, PlanRequest&) {
       repeated(g).stage = Stage::forward;
       move(g, repetition(g), find(g, "tanh") + 1);
     },
     "stage"},
    {"AnotherOperation", Phase::train, [](Graph& g, PlanRequest&) { repeated(g).op = &graph::op("sigmoid"); }, "same"},
    {"RandomBitsAgain", Phase::train,
     [](Graph& g, PlanRequest&) { node(g, "dropout", 1).recomputes = find(g, "dropout"); }, "random"},
    {"StatisticsAgain", Phase::train,
     [](Graph& g, PlanRequest&) {
       const Node norm = node(g, "batch_norm");
       const int32_t index = g.add_node("batch_norm", norm.inputs, norm.attributes, "again", {}, Stage::backward);
       g.nodes[static_cast<size_t>(index)].recomputes = find(g, "batch_norm");
       move(g, index, repetition(g));
     },
     "statistics"},
    {"RepetitionOfARepetition", Phase::train,
     [](Graph& g, PlanRequest&) {
       const int32_t first = repetition(g);
       const ValueId made = insert(g, first + 1, "tanh", repeated(g).inputs, {}, Stage::backward);
       g.nodes[static_cast<size_t>(g.value(made).producer)].recomputes = first;
     },
     "once"},
    {"EffectAgain", Phase::train,
     [](Graph& g, PlanRequest&) {
       g.value(repeated(g).outputs[0]).place = Place::gradient;
       g.value(repeated(g).outputs[0]).slot = 0;
     },
     "effects"},
    {"OfAnotherValue", Phase::train, [](Graph& g, PlanRequest&) { repeated(g).inputs[0] = output(g, "tanh"); },
     "inputs"},
    {"ForNobody", Phase::train, [](Graph& g, PlanRequest&) { node(g, "tanh_gradient").inputs[1] = output(g, "tanh"); },
     "used"},
    {"OfAnotherType", Phase::train, [](Graph& g, PlanRequest&) { g.value(repeated(g).outputs[0]).type.rows = 2; },
     "types"},
};

class BrokenRecompute : public testing::TestWithParam<Broken> {};
TEST_P(BrokenRecompute, IsRefused) { expect_refused("recompute", GetParam(), with_repetition()); }
INSTANTIATE_TEST_SUITE_P(Ten, BrokenRecompute, testing::ValuesIn(kBroken), name_of);
TEST(Recompute, TenBrokenGraphs) { expect_ten_or_more(kBroken); }

}  // namespace
}  // namespace brisk::passes::test
