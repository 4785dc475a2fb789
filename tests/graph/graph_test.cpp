// Building, reading and printing graphs.
#include "graph/graph.h"

#include <gtest/gtest.h>

#include "graph/examples.h"

namespace brisk::graph {
namespace {

using test::error_of;

/// x: [N, 3] -> relu 'act' -> y = y * y
Graph small() {
  Graph g;
  const ValueId given = g.add_value({DType::f32, 1, {3}}, Place::input, 0);
  g.inputs.push_back({"x", given});
  const ValueId x = g.emit("load", {given}, {}, "x");
  const ValueId y = g.emit("relu", {x}, {}, "act", {"/home/user/net.cpp", 12});
  g.outputs.push_back({"output", g.emit("mul", {y, y}, {}, "square")});
  return g;
}

TEST(ValueType, Text) {
  EXPECT_EQ((ValueType{DType::f32, 1, {50, 4, 4}}).text(), "[N, 50, 4, 4]");
  EXPECT_EQ((ValueType{DType::f32, 2, {8}}).text(), "[2N, 8]");
  EXPECT_EQ((ValueType{DType::f32, 1, {}}).text(), "[N]");
  EXPECT_EQ((ValueType{DType::f32, 0, {500, 800}}).text(), "[500, 800]");
  EXPECT_EQ((ValueType{DType::f32, 3, {2, 2}}).elements(), 12);
  EXPECT_EQ((ValueType{DType::f32, 0, {}}).rank(), 0);
}

TEST(Graph, NodesKnowTheirValues) {
  const Graph g = small();
  ASSERT_EQ(g.nodes.size(), 3u);
  for (size_t i = 0; i < g.nodes.size(); ++i) {
    for (const ValueId id : g.nodes[i].outputs) EXPECT_EQ(g.value(id).producer, static_cast<int32_t>(i));
  }
  const auto readers = g.consumers();
  EXPECT_EQ(readers[static_cast<size_t>(g.nodes[1].outputs[0])], std::vector<int32_t>{2}) << "x * x reads x once";
  EXPECT_TRUE(readers[static_cast<size_t>(g.outputs[0].value)].empty());
}

TEST(Graph, ScalarsAreOnePerName) {
  Graph g;
  const int32_t rate = g.add_scalar("rate"), ratio = g.add_scalar("ratio");
  EXPECT_NE(rate, ratio);
  EXPECT_EQ(g.add_scalar("rate"), rate);
  const ValueId value = g.scalar_value(rate);
  EXPECT_EQ(g.scalar_value(rate), value);
  EXPECT_NE(g.scalar_value(ratio), value);
  EXPECT_EQ(g.value(value).place, Place::scalar);
  EXPECT_EQ(g.type(value).text(), "[]");
}

TEST(Graph, EmitRefusesSeveralOutputs) {
  Graph g;
  const ValueId x = g.add_value({DType::f32, 1, {1, 4, 4}});
  const std::vector<int64_t> two = {2, 2}, none = {0, 0};
  EXPECT_NE(error_of([&] {
              g.emit("max_pool2d", {x}, {{"kernel", two}, {"padding", none}, {"stride", two}}, "pool1");
            }).find("max_pool2d 'pool1': has 2 outputs"),
            std::string::npos);
}

TEST(Graph, RefusedNodeLeavesNoTrace) {
  Graph g = small();
  const size_t values = g.values.size(), nodes = g.nodes.size();
  EXPECT_NE(error_of([&] { g.emit("rely", {0}); }).find("did you mean relu?"), std::string::npos);
  EXPECT_NE(error_of([&] { g.emit("relu", {99}, {}, "r"); }).find("relu 'r': reads %99, no value"), std::string::npos);
  EXPECT_NE(error_of([&] {
              g.emit("relu", {0, 1}, {}, "r");
            }).find("has 2 inputs, allowed is 1 to 1"),
            std::string::npos);
  EXPECT_EQ(g.values.size(), values);
  EXPECT_EQ(g.nodes.size(), nodes);
}

TEST(Printer, OneLineANode) {
  Graph g = small();
  g.nodes[1].group = 2;
  g.nodes[1].implementation = "native";
  g.nodes[1].declined = {"other: too small"};
  g.value(g.nodes[1].outputs[0]).offset = 64;
  const std::string text = print(g);
  EXPECT_NE(text.find("input x = %0 [N, 3]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("0: forward load 'x'(%0 input x) -> %1 [N, 3]\n"), std::string::npos) << text;
  EXPECT_NE(text.find("1: forward relu 'act'(%1) -> %2 [N, 3] at 64 (net.cpp:12); group 2; native; other: too small\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("output output = %3\n"), std::string::npos) << text;
}

TEST(Printer, GraphvizNamesAndQuotes) {
  Graph g = small();
  g.nodes[1].name = "a\"b";
  const std::string text = dot(g);
  EXPECT_NE(text.find("n1 [label=\"relu 'a\\\"b'\"];"), std::string::npos) << text;
  EXPECT_NE(text.find("n0 -> n1 [label=\"[N, 3]\"];"), std::string::npos) << text;
  EXPECT_NE(text.find("v0 [shape=ellipse, label=\"%0 input x\"];"), std::string::npos) << text;
}

}  // namespace
}  // namespace brisk::graph
