// schedule: waves respect every dependency and are as early as they allow; graphs that its verifier refuses.
#include <algorithm>
#include <map>
#include <stdexcept>

#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "passes/broken.h"

namespace brisk::passes::test {
namespace {

/// Checks by hand, apart from the verifier: readers after writers, in terms of waves.
void expect_respected(const Graph& graph) {
  std::map<std::pair<Place, int32_t>, int32_t> written;
  for (const Node& node : graph.nodes)
    for (const ValueId id : node.outputs)
      if (graph.value(id).place != Place::activation)
        written[{graph.value(id).place, graph.value(id).slot}] = node.wave;
  for (const Node& node : graph.nodes)
    for (const ValueId id : node.inputs) {
      const graph::Value& value = graph.value(id);
      if (value.producer >= 0) {
        const Node& producer = node_at(graph, value.producer);
        if (node.group >= 0 && node.group == producer.group) {
          EXPECT_EQ(producer.wave, node.wave);
        } else {
          EXPECT_LT(producer.wave, node.wave) << graph::label(node);
        }
      } else if (written.count({value.place, value.slot})) {
        EXPECT_LE(node.wave, (written[{value.place, value.slot}])) << graph::label(node) << " reads it too late";
      }
    }
}

TEST(Schedule, WavesRespectDependencies) {
  for (const Phase phase : {Phase::train, Phase::predict}) expect_respected(after("schedule", phase));
}

TEST(Schedule, IndependentBranchesShareAWave) {
  const Graph graph = after("schedule", function_graph([](Var x) { return linear(exp(x), 3) + linear(tanh(x), 3); }),
                            request_for(Phase::predict));
  EXPECT_EQ(node_at(graph, find(graph, "exp")).wave, node_at(graph, find(graph, "tanh")).wave);
  EXPECT_EQ(node_at(graph, find(graph, "linear")).wave, node_at(graph, find(graph, "linear", 1)).wave);
  EXPECT_EQ(graph.nodes.back().wave, 4) << "load, functions, linear, add, store";
}

TEST(Schedule, WavesAreConsecutiveAndSorted) {
  const Graph graph = after("schedule");
  EXPECT_EQ(graph.nodes.front().wave, 0);
  for (size_t i = 1; i < graph.nodes.size(); ++i) {
    const int32_t step = graph.nodes[i].wave - graph.nodes[i - 1].wave;
    EXPECT_TRUE(step == 0 || step == 1) << graph::label(graph.nodes[i]);
  }
}

TEST(Schedule, CommitAndUpdateWaitForWhatGatesThem) {
  const Graph graph = after("schedule");
  int32_t last_backward = -1;
  for (const Node& node : graph.nodes)
    if (node.stage == Stage::forward || node.stage == Stage::backward)
      last_backward = std::max(last_backward, node.wave);
  EXPECT_EQ(node_at(graph, find(graph, "batch_norm_commit")).wave, last_backward + 1);
  EXPECT_EQ(node_at(graph, find(graph, "gradient_stats")).wave, last_backward + 2);
  EXPECT_EQ(node_at(graph, find(graph, "sgd_walk")).wave, last_backward + 3);
}

TEST(Schedule, BackwardNodesRunBesideForwardOnes) {
  const Graph graph = after("schedule");
  int32_t first_backward = graph.nodes.back().wave, last_forward = 0;
  for (const Node& node : graph.nodes) {
    if (node.stage == Stage::backward) first_backward = std::min(first_backward, node.wave);
    if (node.stage == Stage::forward) last_forward = std::max(last_forward, node.wave);
  }
  EXPECT_LE(first_backward, last_forward) << "totals of the losses need not be waited for";
}

/// A node that is not the last of its wave and reads something of the wave before, moved into that wave.
void hasten(Graph& graph) {
  for (size_t i = 1; i + 1 < graph.nodes.size(); ++i) {
    Node& node = graph.nodes[i];
    if (node.wave != graph.nodes[i - 1].wave + 1 || node.wave != graph.nodes[i + 1].wave || node.group >= 0) continue;
    --node.wave;
    return;
  }
  throw std::logic_error("no wave has two nodes");
}

const std::vector<Broken> kBroken = {
    {"NoWave", Phase::train, [](Graph& g, PlanRequest&) { g.nodes[0].wave = -1; }, "wave"},
    {"NotSorted", Phase::train, [](Graph& g, PlanRequest&) { g.nodes.back().wave = 0; }, "sorted"},
    {"EmptyWave", Phase::train, [](Graph& g, PlanRequest&) { ++g.nodes.back().wave; }, "gap"},
    {"ForwardNodeBehindTheUpdate", Phase::train,
     [](Graph& g, PlanRequest&) { node(g, "sgd_walk").stage = Stage::forward; }, "stages"},
    {"CommitBeforeItsGate", Phase::train, [](Graph& g, PlanRequest&) { --node(g, "batch_norm_commit").wave; },
     "boundary"},
    {"GroupInTwoWaves", Phase::train,
     [](Graph& g, PlanRequest&) {
       for (size_t i = 1; i < g.nodes.size(); ++i)
         if (g.nodes[i].group >= 0 && g.nodes[i - 1].group == g.nodes[i].group) {
           ++g.nodes[i].wave;
           return;
         }
     },
     "group"},
    {"ReadBeforeItIsMade", Phase::train,
     [](Graph& g, PlanRequest&) { move(g, find(g, "tanh"), find(g, "max_pool2d")); }, "order"},
    {"TooEarly", Phase::train, [](Graph& g, PlanRequest&) { hasten(g); }, "dependency"},
    {"ParameterReadDuringTheUpdate", Phase::train,
     [](Graph& g, PlanRequest&) {
       const int32_t wave = node(g, "sgd_walk").wave;
       insert(g, static_cast<int32_t>(g.nodes.size()), "relu", {node(g, "linear").inputs[1]}, {}, Stage::update);
       node(g, "relu").wave = wave;
     },
     "overwrite"},
    {"TypeChanged", Phase::train, [](Graph& g, PlanRequest&) { g.value(output(g, "conv2d")).type.rows = 2; }, "types"},
};

class BrokenSchedule : public testing::TestWithParam<Broken> {};
TEST_P(BrokenSchedule, IsRefused) { expect_refused("schedule", GetParam()); }
INSTANTIATE_TEST_SUITE_P(Ten, BrokenSchedule, testing::ValuesIn(kBroken), name_of);
TEST(Schedule, TenBrokenGraphs) { expect_ten_or_more(kBroken); }

}  // namespace
}  // namespace brisk::passes::test
