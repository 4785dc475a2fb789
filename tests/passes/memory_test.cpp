// memory: what shares storage, how tightly the arena is packed, and graphs that its verifier refuses.
#include <algorithm>

#include "backend/cpu/cpu_backend.h"
#include "brisk/models.h"
#include "brisk/ops/conv.h"
#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/norm.h"
#include "brisk/ops/pool.h"
#include "brisk/ops/shape.h"
#include "graph/model_state.h"
#include "passes/broken.h"

namespace brisk::passes::test {
namespace {

struct Network {
  const char* name;
  ModelFunction function;
  Shape input;
};
std::ostream& operator<<(std::ostream& out, const Network& network) { return out << network.name; }

/// Every layer reads all earlier ones, as in densely connected networks.
Var dense(Var x) {
  for (int64_t block = 0; block < 2; ++block) {
    for (int64_t layer = 0; layer < 8; ++layer)
      x = concat({x, relu(batch_norm(conv2d(x, {.channels = 5, .kernel = 3, .padding = 1})))});
    x = avg_pool2d(x, {.kernel = 2});
  }
  return linear(global_avg_pool2d(x), 10);
}

/// Four parallel paths of different widths, joined again and again.
Var inception(Var x) {
  for (int64_t block = 1; block <= 4; ++block)
    x = concat({relu(conv2d(x, {.channels = 4 * block, .kernel = 1})),
                relu(conv2d(relu(conv2d(x, {.channels = 3, .kernel = 1})),
                            {.channels = 8 * block, .kernel = 3, .padding = 1})),
                relu(conv2d(relu(conv2d(x, {.channels = 2, .kernel = 1})), {.channels = 3, .kernel = 5, .padding = 2})),
                relu(conv2d(max_pool2d(x, {.kernel = 3, .padding = 1, .stride = 1}), {.channels = 7, .kernel = 1}))});
  return linear(flatten(max_pool2d(x, {.kernel = 4})), 10);
}

std::vector<Network> networks() {
  return {{"Lenet", models::lenet(), {1, 28, 28}},
          {"Mlp", models::mlp({300, 100, 50, 10}), {784}},
          {"Resnet", models::resnet_cifar({.blocks = 2}), {3, 32, 32}},
          {"Dense", dense, {3, 16, 16}},
          {"Inception", inception, {3, 16, 16}}};
}

Graph program_of(const Network& network) {
  const Model model(network.function, network.input);
  return trace_program(Inputs{{"x", network.input}, {"label", {}, DType::i64}},
                       [&](const Vars& in) { return cross_entropy(model(in["x"]), in["label"]); })
      .graph;
}

class Packing : public testing::TestWithParam<Network> {};

TEST_P(Packing, AtMostFivePercentAboveTheLargestLiveSet) {
  const Graph program = program_of(GetParam());
  for (const auto isa : {backend::cpu::Isa::avx2, backend::cpu::Isa::avx512}) {
    const auto target = backend::cpu::make_target(isa);
    for (const Phase phase : {Phase::train, Phase::evaluate})
      for (const int64_t samples : {1, 4, 64, 67}) {
        PlanRequest request = request_for(phase, samples);
        request.target = target.get();
        const Graph graph = compile(program, request);
        EXPECT_GT(graph.live_bytes, 0);
        EXPECT_GE(graph.arena_bytes, graph.live_bytes);
        EXPECT_LE(static_cast<double>(graph.arena_bytes), 1.05 * static_cast<double>(graph.live_bytes))
            << target->name() << ", " << graph::name(phase) << ", " << samples << " samples";
      }
  }
}

INSTANTIATE_TEST_SUITE_P(Memory, Packing, testing::ValuesIn(networks()),
                         [](const auto& given) { return std::string(given.param.name); });

TEST(Memory, EvaluationNeedsLessThanTraining) {
  for (const Network& network : networks()) {
    const Graph program = program_of(network);
    EXPECT_LT(compile(program, request_for(Phase::evaluate, 64)).arena_bytes,
              compile(program, request_for(Phase::train, 64)).arena_bytes)
        << network;
  }
}

TEST(Memory, SamplesCountInWholeLanes) {
  const Graph program = program_of(networks()[1]);
  const auto bytes = [&](int64_t samples) {
    const Graph graph = compile(program, request_for(Phase::train, samples));
    return graph.value(output(graph, "linear")).bytes;
  };
  EXPECT_EQ(bytes(1), 8 * 300 * 4);
  EXPECT_EQ(bytes(8), bytes(1));
  EXPECT_EQ(bytes(65), 72 * 300 * 4);
}

ValueId storage(const Graph& graph, ValueId id) {
  while (graph.value(id).alias != graph::kNoValue) id = graph.value(id).alias;
  return id;
}

TEST(Memory, AViewLiesWhereItsInputDoes) {
  const Graph graph = after("memory");
  const Node& flatten = node_at(graph, find(graph, "reshape"));
  EXPECT_EQ(graph.value(flatten.outputs[0]).alias, flatten.inputs[0]);
  EXPECT_EQ(graph.value(flatten.outputs[0]).offset, graph.value(flatten.inputs[0]).offset);
}

Graph planned(const ModelFunction& function) {
  return after("memory", function_graph(function), request_for(Phase::predict));
}

TEST(Memory, WhatDiesIsOverwritten) {
  const Graph graph = planned([](Var x) { return tanh(linear(relu(x), 6) * parameter("gain", {6})); });
  const ValueId product = output(graph, "linear");
  EXPECT_EQ(storage(graph, output(graph, "mul")), product);
  EXPECT_EQ(storage(graph, output(graph, "tanh")), product) << graph::print(graph);
  EXPECT_NE(storage(graph, product), output(graph, "relu")) << "a product does not run in place";
}

TEST(Memory, WhatIsStillReadIsNotOverwritten) {
  const Graph graph = planned([](Var x) {
    const Var y = linear(x, 6);
    const Var z = exp(y) * parameter("gain", {6});
    return linear(z, 6) * y;
  });
  EXPECT_NE(storage(graph, output(graph, "exp")), output(graph, "linear"));
}

TEST(Memory, NeighboursInAWaveDoNotOverwriteWhatTheyShare) {
  const Graph graph = planned([](Var x) {
    const Var y = linear(x, 6);
    return linear(exp(y), 3) + linear(tanh(y), 3);
  });
  const ValueId shared = output(graph, "linear");
  ASSERT_EQ(node_at(graph, find(graph, "exp")).wave, node_at(graph, find(graph, "tanh")).wave);
  EXPECT_NE(storage(graph, output(graph, "exp")), shared);
  EXPECT_NE(storage(graph, output(graph, "tanh")), shared);
}

TEST(Memory, AnOverwrittenViewEndsWhatItShows) {
  const Graph graph = planned([](Var x) {
    const Var y = linear(x, 6);
    const Var shown = reshape(y, {-1, 2, 3});
    return exp(shown) * parameter("gain", {3}) + reshape(y, {-1, 2, 3});
  });
  EXPECT_NE(storage(graph, output(graph, "exp")), output(graph, "linear")) << "its bytes are read under another name";
}

TEST(Memory, ValuesInsideAGroupHaveNoStorage) {
  const Graph graph = planned([](Var x) { return tanh(exp(x) * 2.0); });
  EXPECT_EQ(graph.value(output(graph, "exp")).offset, -1);
  EXPECT_EQ(graph.value(output(graph, "scale")).offset, -1);
  EXPECT_GE(graph.value(output(graph, "tanh")).offset, 0);
}

TEST(Memory, OnlyActivationsLieInTheArena) {
  const Graph graph = after("memory");
  for (const graph::Value& value : graph.values)
    if (value.place != Place::activation) {
      EXPECT_EQ(value.offset, -1) << graph::name(value.place);
      EXPECT_EQ(value.bytes, 0);
    }
}

TEST(Memory, AnEmptyGraphNeedsNothing) {
  const Program program = trace_program(Inputs{{"x", {6}}}, [](const Vars& in) { return sample_mean(in["x"]); });
  const Graph graph = compile(program.graph, request_for(Phase::count));
  EXPECT_TRUE(graph.nodes.empty());
  EXPECT_EQ(graph.arena_bytes, 0);
}

/// Puts a value where one of its producer's inputs lies, whether that is allowed or not.
void overwrite(Graph& graph, std::string_view op) {
  const ValueId in = node(graph, op).inputs[0];
  graph::Value& out = graph.value(output(graph, op));
  out.alias = in;
  out.offset = graph.value(in).offset;
  out.bytes = graph.value(in).bytes;
}

const std::vector<Broken> kBroken = {
    {"NotPlaced", Phase::train, [](Graph& g, PlanRequest&) { g.value(output(g, "conv2d")).offset = -1; }, "placed"},
    {"CrookedOffset", Phase::train, [](Graph& g, PlanRequest&) { g.value(output(g, "conv2d")).offset += 4; },
     "aligned"},
    {"TooSmall", Phase::train, [](Graph& g, PlanRequest&) { g.value(output(g, "conv2d")).bytes -= 64; }, "size"},
    {"ArenaTooShort", Phase::train, [](Graph& g, PlanRequest&) { g.arena_bytes /= 2; }, "bounds"},
    {"SharesWithAStranger", Phase::train,
     [](Graph& g, PlanRequest&) { g.value(output(g, "conv2d")).alias = output(g, "linear"); }, "alias"},
    {"ViewElsewhere", Phase::train,
     [](Graph& g, PlanRequest&) {
       graph::Value& view = g.value(output(g, "reshape"));
       view.offset += view.offset >= 64 ? -64 : 64;
     },
     "storage"},
    {"InPlaceThatTheTargetCannot", Phase::train, [](Graph& g, PlanRequest&) { overwrite(g, "batch_norm"); }, "target"},
    {"OverwritesWhatIsStillRead", Phase::train, [](Graph& g, PlanRequest&) { overwrite(g, "dropout"); }, "in place"},
    {"TwoLiveValuesInOnePlace", Phase::train,
     [](Graph& g, PlanRequest&) { g.value(output(g, "conv2d", 1)).offset = g.value(output(g, "tanh")).offset; },
     "overlap"},
    {"LiveSetBelittled", Phase::train, [](Graph& g, PlanRequest&) { g.live_bytes -= 64; }, "live"},
};

class BrokenMemory : public testing::TestWithParam<Broken> {};
TEST_P(BrokenMemory, IsRefused) { expect_refused("memory", GetParam()); }
INSTANTIATE_TEST_SUITE_P(Ten, BrokenMemory, testing::ValuesIn(kBroken), name_of);
TEST(Memory, TenBrokenGraphs) { expect_ten_or_more(kBroken); }

TEST(Memory, WorkspacesArePlacedToo) {
  expect_refused("memory", {"Nowhere", Phase::train,
                            [](Graph& g, PlanRequest&) {
                              node(g, "conv2d").workspace_bytes = 64;
                              node(g, "conv2d").workspace_offset = -1;
                            },
                            "workspace"});
  expect_refused("memory", {"OnItsInput", Phase::train,
                            [](Graph& g, PlanRequest&) {
                              node(g, "conv2d").workspace_bytes = 64;
                              node(g, "conv2d").workspace_offset = g.value(node(g, "conv2d").inputs[0]).offset;
                            },
                            "overlap"});
}

}  // namespace
}  // namespace brisk::passes::test
