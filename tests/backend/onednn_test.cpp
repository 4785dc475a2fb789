// oneDNN as a candidate: it declines by name, and where it is forced it agrees with the reference.
#include <gtest/gtest.h>

#include <cmath>

#include "support/random.h"
#include "support/run_node.h"

namespace brisk::test {
namespace {

using graph::Place;
using graph::ValueType;

const cpu::Implementation* candidate(const std::string& op) {
  for (const cpu::Implementation* implementation : implementations(op)) {
    if (implementation->name == "onednn") return implementation;
  }
  return nullptr;
}

Operand operand(Random& random, ValueType type, int64_t samples, Place place = Place::activation, int32_t slot = 0) {
  std::vector<double> data(static_cast<size_t>(type.elements() * (type.batched() ? samples : 1)));
  for (double& value : data) value = random.uniform(-1, 1);
  return {type, std::move(data), place, slot};
}

/// Runs the case on oneDNN, whatever it would say, and compares.
void expect_agrees(const NodeCase& node_case) {
  const cpu::Implementation* found = candidate(node_case.op);
  ASSERT_NE(found, nullptr);
  if (found->lower == nullptr) GTEST_SKIP() << "built without oneDNN";
  cpu::Implementation forced = *found;
  forced.declines = nullptr;
  const std::vector<oracle::Array> truth = expected(node_case);
  for (const cpu::Isa isa : instruction_sets()) {
    const Outcome outcome = run_node(node_case, forced, isa);
    ASSERT_EQ(outcome.problems, std::vector<std::string>()) << node_case.op << ", " << node_case.samples;
    double largest = 1;
    for (const double value : truth[0].data) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < truth[0].data.size(); ++i) {
      ASSERT_NEAR(outcome.outputs[0].data[i], truth[0].data[i], 1e-5 * largest) << node_case.op << ", element " << i;
    }
  }
}

struct Convolution {
  int64_t samples, rows, channels, height, width, out_channels, groups;
  std::vector<int64_t> kernel, stride, padding, dilation;
  std::string activation;

  int64_t out(size_t axis) const {
    const int64_t size = axis == 0 ? height : width;
    return (size + 2 * padding[axis] - dilation[axis] * (kernel[axis] - 1) - 1) / stride[axis] + 1;
  }
  ValueType x() const { return {DType::f32, rows, Shape{channels, height, width}}; }
  ValueType y() const { return {DType::f32, rows, Shape{out_channels, out(0), out(1)}}; }
  ValueType w() const { return {DType::f32, 0, Shape{out_channels, kernel[0], kernel[1], channels / groups}}; }
  graph::Attributes attributes() const {
    return {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", groups}};
  }
};

const Convolution kConvolutions[] = {
    {1, 1, 1, 5, 5, 1, 1, {1, 1}, {1, 1}, {0, 0}, {1, 1}, "none"},
    {19, 1, 3, 11, 8, 20, 1, {5, 3}, {1, 1}, {2, 1}, {1, 1}, "relu"},
    {67, 1, 16, 6, 7, 32, 1, {3, 3}, {2, 1}, {1, 0}, {1, 1}, "tanh"},
    {5, 3, 6, 9, 9, 4, 2, {3, 2}, {1, 2}, {2, 1}, {2, 3}, "sigmoid"},
    {33, 1, 8, 5, 5, 8, 8, {3, 3}, {1, 1}, {1, 1}, {1, 1}, "none"},
};

TEST(OneDnn, Convolution) {
  Random random(1);
  for (const Convolution& c : kConvolutions) {
    graph::Attributes attributes = c.attributes();
    attributes.set("activation", c.activation);
    NodeCase made{"conv2d",
                  attributes,
                  {operand(random, c.x(), c.samples), operand(random, c.w(), 1, Place::parameter, 0),
                   operand(random, {DType::f32, 0, Shape{c.out_channels}}, 1, Place::parameter, 1)},
                  c.samples};
    expect_agrees(made);
    made.inputs.pop_back();
    expect_agrees(made);
  }
}

TEST(OneDnn, ConvolutionGradients) {
  Random random(2);
  for (const Convolution& c : kConvolutions) {
    graph::Attributes to_input = c.attributes(), to_weights = c.attributes();
    to_input.set("input", std::vector<int64_t>{c.channels, c.height, c.width});
    to_weights.set("kernel", c.kernel);
    const Operand x = operand(random, c.x(), c.samples), dy = operand(random, c.y(), c.samples);
    expect_agrees({"conv2d_input_gradient", to_input, {dy, operand(random, c.w(), 1, Place::parameter, 0)}, c.samples});
    expect_agrees({"conv2d_weight_gradient", to_weights, {x, dy}, c.samples});
  }
}

TEST(OneDnn, Linear) {
  Random random(3);
  for (const int64_t samples : {1, 16, 45}) {
    const ValueType x{DType::f32, 2, Shape{37}}, y{DType::f32, 2, Shape{11}}, w{DType::f32, 0, Shape{11, 37}};
    const Operand weights = operand(random, w, 1, Place::parameter, 0);
    const Operand bias = operand(random, {DType::f32, 0, Shape{11}}, 1, Place::parameter, 1);
    expect_agrees(
        {"linear", {{"activation", std::string("relu")}}, {operand(random, x, samples), weights, bias}, samples});
    expect_agrees({"linear_input_gradient", {}, {operand(random, y, samples), weights}, samples});
    expect_agrees({"linear_weight_gradient", {}, {operand(random, x, samples), operand(random, y, samples)}, samples});
  }
}

TEST(OneDnn, SaysWhyItDeclines) {
  for (const char* op : {"conv2d_weight_gradient", "linear_weight_gradient"}) {
    const cpu::Implementation* found = candidate(op);
    ASSERT_NE(found, nullptr);
    const ValueType x{DType::f32, 1, Shape{8, 4, 4}};
    graph::Graph graph;
    const std::vector<graph::ValueId> inputs = {graph.add_value(x), graph.add_value(x)};
    const std::vector<int64_t> ones = {1, 1};
    graph.add_node("conv2d_weight_gradient", inputs,
                   {{"stride", ones},
                    {"padding", std::vector<int64_t>{0, 0}},
                    {"dilation", ones},
                    {"groups", int64_t{1}},
                    {"kernel", ones}},
                   "n");
    const std::string reason = found->declines({graph, graph.nodes[0], 10, cpu::Isa::avx2});
    const bool absent = found->lower == nullptr;
    EXPECT_EQ(reason, absent ? "built without oneDNN: libdnnl-dev was not found"
                             : "would reorder 10,240 bytes; native needs none");
  }
}

}  // namespace
}  // namespace brisk::test
