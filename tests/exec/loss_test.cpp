// Losses as programs use them: extreme values, shapes that are refused, arithmetic of means, terms of a whole
// micro-batch.
#include "brisk/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "brisk/ops/elementwise.h"
#include "brisk/ops/reduce.h"
#include "support/error_text.h"
#include "support/networks.h"

namespace brisk {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

using Pairwise = std::function<Mean(Var x, Var target)>;

struct Found {
  double loss = 0;
  std::vector<float> gradient;  // of the outputs
};

/// Loss of one sample of these logits and targets, and its gradient. The gradient is that of a bias added to the input.
Found loss_of(const Pairwise& loss, const std::vector<float>& x, const std::vector<float>& target) {
  const auto width = static_cast<int64_t>(x.size());
  Model model([&](Var in) { return in + parameter("shift", {width}); }, {width});
  Step step(model, LossFunction(loss), sgd({.learning_rate = 1.0}), {.batch = 1, .targets = {{"target", {width}}}});
  step.forward_backward(view(x, {1, width}), view(target, {1, width}));
  Found found;
  const Tensor gradient = step.gradient("shift");
  found.gradient.assign(gradient.data<float>(), gradient.data<float>() + width);
  found.loss = step.read().loss;
  return found;
}

Pairwise bce = [](Var x, Var t) { return bce_with_logits(x, t); };
Pairwise soft = [](Var x, Var t) { return cross_entropy(x, t); };
Pairwise kl = [](Var x, Var t) { return kl_divergence(x, t); };
Pairwise distance = [](Var x, Var t) { return l1(x, t); };

// ---- extreme values

TEST(Loss, BceOfLargeLogitsIsExact) {
  EXPECT_EQ(loss_of(bce, {3e38f}, {1}).loss, 0);
  EXPECT_EQ(loss_of(bce, {-3e38f}, {0}).loss, 0);
  EXPECT_NEAR(loss_of(bce, {-3e38f}, {1}).loss / 3e38, 1, 1e-6);
  EXPECT_NEAR(loss_of(bce, {3e38f}, {0}).loss / 3e38, 1, 1e-6);
  const Found tiny = loss_of(bce, {-20}, {0});  // log(1 + e^-20), which is lost next to 20
  EXPECT_NEAR(tiny.loss / std::log1p(std::exp(-20.0)), 1, 1e-6);
  EXPECT_NEAR(tiny.gradient[0] / std::exp(-20.0), 1, 1e-6);
  const Found wrong = loss_of(bce, {-100}, {1});
  EXPECT_NEAR(wrong.loss, 100, 1e-4);
  EXPECT_EQ(wrong.gradient[0], -1);
  EXPECT_TRUE(std::isnan(loss_of(bce, {kNan, 0}, {1, 1}).loss));
  EXPECT_TRUE(std::isnan(loss_of(bce, {0, 0}, {1, kNan}).loss));
}

TEST(Loss, BceAtZeroHasTheSlopeOfBothSides) {
  EXPECT_EQ(loss_of(bce, {0}, {1}).gradient[0], -0.5f);
  EXPECT_EQ(loss_of(bce, {0}, {0}).gradient[0], 0.5f);
  EXPECT_NEAR(loss_of(bce, {0}, {0.25f}).loss, std::log(2.0), 1e-6);
}

TEST(Loss, SoftTargetsOfZeroCountNothing) {
  const Found found = loss_of(soft, {3e38f, -3e38f, 0}, {1, 0, 0});
  EXPECT_EQ(found.loss, 0);
  EXPECT_EQ(found.gradient, (std::vector<float>{0, 0, 0}));
  EXPECT_NEAR(loss_of(soft, {100, -100, 0}, {0, 1, 0}).loss, 200, 1e-3);
  EXPECT_TRUE(std::isnan(loss_of(soft, {kNan, 0, 0}, {0, 1, 0}).loss));
  EXPECT_TRUE(std::isnan(loss_of(soft, {0, 0, 0}, {kNan, 1, 0}).loss));
}

TEST(Loss, SoftTargetsEqualLabelsWhenTheyAreOneHot) {
  const std::vector<float> x = {0.5f, -1, 2, 0.25f}, target = {0, 0, 0, 1};
  for (const double smoothing : {0.0, 0.3}) {
    const auto probabilities = [&](Var logits, Var t) {
      return cross_entropy(logits, t, {.label_smoothing = smoothing});
    };
    const Found found = loss_of(probabilities, x, target);
    Model model([](Var in) { return in + parameter("shift", {4}); }, {4});
    Step step(model, cross_entropy({.label_smoothing = smoothing}), sgd({.learning_rate = 1.0}), {.batch = 1});
    const std::vector<int64_t> label = {3};
    step.forward_backward(view(x, {1, 4}), view(label, {1}));
    const Tensor gradient = step.gradient("shift");
    EXPECT_NEAR(found.loss, step.read().loss, 1e-6);
    for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(found.gradient[i], gradient.data<float>()[i], 1e-6);
  }
}

TEST(Loss, KlOfZeroProbabilities) {
  const Found found = loss_of(kl, {-kInf, -1, -2}, {0, 0.5f, 0.5f});
  EXPECT_NEAR(found.loss, 2 * 0.5 * std::log(0.5) + 0.5 + 1, 1e-6);
  EXPECT_EQ(found.gradient, (std::vector<float>{0, -0.5f, -0.5f}));
  EXPECT_EQ(loss_of(kl, {-kInf, 0}, {0, 1}).loss, 0);
  EXPECT_EQ(loss_of(kl, {-kInf, 0}, {1, 0}).loss, kInf);
  EXPECT_TRUE(std::isnan(loss_of(kl, {kNan, 0}, {1, 1}).loss));
  EXPECT_TRUE(std::isnan(loss_of(kl, {0, 0}, {1, kNan}).loss));
}

TEST(Loss, L1OfEqualsHasNoSlope) {
  const Found found = loss_of(distance, {1, 2, -3e38f}, {1, 5, 0});
  EXPECT_EQ(found.gradient[0], 0);
  EXPECT_NEAR(found.gradient[1], -1.0 / 3, 1e-7);
  EXPECT_NEAR(found.loss / 1e38, 1, 1e-6);
  EXPECT_TRUE(std::isnan(loss_of(distance, {kNan}, {1}).loss));
}

TEST(Loss, TripletOfEqualSamples) {
  const Pairwise same = [](Var x, Var t) { return triplet_margin(x, x * 1.0, t, {.margin = 2}); };
  const Found found = loss_of(same, {1, 2}, {1, 2});
  EXPECT_NEAR(found.loss, 2, 1e-5);
  for (const float g : found.gradient) EXPECT_TRUE(std::isfinite(g));
  EXPECT_EQ(loss_of(same, {1, 2}, {9, 9}).loss, 0);
}

// ---- shapes and options

using test::error_text;

std::string step_refusal(const LossFunction& loss, const Shape& target, DType dtype = DType::f32) {
  Model model([](Var x) { return x + parameter("shift", {3}); }, {3});
  return error_text([&] {
    const Step step(model, loss, sgd({.learning_rate = 1.0}), {.targets = {{"target", target, dtype}}});
  });
}

TEST(Loss, NothingIsBroadcastAndTheFactorysLineIsNamed) {
  const std::vector<std::pair<std::string, LossFunction>> losses = {{"mse", mse()},
                                                                    {"l1", l1()},
                                                                    {"huber", huber()},
                                                                    {"bce_with_logits", bce_with_logits()},
                                                                    {"kl_divergence", kl_divergence()}};
  for (const auto& [name, loss] : losses) {
    const std::string text = step_refusal(loss, {});
    EXPECT_NE(text.find("output [N, 3], target [N]; reshape one"), std::string::npos) << text;
    EXPECT_EQ(text.find("Error [shape] " + name + " (loss_test.cpp:"), 0U) << text;
  }
  EXPECT_NE(step_refusal(mse(), {3}, DType::i64).find("output is f32, target is i64; both must be f32"),
            std::string::npos);
  const std::string text = step_refusal(cross_entropy(), {4});
  EXPECT_NE(text.find("labels must be [N] i64 (class indices), or probabilities [N, 3] f32, got [N, 4] f32"),
            std::string::npos)
      << text;
}

TEST(Loss, OptionsOutOfRangeAreRefused) {
  const auto in_step = [](const Pairwise& loss) { return step_refusal(LossFunction(loss), {3}); };
  for (const double value : {-1.0, std::nan(""), 1e39}) {
    EXPECT_NE(in_step([&](Var x, Var t) {
                return bce_with_logits(x, t, {.pos_weight = value});
              }).find("bce_with_logits.pos_weight = "),
              std::string::npos);
    EXPECT_NE(in_step([&](Var x, Var t) {
                return triplet_margin(x, t, t, {.margin = value});
              }).find("triplet_margin.margin = "),
              std::string::npos);
    EXPECT_NE(in_step([&](Var x, Var t) {
                return triplet_margin(x, t, t, {.epsilon = value});
              }).find("triplet_margin.epsilon = "),
              std::string::npos);
  }
  for (const double value : {-0.1, 1.1, std::nan("")})
    EXPECT_NE(in_step([&](Var x, Var) { return bce_with_logits(x, value); }).find("target = "), std::string::npos);
  EXPECT_NE(in_step([](Var x, Var t) {
              return cross_entropy(x, t, {.class_weights = {1, 1}});
            }).find("cross_entropy.class_weights (loss_test.cpp"),
            std::string::npos);
  EXPECT_NE(in_step([](Var x, Var t) {
              return cross_entropy(x, t, {.ignore_index = 1});
            }).find("cross_entropy.ignore_index = 1 (loss_test.cpp"),
            std::string::npos);
  EXPECT_NE(in_step([](Var x, Var t) { return mse(x, t) / 0; }).find("must be finite as an f32"), std::string::npos);
}

// ---- arithmetic

TEST(Loss, MeansAddSubtractAndScale) {
  const Pairwise objective = [](Var x, Var t) {
    const Mean gain = sample_mean(x, {.name = "gain"});
    return -gain + 0.5 * mse(x, t) - l1(x, t, {.name = "l1"}) / 4;
  };
  const Found found = loss_of(objective, {1, 4}, {3, 3});
  EXPECT_NEAR(found.loss, -2.5 + 0.5 * 2.5 - 1.5 / 4, 1e-6);
  EXPECT_NEAR(found.gradient[0], -0.5 + 0.5 * -2 + 0.5 / 4, 1e-6);
  EXPECT_NEAR(found.gradient[1], -0.5 + 0.5 * 1 - 0.5 / 4, 1e-6);
}

// ---- terms of a whole micro-batch

/// log of the mean over the micro-batch of exp(x), which is no mean over samples.
Mean log_mean_exp(Var x, Var) { return 2 * per_batch(log(batch_mean(reduce_sum(exp(x)))), {.name = "spread"}); }

TEST(Loss, PerBatchIsOfTheMicroBatch) {
  Model model([](Var in) { return in + parameter("shift", {2}); }, {2});
  Step step(model, LossFunction(log_mean_exp), sgd({.learning_rate = 1.0}),
            {.accumulate = 2, .batch = 19, .targets = {{"target", {}}}});
  std::vector<float> x(44), target(22, 0);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) / 4 - 0.5f;
  const auto spread = [&](size_t first, size_t count) {
    double sum = 0;
    for (size_t i = 2 * first; i < 2 * (first + count); ++i) sum += std::exp(static_cast<double>(x[i]));
    return std::log(sum / static_cast<double>(count));
  };
  step.expect({{"samples", 22}});
  step.forward_backward(view(x, {22, 2}).rows(0, 19), view(target, {22}).rows(0, 19));
  step.forward_backward(view(x, {22, 2}).rows(19, 3), view(target, {22}).rows(19, 3));
  const double expected = 2 * (19 * spread(0, 19) + 3 * spread(19, 3)) / 22;
  // The gradient of log(mean(exp(x + s))) by both shifts together is 1 for each micro-batch.
  const Tensor gradient = step.gradient("shift");
  EXPECT_NEAR(gradient.data<float>()[0] + gradient.data<float>()[1], 2, 1e-5);
  const StepTotals totals = step.read();
  EXPECT_NEAR(totals.loss, expected, 1e-5);
  EXPECT_EQ(totals.terms[0].name, "spread");
  EXPECT_EQ(totals.terms[0].count, 22);
}

TEST(Loss, PerBatchNeedsANameAndANumber) {
  const auto in_step = [](const Pairwise& loss) { return step_refusal(LossFunction(loss), {3}); };
  EXPECT_NE(in_step([](Var x, Var) { return per_batch(batch_mean(reduce_sum(x)), {}); }).find("per_batch.name"),
            std::string::npos);
  EXPECT_NE(in_step([](Var x, Var) { return per_batch(x, {.name = "p"}); }).find("sample_mean() takes one a sample"),
            std::string::npos);
  EXPECT_NE(in_step([](Var x, Var) { return per_batch(batch_mean(x), {.name = "p"}); }).find("got [3]"),
            std::string::npos);
  EXPECT_NE(in_step([](Var x, Var) {
              return per_batch(batch_mean(batch_mean(x)), {.name = "p"});
            }).find("takes a value of each sample"),
            std::string::npos);
}

}  // namespace
}  // namespace brisk
