// Whole steps on the emulated device: captured, replayed, and the same as on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "brisk/brisk.h"
#include "simt/core.h"
#include "support/networks.h"

namespace brisk::test {
namespace {

/// The seed's network with few channels.
Var small_lenet(Var x) {
  x = max_pool2d(relu(conv2d(x, {.channels = 6, .kernel = 5})), {.kernel = 2});
  x = max_pool2d(relu(conv2d(x, {.channels = 12, .kernel = 3})), {.kernel = 2});
  return linear(relu(linear(flatten(x), 24)), 10);
}

/// Convolutions with batch_norm, a residual sum, one linear layer.
Var small_resnet(Var x) {
  const auto conv_bn = [](Var v, int64_t channels, int64_t kernel, int64_t stride) {
    return batch_norm(
        conv2d(v, {.bias = false, .channels = channels, .kernel = kernel, .padding = kernel / 2, .stride = stride}));
  };
  x = relu(conv_bn(x, 8, 3, 1));
  const Var y = conv_bn(relu(conv_bn(x, 16, 3, 2)), 16, 3, 1);
  x = relu(y + conv_bn(x, 16, 1, 2));
  return linear(global_avg_pool2d(x), 10);
}

using Values = std::vector<std::vector<float>>;

struct Trained {
  std::vector<double> losses;  ///< of each update
  Values start, values;
  int64_t updates = 0;
  int64_t skipped = 0;
  double loss_scale = 0;
  int64_t pool_entries = 0;  ///< times that work was queued
};

struct Recipe {
  std::function<Var(Var)> network;
  Shape sample;
  Precision precision = Precision::f32;
  int64_t overflow_at = -1;  ///< the step whose input is too large for f16
};

Values values_of(const Model& model) {
  Values values;
  for (const Parameter& parameter : model.parameters()) {
    const Tensor value = model.parameter(parameter.name);
    values.emplace_back(value.data<float>(), value.data<float>() + parameter.shape.count());
  }
  return values;
}

Trained train(const Recipe& recipe, Device device, int64_t steps) {
  constexpr int64_t kBatch = 8;
  Model model(recipe.network, recipe.sample, {.seed = 3});
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.05, .momentum = 0.9}),
            {.batch = kBatch,
             .device = device,
             .loss_scale = {.growth_interval = 10, .initial = 1024},
             .precision = recipe.precision});
  const Rows rows = make_rows(kBatch * 4, recipe.sample, 10, 5);
  Rows large = rows;
  for (float& value : large.input) value *= 1e5f;
  Trained trained;
  trained.start = values_of(model);
  for (int64_t i = 0; i < steps; ++i) {
    const Rows& now = i == recipe.overflow_at ? large : rows;
    step.run(now.inputs(i % 4 * kBatch, kBatch), now.labels(i % 4 * kBatch, kBatch));
    const double loss = step.read().loss;
    if (i != recipe.overflow_at) trained.losses.push_back(loss);
  }
  const StepTotals last = step.read();
  trained.updates = last.clock.updates;
  trained.skipped = last.skipped;
  trained.loss_scale = last.loss_scale;
  trained.pool_entries = step.counters().pool_entries;
  trained.values = values_of(model);
  return trained;
}

/// Euclidean, over all parameters and buffers.
double distance(const Values& a, const Values& b) {
  double sum = 0;
  for (size_t p = 0; p < a.size(); ++p)
    for (size_t k = 0; k < a[p].size(); ++k) {
      const double difference = static_cast<double>(a[p][k]) - static_cast<double>(b[p][k]);
      sum += difference * difference;
    }
  return std::sqrt(sum);
}

/// The same updates, losses near each other, and values apart by a small part of how far training has moved them.
void expect_near(const Trained& got, const Trained& want, double loss_tolerance, double value_tolerance) {
  EXPECT_EQ(got.updates, want.updates);
  EXPECT_EQ(got.skipped, want.skipped);
  EXPECT_EQ(got.loss_scale, want.loss_scale);
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t i = 0; i < want.losses.size(); ++i)
    EXPECT_NEAR(got.losses[i], want.losses[i], loss_tolerance * (1 + std::fabs(want.losses[i]))) << "step " << i;
  EXPECT_LE(distance(got.values, want.values), value_tolerance * distance(want.values, want.start));
}

TEST(CudaTraining, LenetInF32FollowsTheCpu) {
  const Recipe recipe{small_lenet, {1, 14, 14}};
  expect_near(train(recipe, gpu(0), 30), train(recipe, cpu(), 30), 1e-5, 1e-4);
}

TEST(CudaTraining, ResnetInF32FollowsTheCpu) {
  const Recipe recipe{small_resnet, {3, 8, 8}};
  expect_near(train(recipe, gpu(0), 30), train(recipe, cpu(), 30), 1e-5, 1e-4);
}

/// One overflow: skipped on both, the scale halves, and grows again after ten updates.
void expect_one_skip(const Recipe& recipe) {
  const Trained got = train(recipe, gpu(0), 30);
  EXPECT_EQ(got.updates, 29);
  EXPECT_EQ(got.skipped, 1);
  EXPECT_EQ(got.loss_scale, 1024 / 2 * 2 * 2);
  expect_near(got, train(recipe, cpu(), 30), 0.01, 0.1);
}

TEST(CudaTraining, LenetInFp16FollowsTheCpu) { expect_one_skip({small_lenet, {1, 14, 14}, Precision::fp16, 7}); }

TEST(CudaTraining, ResnetInFp16FollowsTheCpu) { expect_one_skip({small_resnet, {3, 8, 8}, Precision::fp16, 7}); }

TEST(CudaTraining, ResnetInBf16FollowsTheCpu) {
  const Recipe recipe{small_resnet, {3, 8, 8}, Precision::bf16};
  expect_near(train(recipe, gpu(0), 30), train(recipe, cpu(), 30), 0.05, 0.3);
}

TEST(CudaTraining, AStepIsOneGraph) {
  const Recipe recipe{small_lenet, {1, 14, 14}};
  const int64_t few = train(recipe, gpu(0), 10).pool_entries;
  EXPECT_LE(train(recipe, gpu(0), 30).pool_entries - few, 20 * 2);  // a step, and what brings shadows or totals
}

/// The same bits whatever the order of threads, blocks and streams.
TEST(CudaTraining, SchedulesGiveTheSameBits) {
  const Recipe recipe{small_resnet, {3, 8, 8}};
  const uint64_t before = simt::config().seed;
  Values first;
  for (const uint64_t seed : {0, 1, 9}) {
    simt::config().seed = seed;
    const Trained trained = train(recipe, gpu(0), 3);
    if (seed == 0) first = trained.values;
    EXPECT_EQ(trained.values, first) << "schedule " << seed;
  }
  simt::config().seed = before;
}

}  // namespace
}  // namespace brisk::test
