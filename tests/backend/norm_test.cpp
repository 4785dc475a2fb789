// Batch normalization where naive sums fail, and gradients that add up.
#include <gtest/gtest.h>

#include <cmath>

#include "support/run_node.h"

namespace brisk::test {
namespace {

using graph::Place;

NodeCase batch_norm(int64_t samples, Shape shape, std::vector<double> x) {
  const graph::ValueType activation{DType::f32, 1, shape}, channel{DType::f32, 0, Shape{shape[0]}};
  const std::vector<double> ones(static_cast<size_t>(shape[0]), 1), zeros(ones.size(), 0);
  return {"batch_norm",
          {{"activation", std::string("none")}, {"epsilon", 1e-5}, {"momentum", 0.1}},
          {{activation, std::move(x)},
           {channel, ones, Place::parameter, 0},
           {channel, zeros, Place::parameter, 1},
           {channel, zeros, Place::buffer, 2},
           {channel, ones, Place::buffer, 3}},
          samples};
}

/// x = offset + scale * sin(i), as floats.
std::vector<double> waves(size_t count, double offset, double scale) {
  std::vector<double> x(count);
  for (size_t i = 0; i < count; ++i) {
    x[i] = static_cast<double>(static_cast<float>(offset + scale * std::sin(static_cast<double>(i))));
  }
  return x;
}

TEST(BatchNorm, AFarMeanCostsNoDigitsOfTheVariance) {
  const int64_t samples = 67;
  for (const Shape& shape : {Shape{3, 40, 40}, Shape{3, 2, 2}, Shape{3}}) {
    const auto count = static_cast<size_t>(samples * shape.count());
    const std::vector<double> x = waves(count, 4096, 1);
    const NodeCase node_case = batch_norm(samples, shape, x);
    const Outcome outcome = run_native(node_case);
    const std::vector<oracle::Array> truth = expected(node_case);
    for (size_t c = 0; c < 3; ++c) {
      EXPECT_NEAR(outcome.outputs[1].data[c] / truth[1].data[c], 1, 1e-7);
      EXPECT_NEAR(outcome.outputs[2].data[c] / truth[2].data[c], 1, 1e-6);
      EXPECT_NEAR(outcome.outputs[3].data[c] / truth[3].data[c], 1, 1e-6);
    }
  }
}

TEST(BatchNorm, OneElementAChannel) {
  const Outcome outcome = run_native(batch_norm(1, Shape{2}, {3, -5}));
  EXPECT_EQ(outcome.outputs[0].data, (std::vector<double>{0, 0}));
  EXPECT_EQ(outcome.outputs[3].data, (std::vector<double>{0, 0}));
}

TEST(BatchNorm, RunningStatisticsStayWhenTheStepFailed) {
  const graph::ValueType channel{DType::f32, 0, Shape{2}};
  NodeCase commit{
      "batch_norm_commit",
      {{"chained", false}, {"momentum", 0.25}},
      {{channel, {1, 2}}, {channel, {3, 4}}, {channel, {5, 6}, Place::buffer, 0}, {channel, {7, 8}, Place::buffer, 1}}};
  EXPECT_EQ(run_native(commit).outputs[0].data, (std::vector<double>{4, 5}));
  EXPECT_EQ(run_native(commit).outputs[1].data, (std::vector<double>{6, 7}));
  commit.faulted = true;
  EXPECT_EQ(run_native(commit).outputs[0].data, (std::vector<double>{5, 6}));
  EXPECT_EQ(run_native(commit).outputs[1].data, (std::vector<double>{7, 8}));
}

}  // namespace
}  // namespace brisk::test
