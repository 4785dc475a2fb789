// Mixed precision through a whole step: the loss scale, skipped updates, masters in f32, and what 16 bits keep.
#include "brisk/precision.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "exec/step_impl.h"
#include "support/devices.h"
#include "support/networks.h"

namespace brisk {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

/// out = x . w with w = `first`, without a bias.
Model dot_model(int64_t features, float first) {
  Model model([](Var x) { return linear(x, 1, {.bias = false}); }, Shape{features});
  model.set_parameter("fc1.weight", Tensor(std::vector<float>(static_cast<size_t>(features), first), {1, features}));
  return model;
}

/// A step whose gradient of w is `factor` times the mean of its inputs.
struct DotStep {
  DotStep(int64_t features, float first, double factor, const Optimizer& optimizer, StepOptions options)
      : model(dot_model(features, first)),
        step([this, factor](const Vars& in) { return factor * sample_mean(model(in["x"])); }, Inputs{{"x", {features}}},
             optimizer, std::move(options)) {}
  void run(std::vector<float> x) {
    const int64_t features = model.parameter("fc1.weight").shape()[1];
    step.run({{"x", ConstView(x.data(), {static_cast<int64_t>(x.size()) / features, features})}});
  }
  std::vector<float> weights() const {
    const Tensor w = model.parameter("fc1.weight");
    return {w.data<float>(), w.data<float>() + w.count()};
  }
  Model model;
  Step step;
};

class Amp : public testing::TestWithParam<Device> {
 protected:
  StepOptions options(int64_t batch, LossScale scale = {}, int64_t accumulate = 1, double clip = 0) const {
    return {.accumulate = accumulate,
            .batch = batch,
            .clip_norm = clip,
            .device = GetParam(),
            .loss_scale = scale,
            .precision = Precision::fp16};
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, Amp, testing::ValuesIn(test::devices()),
                         [](const auto& made) { return test::device_name(made.param); });

// Growth after an exact interval, backoff on each overflow, which also starts the interval anew.
TEST_P(Amp, AMP01_growth_and_backoff) {
  DotStep dot(1, 1, 1e-3, sgd({.learning_rate = 1e-3}), options(1, {.growth_interval = 4}));
  const auto scale_after = [&](float x) {
    dot.run({x});
    return dot.step.read().loss_scale;
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(scale_after(1), 65536);
  EXPECT_EQ(scale_after(1), 131072);
  EXPECT_EQ(scale_after(kInf), 65536);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(scale_after(1), 65536);
  EXPECT_EQ(scale_after(1), 131072);
  const StepTotals totals = dot.step.read();
  EXPECT_EQ(totals.skipped, 1);
  EXPECT_EQ(totals.clock.updates, 8);
  EXPECT_EQ(totals.clock.attempts, 9);
}

// A gradient that is never finite ends in an error that names the parameter, at the smallest scale.
TEST_P(Amp, AMP02_skips_for_ever_are_an_error) {
  DotStep dot(1, 1, 1, sgd({.learning_rate = 1}), options(1));
  const std::vector<float> before = dot.weights();
  int64_t runs = 0;
  try {
    for (; runs < 60; ++runs) {
      dot.run({NAN});
      if (runs == 15) {
        EXPECT_EQ(dot.step.read().loss_scale, 1) << "16 halvings";
      }
    }
    dot.step.read();
    FAIL() << "silently skipped for ever";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::numeric);
    EXPECT_EQ(error.field(), "fc1.weight");
    const std::string text = error.what();
    EXPECT_NE(text.find("50 times in a row: attempt 49, update 0, loss scale 1"), std::string::npos) << text;
  }
  EXPECT_GE(runs, 49);
  EXPECT_LE(runs, 51) << "known two runs late at most";
  EXPECT_EQ(dot.weights(), before);
  EXPECT_EQ(dot.step.clock().updates, 0);
}

// The clipped norm is that of the true gradient, as the reported one.
TEST_P(Amp, AMP04_clips_after_unscaling) {
  DotStep dot(2, 0, 0.25, sgd({.learning_rate = 1}), options(1, {}, 1, 1.0));
  dot.run({12, 16});
  const StepTotals totals = dot.step.read();
  EXPECT_EQ(totals.skipped, 0);
  EXPECT_NEAR(totals.gradient_norm, 5, 1e-5);
  EXPECT_NEAR(dot.weights()[0], -0.6, 1e-5);
  EXPECT_NEAR(dot.weights()[1], -0.8, 1e-5);
}

// Four micro-batches are unscaled once, and clipped as one.
TEST_P(Amp, AMP05_one_unscale_for_a_window) {
  const auto weights = [&](Precision precision) {
    StepOptions wanted = options(2, {.initial = 1024}, 4, 0.5);
    wanted.precision = precision;
    DotStep dot(3, 0.5, 1, sgd({.learning_rate = 0.1}), wanted);
    for (int k = 0; k < 4; ++k) dot.run({0.1f, 0.2f, -0.3f, 1.5f + static_cast<float>(k), -0.25f, 0.7f});
    EXPECT_EQ(dot.step.read().clock.updates, 1);
    EXPECT_NEAR(dot.step.gradient("fc1.weight").data<float>()[0], 0.8 + 0.75, 2e-3) << "without the scale";
    return dot.weights();
  };
  const std::vector<float> got = weights(Precision::fp16), want = weights(Precision::f32);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-4) << i;
}

Var normalised_net(Var x) {
  x = relu(batch_norm(conv2d(x, {.bias = false, .channels = 8, .kernel = 3, .padding = 1})));
  return linear(flatten(max_pool2d(x, {.kernel = 2})), 10);
}

// One overflow in a window skips all of it, once; afterwards all is as if the window had not been, but for the scale.
TEST_P(Amp, AMP06_a_window_is_skipped_whole) {
  const test::Rows rows = test::make_rows(32, {3, 8, 8}, 10, 5);
  const auto train = [&](bool overflows, LossScale scale) {
    Model model(normalised_net, {3, 8, 8});
    Step step(model, cross_entropy(), adam({.learning_rate = step_decay(0.01, {.every = 1_updates, .factor = 0.5})}),
              options(4, scale, 4, 1));
    std::vector<float> bad(4 * 3 * 8 * 8, 0.5f);
    bad[100] = kInf;
    const auto window = [&](int64_t first) {
      for (int64_t k = 0; k < 4; ++k) step.run(rows.inputs(first + 4 * k, 4), rows.labels(first + 4 * k, 4));
    };
    window(0);
    const uint64_t before = test::hash_of(model);
    if (overflows) {
      for (int64_t k = 0; k < 4; ++k)
        step.run(k == 1 ? ConstView(bad.data(), {4, 3, 8, 8}) : rows.inputs(4 * k, 4), rows.labels(4 * k, 4));
      const StepTotals totals = step.read();
      EXPECT_EQ(test::hash_of(model), before) << "parameters and running statistics, bit by bit";
      EXPECT_EQ(totals.loss_scale, scale.initial / 2) << "one backoff";
      EXPECT_EQ(totals.skipped, 1);
      EXPECT_EQ(totals.clock.updates, 1);
      EXPECT_EQ(totals.clock.attempts, 2);
    }
    window(16);
    window(0);
    const StepTotals totals = step.read();
    EXPECT_EQ(totals.clock.updates, 3);
    EXPECT_EQ(totals.learning_rate, step.read().learning_rate);
    return std::pair(test::hash_of(model), totals.learning_rate);
  };
  // The scale is a power of two, so that it leaves no trace in what is finite.
  EXPECT_EQ(train(true, {.initial = 2048}), train(false, {.initial = 2048}));
}

// What moves is the f32 master: 100 updates of 1e-3 are 0.1, though a bf16 next to 1 is 2^-8 away.
TEST_P(Amp, AMP10_masters_are_f32) {
  StepOptions bf16 = options(1);
  bf16.precision = Precision::bf16;
  DotStep dot(1, 1, 1, sgd({.learning_rate = 1e-3}), bf16);
  for (int i = 0; i < 100; ++i) dot.run({1});
  dot.step.read();
  EXPECT_NEAR(dot.weights()[0], 0.9, 1e-4);
}

// A logit beyond 65504 overflows: that update is skipped, and is told as skipped.
TEST_P(Amp, AMP11_an_overflow_reaches_no_weight) {
  Model model([](Var x) { return linear(x, 3); }, Shape{2});
  model.set_parameter("fc1.weight", Tensor(std::vector<float>{1, 1, -1, 1, 0.5f, 1}, {3, 2}));
  Step step(model, cross_entropy(), adam({.learning_rate = 0.01}), options(2, {.initial = 256}));
  const std::vector<int64_t> labels = {0, 2};
  const std::vector<float> good = {1, 2, -1, 0.5f}, bad = {1, 2, 4e4f, 3e4f};
  step.run(view(good, {2, 2}), view(labels, {2}));
  step.read();
  const uint64_t before = test::hash_of(model);
  step.run(view(bad, {2, 2}), view(labels, {2}));
  EXPECT_EQ(step.read().skipped, 1);
  EXPECT_EQ(test::hash_of(model), before);
  step.run(view(good, {2, 2}), view(labels, {2}));
  const StepTotals totals = step.read();
  EXPECT_EQ(totals.clock.updates, 2);
  EXPECT_TRUE(std::isfinite(totals.loss));
  const Tensor w = model.parameter("fc1.weight");
  for (int64_t i = 0; i < w.count(); ++i) EXPECT_TRUE(std::isfinite(w.data<float>()[i]));
}

// A row in f16 whose squares overflow has the statistics of f32.
TEST_P(Amp, NU12_layer_norm_in_fp16) {
  const int64_t size = 1280;
  Model model(
      [](Var x) {
        x = conv2d(x, {.bias = false, .channels = 1, .kernel = 1});
        return layer_norm(flatten(x));
      },
      Shape{1, 1, size});
  model.set_parameter("conv1.weight", Tensor(std::vector<float>{1}, {1, 1, 1, 1}));
  StepOptions wanted = options(3);
  wanted.targets = {{"target", {size}}};
  Step step(model, mse(), sgd({.learning_rate = 0.01}), wanted);
  std::vector<float> x(static_cast<size_t>(3 * size)), want(x.size(), 0);
  for (int64_t i = 0; i < size; ++i) {
    x[static_cast<size_t>(i)] = i % 2 == 0 ? 200 : -200;
    want[static_cast<size_t>(i)] = i % 2 == 0 ? 1 : -1;
    x[static_cast<size_t>(size + i)] = 3;           // constant: exactly the bias
    x[static_cast<size_t>(2 * size + i)] = -60000;  // constant, and near the largest f16
  }
  step.evaluate({{"input", view(x, {3, 1, 1, size})}, {"target", view(want, {3, size})}});
  const double error = step.read_evaluation().loss;
  EXPECT_LT(error, 1e-6) << "mean square";
}

TEST_P(Amp, GradientsAreGivenAndTakenWithoutTheScale) {
  DotStep dot(2, 1, 0.25, sgd({.learning_rate = 0.5}), options(1));
  dot.run({8, -4});
  EXPECT_EQ(dot.step.gradient("fc1.weight").data<float>()[0], 2);
  EXPECT_EQ(dot.step.gradient("fc1.weight").data<float>()[1], -1);
  const std::vector<float> w = dot.weights();
  const std::vector<float> x = {8, -4}, gradient = {1, 3};
  dot.step.forward_backward({{"x", view(x, {1, 2})}});
  dot.step.set_gradient("fc1.weight", view(gradient, {1, 2}));
  dot.step.update();
  EXPECT_EQ(dot.weights()[0], w[0] - 0.5f);
  EXPECT_EQ(dot.weights()[1], w[1] - 1.5f);
}

TEST(Precision, AutomaticIsF32OnACpu) {
  Model model(test::lenet, {1, 28, 28});
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 8, .precision = Precision::automatic});
  EXPECT_EQ(step.plan().precision(), Precision::f32);
  EXPECT_NE(step.plan().explain().find("threads, f32\n"), std::string::npos);
}

