// group: elementwise chains become one kernel and nothing else does; graphs that its verifier refuses.
#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/random.h"
#include "brisk/ops/reduce.h"
#include "brisk/ops/shape.h"
#include "passes/broken.h"

namespace brisk::passes::test {
namespace {

Graph grouped(const ModelFunction& function) {
  return after("group", function_graph(function), request_for(Phase::predict));
}

/// "exp+tanh sigmoid+add": the operations of each group, in the order of the nodes.
std::string groups(const Graph& graph) {
  std::string text;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.group < 0) continue;
    const bool goes_on = i > 0 && graph.nodes[i - 1].group == node.group;
    text += (goes_on ? "+" : text.empty() ? "" : " ") + std::string(node.op->name);
  }
  return text;
}

TEST(Group, AChainIsOneKernel) {
  EXPECT_EQ(groups(grouped([](Var x) { return tanh(exp(x) * 2.0) + 1.0; })), "exp+scale+tanh+add_scalar");
}

TEST(Group, BranchesJoinTheirOnlyReader) {
  EXPECT_EQ(groups(grouped([](Var x) { return exp(x) * sigmoid(x); })), "exp+sigmoid+mul");
}

TEST(Group, ComparisonsAndChoicesJoin) {
  EXPECT_EQ(groups(grouped([](Var x) { return where(exp(x) > 0.5, tanh(x), minimum(silu(x), x)); })),
            "exp+compare_scalar+tanh+silu+minimum+where");
  EXPECT_EQ(groups(grouped([](Var x) { return cast(cast(exp(x) * 2.0, DType::i32), DType::f32) * 2.0; })), "exp+scale");
}

TEST(Group, AValueReadTwiceStaysApart) {
  EXPECT_EQ(groups(grouped([](Var x) {
              const Var y = exp(x);
              return tanh(y) + y;
            })),
            "tanh+add")
      << "exp is read outside of any one group";
  EXPECT_EQ(groups(grouped([](Var x) {
              const Var y = exp(x);
              return y * y;
            })),
            "");
}

TEST(Group, OtherOperationsDivideChains) {
  EXPECT_EQ(groups(grouped([](Var x) { return relu(linear(exp(x), 6)); })), "");
  EXPECT_EQ(groups(grouped([](Var x) { return exp(tanh(reshape(tanh(exp(x)), {-1, 2, 3}))); })), "exp+tanh tanh+exp");
  EXPECT_EQ(groups(grouped([](Var x) { return exp(reduce_sum(exp(x))); })), "");
}

TEST(Group, OneNumberForAllIsAnOperandAndARowIsNot) {
  EXPECT_EQ(groups(grouped([](Var x) { return tanh(x * parameter("gain", {1})); })), "mul+tanh");
  EXPECT_EQ(groups(grouped([](Var x) { return tanh(x * parameter("gain", {6})); })), "");
  EXPECT_EQ(groups(grouped([](Var x) { return tanh(exp(x) * parameter("gain", {6})); })), "");
}

TEST(Group, StagesDoNotMix) {
  const Graph graph = after("group");
  for (size_t i = 1; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].group >= 0 && graph.nodes[i].group == graph.nodes[i - 1].group) {
      EXPECT_EQ(graph.nodes[i].stage, graph.nodes[i - 1].stage);
    }
  EXPECT_EQ(groups(graph), "mul+mul+add add+dropout+relu_gradient add+tanh_gradient")
      << "the derivative of a square, and two sums of gradients with what follows them";
}

TEST(Group, DropoutMayJoin) {
  const Model model([](Var x) { return dropout(exp(x), 0.5); }, Shape{6});
  const Program program =
      trace_program(Inputs{{"x", {6}}}, [&](const Vars& in) { return sample_mean(model(in["x"])); });
  EXPECT_EQ(groups(after("group", program.graph, request_for(Phase::train))), "exp+dropout");
}

/// Nodes: load, reduce_sum, exp [N, 1], mul [N, 6], then the group tanh, scale; reduce_mean, total.
Graph base() {
  const Model model([](Var x) { return tanh(exp(reduce_sum(x, {.keep = true})) * x) * 2.0; }, Shape{6});
  const Program program =
      trace_program(Inputs{{"x", {6}}}, [&](const Vars& in) { return sample_mean(model(in["x"])); });
  return after("group", program.graph, request_for(Phase::train));
}

const std::vector<Broken> kBroken = {
    {"OneMember", Phase::train, [](Graph& g, PlanRequest&) { node(g, "tanh").group = -1; }, "size"},
    {"TornApart", Phase::train,
     [](Graph& g, PlanRequest&) { insert(g, find(g, "scale"), "identity", {output(g, "load")}); }, "contiguous"},
    {"ReductionInside", Phase::train,
     [](Graph& g, PlanRequest&) {
       for (const char* op : {"reduce_sum", "exp", "mul"}) node(g, op).group = node(g, "tanh").group;
     },
     "elementwise"},
    {"TwoStages", Phase::train,
     [](Graph& g, PlanRequest&) {
       for (auto i = static_cast<size_t>(find(g, "scale")); i < g.nodes.size(); ++i) g.nodes[i].stage = Stage::backward;
     },
     "stage"},
    {"TwoTypes", Phase::train,
     [](Graph& g, PlanRequest&) {
       for (const char* op : {"exp", "mul"}) node(g, op).group = node(g, "tanh").group;
     },
     "type"},
    {"OperandThatIsBroadcast", Phase::train,
     [](Graph& g, PlanRequest&) { node(g, "mul").group = node(g, "tanh").group; }, "operands"},
    {"ReadOutside", Phase::train,
     [](Graph& g, PlanRequest&) { insert(g, find(g, "reduce_mean"), "relu", {output(g, "tanh")}); }, "escape"},
    {"ReadByNobody", Phase::train,
     [](Graph& g, PlanRequest&) {
       insert(g, find(g, "scale"), "sigmoid", {output(g, "mul")});
       node(g, "sigmoid").group = node(g, "scale").group;
     },
     "connected"},
    {"ReaderFirst", Phase::train, [](Graph& g, PlanRequest&) { move(g, find(g, "scale"), find(g, "tanh")); }, "order"},
    {"NoSuchNumber", Phase::train, [](Graph& g, PlanRequest&) { node(g, "load").group = -2; }, "number"},
};

class BrokenGroup : public testing::TestWithParam<Broken> {};
TEST_P(BrokenGroup, IsRefused) { expect_refused("group", GetParam(), base()); }
INSTANTIATE_TEST_SUITE_P(Ten, BrokenGroup, testing::ValuesIn(kBroken), name_of);
TEST(Group, TenBrokenGraphs) { expect_ten_or_more(kBroken); }

}  // namespace
}  // namespace brisk::passes::test
