// Convolution: numbers that can be checked by hand, sums into gradient memory, samples that do not touch one another.
#include <gtest/gtest.h>

#include "backend/gradient_memory.h"
#include "support/random.h"

namespace brisk::test {
namespace {

using graph::Attributes;
using Ints = std::vector<int64_t>;

graph::ValueType batched(Shape shape) { return {DType::f32, 1, shape}; }
graph::ValueType plain(Shape shape) { return {DType::f32, 0, shape}; }

Attributes geometry(int64_t stride, int64_t padding) {
  return {{"stride", Ints{stride, stride}},
          {"padding", Ints{padding, padding}},
          {"dilation", Ints{1, 1}},
          {"groups", int64_t{1}}};
}

Attributes with(Attributes attributes, const char* name, graph::Attribute value) {
  attributes.set(name, std::move(value));
  return attributes;
}

std::vector<double> random_data(int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<double> data(static_cast<size_t>(count));
  for (double& x : data) x = random.uniform(-1, 1);
  return data;
}

NodeCase forward(int64_t samples, const std::vector<double>& x, const std::vector<double>& w) {
  return {"conv2d",
          with(geometry(1, 0), "activation", std::string("none")),
          {{batched({3, 6, 7}), x}, {plain({8, 3, 3, 3}), w}},
          samples};
}

TEST(Conv, ByHand) {
  const NodeCase node{"conv2d",
                      with(geometry(1, 0), "activation", std::string("relu")),
                      {{batched({1, 2, 3}), {1, 2, 3, 4, 5, 6}},
                       {plain({2, 2, 2, 1}), {1, 10, 100, 1000, -1, 0, 0, 0}},
                       {plain({2}), {0.5, 1.5}}},
                      1};
  EXPECT_EQ(run_native(node).outputs[0].data, (std::vector<double>{5421.5, 6532.5, 0.5, 0}));
}

TEST(Conv, InputGradientByHand) {
  const NodeCase node{"conv2d_input_gradient",
                      with(geometry(2, 0), "input", Ints{1, 1, 6}),
                      {{batched({1, 1, 2}), {1, 2}}, {plain({1, 1, 3, 1}), {10, 20, 30}}},
                      1};
  EXPECT_EQ(run_native(node).outputs[0].data, (std::vector<double>{10, 20, 50, 40, 60, 0}));
}

TEST(Conv, WeightGradientIntoGradientMemory) {
  NodeCase node{"conv2d_weight_gradient",
                with(geometry(1, 1), "kernel", Ints{3, 3}),
                {{batched({2, 4, 4}), random_data(19 * 32, 1)}, {batched({3, 4, 4}), random_data(19 * 48, 2)}},
                19};
  const auto first = run_into_gradient(node, 7);
  node.run.accumulate = true;
  const auto later = run_into_gradient(node, 7);
  for (size_t i = 0; i < first.size(); ++i) {
    for (size_t k = 0; k < first[i].size(); ++k) EXPECT_EQ(later[i][k], 7 + first[i][k]) << k;
  }
}

// Padding changes the order in which the taps of pixels at an edge are added.
TEST(Conv, WithoutPaddingASampleHasTheSameBitsInAnyBatch) {
  const std::vector<double> w = random_data(8 * 27, 3), x = random_data(37 * 126, 4);
  const std::vector<double> together = run_native(forward(37, x, w)).outputs[0].data;
  for (const int64_t n : {0, 15, 16, 36}) {
    const std::vector<double> one(x.begin() + n * 126, x.begin() + (n + 1) * 126);
    const std::vector<double> alone = run_native(forward(1, one, w)).outputs[0].data;
    const auto at = together.begin() + n * static_cast<int64_t>(alone.size());
    EXPECT_TRUE(std::equal(alone.begin(), alone.end(), at)) << n;
  }
}

}  // namespace
}  // namespace brisk::test