TEST(Precision, TheSameBitsForAnyNumberOfThreads) {
  const test::Rows rows = test::make_rows(19, {3, 8, 8}, 10, 5);
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    const auto train = [&](int threads) {
      Model model(test::residual_net, {3, 8, 8});
      Step step(model, cross_entropy(), adam({.learning_rate = 0.01}),
                {.batch = 19, .loss_scale = {.initial = 1024}, .precision = precision, .threads = threads});
      for (int i = 0; i < 5; ++i) step.run(rows.inputs(0, 19), rows.labels(0, 19));
      EXPECT_EQ(step.clock().updates, 5);
      return test::hash_of(model);
    };
    EXPECT_EQ(train(1), train(3)) << name(precision);
  }
}

TEST(Precision, HeldBytesAreThePlans) {
  const test::Rows rows = test::make_rows(8, {3, 8, 8}, 10, 5);
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    Model model(test::residual_net, {3, 8, 8});
    Step step(model, cross_entropy(), adam({.learning_rate = 0.01}), {.batch = 8, .precision = precision});
    step.prepare();
    EXPECT_EQ(step.impl().held_bytes(), step.plan().bytes().total) << name(precision);
  }
}

TEST(Precision, PredictionsRoundAsTrainingDoes) {
  const test::Rows rows = test::make_rows(8, {1, 28, 28}, 10, 5);
  const Model model(test::lenet, {1, 28, 28});
  const auto predicted = [&](Precision precision, int64_t batch) {
    std::vector<float> out(80);
    Predictor predictor(model, {.batches = {batch}, .precision = precision});
    predictor.run(rows.inputs(0, 8), View(out.data(), {8, 10}));
    return out;
  };
  const std::vector<float> want = predicted(Precision::f32, 8);
  for (const auto& [precision, most] : {std::pair(Precision::fp16, 2e-3), {Precision::bf16, 2e-2}}) {
    const std::vector<float> got = predicted(precision, 8);
    double largest = 0;
    for (size_t i = 0; i < want.size(); ++i) largest = std::max(largest, std::fabs(double{got[i]} - double{want[i]}));
    EXPECT_GT(largest, 0) << name(precision);
    EXPECT_LT(largest, most) << name(precision);
    const std::vector<float> one = predicted(precision, 1);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(one[i], got[i], most) << "sample by sample";
  }
}

}  // namespace
}  // namespace brisk
