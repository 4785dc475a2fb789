// select: every step has an implementation and every value a layout; graphs that its verifier refuses.
#include <stdexcept>
#include "passes/broken.h"

namespace brisk::passes::test {
namespace {

/// A target that has nothing for some operation, and a candidate that it passes over for the others.
class PickyTarget : public backend::Target {
 public:
  explicit PickyTarget(std::string_view lacks) : lacks_(lacks) {}
  std::string name() const override { return "picky"; }
  int lanes() const override { return 8; }
  backend::Choice choose(const Graph& graph, const std::vector<int32_t>& nodes, int64_t samples) const override {
    if (is(node_at(graph, nodes.back()), lacks_)) return {"", {"fast: not here", "slow: nor there"}, 0};
    return {"slow", {"fast: not today"}, 64 * samples};
  }
  bool in_place(const Graph&, int32_t, int) const override { return false; }
  int64_t scratch_bytes(const Graph&, int64_t) const override { return 0; }
  int64_t library_bound_bytes() const override { return 0; }

 private:
  std::string_view lacks_;
};

TEST(Select, EveryNodeIsImplemented) {
  for (const Phase phase : {Phase::train, Phase::predict})
    for (const Node& node : after("select", phase).nodes)
      EXPECT_FALSE(node.implementation.empty()) << graph::label(node);
}

TEST(Select, BatchedActivationsLieInLanes) {
  const Graph graph = after("select");
  for (const graph::Value& value : graph.values) {
    const bool lanes = value.type.batched() && value.place == Place::activation;
    EXPECT_EQ(value.layout, lanes ? graph::Layout::lanes : graph::Layout::plain);
  }
  EXPECT_EQ(graph.value(output(graph, "conv2d")).layout, graph::Layout::lanes);
  EXPECT_EQ(graph.value(graph.inputs[0].value).layout, graph::Layout::plain) << "as the user gives it";
  EXPECT_EQ(graph.value(output(graph, "conv2d_weight_gradient")).layout, graph::Layout::plain);
}

TEST(Select, KeepsReasonsAndTheWorkspaceOfAGroupAtItsLastMember) {
  const PickyTarget target("nothing");
  PlanRequest request = request_for(Phase::train, 3);
  request.target = &target;
  const Graph graph = after("select", small_program().graph, request);
  int members = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    EXPECT_EQ(node.implementation, "slow");
    EXPECT_EQ(node.declined, std::vector<std::string>{"fast: not today"});
    const bool goes_on = node.group >= 0 && i + 1 < graph.nodes.size() && graph.nodes[i + 1].group == node.group;
    EXPECT_EQ(node.workspace_bytes, goes_on ? 0 : 192) << graph::label(node);
    members += goes_on;
  }
  EXPECT_GT(members, 0);
}

TEST(Select, WhatNothingImplementsIsNamedWithReasons) {
  const PickyTarget target("max_pool2d");
  PlanRequest request = request_for(Phase::train);
  request.target = &target;
  const Graph given = before("select", small_program().graph, request);
  try {
    select(given, request);
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::backend);
    EXPECT_NE(error.field().find("max_pool2d"), std::string::npos);
    for (const char* part : {"picky", "fast: not here", "slow: nor there"})
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    EXPECT_TRUE(error.where().known()) << "the user's line";
  }
}

Node& first_of_group(Graph& graph) {
  for (Node& node : graph.nodes)
    if (node.group >= 0) return node;
  throw std::logic_error("there is no group");
}

const std::vector<Broken> kBroken = {
    {"NoTarget", Phase::train, [](Graph&, PlanRequest& request) { request.target = nullptr; }, "target"},
    {"NotImplemented", Phase::train, [](Graph& g, PlanRequest&) { node(g, "conv2d").implementation.clear(); },
     "implementation"},
    {"CrookedWorkspace", Phase::train, [](Graph& g, PlanRequest&) { node(g, "conv2d").workspace_bytes = 100; },
     "workspace"},
    {"GroupOfTwoKernels", Phase::train, [](Graph& g, PlanRequest&) { first_of_group(g).implementation = "other"; },
     "group"},
    {"WorkspaceInsideAGroup", Phase::train, [](Graph& g, PlanRequest&) { first_of_group(g).workspace_bytes = 64; },
     "shared workspace"},
    {"AnotherLayout", Phase::train,
     [](Graph& g, PlanRequest&) { g.value(output(g, "conv2d")).layout = graph::Layout::plain; }, "layout"},
    {"ViewOfAnotherLayout", Phase::train,
     [](Graph& g, PlanRequest&) { node(g, "reshape").inputs[0] = g.inputs[0].value; }, "view"},
    {"ReasonThatNamesNobody", Phase::train, [](Graph& g, PlanRequest&) { node(g, "conv2d").declined = {"because"}; },
     "reasons"},
    {"TypeChanged", Phase::train, [](Graph& g, PlanRequest&) { g.value(output(g, "linear")).type.rows = 2; }, "types"},
    {"StagesMixed", Phase::train, [](Graph& g, PlanRequest&) { g.nodes.back().stage = Stage::forward; }, "stages"},
};

class BrokenSelect : public testing::TestWithParam<Broken> {};
TEST_P(BrokenSelect, IsRefused) { expect_refused("select", GetParam()); }
INSTANTIATE_TEST_SUITE_P(Ten, BrokenSelect, testing::ValuesIn(kBroken), name_of);
TEST(Select, TenBrokenGraphs) { expect_ten_or_more(kBroken); }

}  // namespace
}  // namespace brisk::passes::test
