// Linear layers and channel sums: numbers that can be checked by hand, sums into gradient memory.
#include <gtest/gtest.h>

#include "backend/gradient_memory.h"
#include "support/random.h"

namespace brisk::test {
namespace {

graph::ValueType batched(Shape shape, int64_t rows = 1) { return {DType::f32, rows, shape}; }
graph::ValueType plain(Shape shape) { return {DType::f32, 0, shape}; }

std::vector<double> random_data(int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<double> data(static_cast<size_t>(count));
  for (double& x : data) x = random.uniform(-1, 1);
  return data;
}

void expect_sum_in_gradient_memory(NodeCase node) {
  const auto first = run_into_gradient(node, -3);
  node.run.accumulate = true;
  const auto later = run_into_gradient(node, -3);
  for (size_t i = 0; i < first.size(); ++i) {
    for (size_t k = 0; k < first[i].size(); ++k) EXPECT_NEAR(later[i][k], first[i][k] - 3, 1e-5) << k;
  }
}

TEST(Linear, ByHand) {
  const NodeCase node{"linear",
                      {{"activation", std::string("relu")}},
                      {{batched({2}), {1, 2, 3, 4}}, {plain({2, 2}), {1, 10, -1, 0}}, {plain({2}), {0.5, 2}}},
                      2};
  EXPECT_EQ(run_native(node).outputs[0].data, (std::vector<double>{21.5, 1, 43.5, 0}));
}

TEST(Linear, GradientsByHand) {
  const Operand x{batched({2}), {1, 2, 3, 4}}, dy{batched({3}), {1, 0, 2, 0, 1, 1}};
  EXPECT_EQ(run_native({"linear_weight_gradient", {}, {x, dy}, 2}).outputs[0].data,
            (std::vector<double>{1, 2, 3, 4, 5, 8}));
  const Operand w{plain({3, 2}), {1, 10, 2, 20, 3, 30}};
  EXPECT_EQ(run_native({"linear_input_gradient", {}, {dy, w}, 2}).outputs[0].data, (std::vector<double>{7, 70, 5, 50}));
}

TEST(Linear, WeightGradientIntoGradientMemory) {
  expect_sum_in_gradient_memory(
      {"linear_weight_gradient",
       {},
       {{batched({21}, 2), random_data(2 * 21 * 19, 1)}, {batched({9}, 2), random_data(2 * 9 * 19, 2)}},
       19});
}

TEST(ChannelSum, IntoGradientMemory) {
  expect_sum_in_gradient_memory({"channel_sum", {}, {{batched({3, 5, 2}), random_data(30 * 19, 3)}}, 19});
}

TEST(ChannelSum, SlicesOfALargeBatchAddUp) {
  // One channel: only slices of the batch make units.
  const int64_t samples = 64 * 40 + 3;
  const NodeCase node{
      "channel_sum", {}, {{batched({1, 8}), std::vector<double>(static_cast<size_t>(samples * 8), 0.5)}}, samples};
  EXPECT_EQ(run_native(node).outputs[0].data, (std::vector<double>{static_cast<double>(samples) * 4}));
}

}  // namespace
}  // namespace brisk::test
