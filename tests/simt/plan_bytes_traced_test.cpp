// The bytes that a plan says a step moves, against the distinct bytes that its launches touch.
#include <gtest/gtest.h>

#include <cmath>

#include "brisk/brisk.h"
#include "simt/touched_bytes.h"
#include "support/networks.h"

namespace brisk::test {
namespace {

double touched_by_a_step(Step& step, const Rows& rows, int64_t batch) {
  step.run(rows.inputs(0, batch), rows.labels(0, batch));  // plans, captures
  step.read();
  simt::touched_bytes();
  step.run(rows.inputs(0, batch), rows.labels(0, batch));
  step.read();
  double bytes = 0;
  for (const simt::TouchedBytes& launch : simt::touched_bytes())
    bytes += static_cast<double>(launch.read + launch.written);
  return bytes;
}

constexpr int64_t kBatch = 16;

/// read_again: elements of activations that a step of two launches reads in both; the plan counts them once.
void expect_planned(const ModelFunction& network, const Shape& sample, Precision precision, int64_t read_again) {
  Model model(network, sample);
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.01, .momentum = 0.9}),
            {.batch = kBatch, .device = gpu(0), .precision = precision});
  double planned = static_cast<double>(read_again * (precision == Precision::f32 ? 4 : 2));
  for (const PlanStep& part : step.plan().steps()) planned += part.bytes;
  const double touched = touched_by_a_step(step, make_rows(kBatch, sample, 10, 1), kBatch);
  EXPECT_LE(std::fabs(touched - planned), 0.05 * planned) << touched << " touched, " << planned << " planned";
}

Var convolutions(Var x) {
  x = max_pool2d(relu(conv2d(x, {.channels = 8, .kernel = 3, .padding = 1})), {.kernel = 2});
  x = max_pool2d(relu(conv2d(x, {.channels = 16, .kernel = 3, .padding = 1})), {.kernel = 2});
  return linear(relu(linear(flatten(x), 32)), 10);
}

Var normalised(Var x) {
  x = relu(batch_norm(conv2d(x, {.bias = false, .channels = 8, .kernel = 3, .padding = 1})));
  x = relu(x + batch_norm(conv2d(x, {.bias = false, .channels = 8, .kernel = 3, .padding = 1})));
  return linear(global_avg_pool2d(x), 10);
}

TEST(PlanBytes, AreThoseThatLaunchesTouch) {
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    SCOPED_TRACE(name(precision));
    expect_planned(convolutions, {3, 16, 16}, precision, 0);
    // Each of two batch_norms reads its input for the statistics and for the result, its gradient dy and the input.
    expect_planned(normalised, {4, 16, 16}, precision, 2 * 3 * kBatch * 8 * 16 * 16);
  }
}

}  // namespace
}  // namespace brisk::test
