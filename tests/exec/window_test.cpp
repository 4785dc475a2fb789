// Windows: the gradient of an update is that of the mean over all valid samples, whatever the split.
#include <gtest/gtest.h>

#include <cmath>

#include "support/networks.h"

namespace brisk {
namespace {

Var one_weight(Var x) { return x * parameter("w", {1}); }

// 0.5 (w x - y)^2 with x = 1.
Mean half_square(Var out, Var target) { return 0.5 * mse(out, target); }

TEST(Window, SevenSamplesInMicroBatchesOfFourMakeOneMean) {
  Model model(one_weight, {1});
  Step step(model, LossFunction(half_square), sgd({.learning_rate = 0.1}),
            {.accumulate = 3, .batch = 4, .targets = {{"target", {1}}}});
  const std::vector<float> x(7, 1.0f), y = {1, 2, 3, 4, 5, 6, 7};
  step.run(view(x, {7, 1}).rows(0, 4), view(y, {7, 1}).rows(0, 4));
  step.run(view(x, {7, 1}).rows(4, 3), view(y, {7, 1}).rows(4, 3));
  EXPECT_EQ(step.clock().updates, 0);
  step.flush();
  EXPECT_EQ(step.clock().updates, 1);
  EXPECT_NEAR(model.parameter("w").data<float>()[0], 0.4, 1e-7);
  step.flush();
  EXPECT_EQ(step.clock().updates, 1) << "nothing is open";
}

// d/dw of 0.5 (w x - y)^2 at w = 0 over y = 1..7 is -4: clipped to norm 1, PyTorch's way, or left as it is.
TEST(Window, GradientIsClippedOverTheWholeWindow) {
  const std::vector<float> x(7, 1.0f), y = {1, 2, 3, 4, 5, 6, 7};
  for (const auto& [limit, moved] : {std::pair(1.0, 0.1 / (1 + 1e-6 / 4)), {4.5, 0.4}, {0.0, 0.4}}) {
    Model model(one_weight, {1});
    Step step(model, LossFunction(half_square), sgd({.learning_rate = 0.1}),
              {.accumulate = 3, .batch = 4, .clip_norm = limit, .targets = {{"target", {1}}}});
    step.run(view(x, {7, 1}).rows(0, 4), view(y, {7, 1}).rows(0, 4));
    step.run(view(x, {7, 1}).rows(4, 3), view(y, {7, 1}).rows(4, 3));
    step.flush();
    EXPECT_NEAR(model.parameter("w").data<float>()[0], moved, 1e-7) << limit;
    EXPECT_NEAR(step.read().gradient_norm, 4, 1e-6) << "before it is clipped";
  }
}

TEST(Window, AnySplitGivesTheGradientOfTheWhole) {
  const test::Rows rows = test::make_rows(21, {1, 28, 28}, 10, 5);
  Model model(test::lenet, {1, 28, 28});
  Step whole(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 21});
  whole.forward_backward(rows.inputs(0, 21), rows.labels(0, 21));
  const Tensor expected = whole.gradient("conv2.weight");
  for (const auto& split : std::vector<std::vector<int64_t>>{{7, 7, 7}, {8, 8, 5}, {1, 19, 1}}) {
    Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.accumulate = 3, .batch = 19});
    step.expect({{"samples", 21}});
    int64_t at = 0;
    for (const int64_t count : split) {
      step.forward_backward(rows.inputs(at, count), rows.labels(at, count));
      at += count;
    }
    const Tensor gradient = step.gradient("conv2.weight");
    double difference = 0, norm = 0;
    for (int64_t i = 0; i < gradient.count(); ++i) {
      difference += std::pow(gradient.data<float>()[i] - expected.data<float>()[i], 2);
      norm += std::pow(expected.data<float>()[i], 2);
    }
    EXPECT_LT(std::sqrt(difference / norm), 1e-6);
  }
}

Var logits(Var x) { return x + parameter("bias", {2}); }

TEST(Window, TermsWithTheirOwnCountAreToldOrRefused) {
  Model model(logits, {2});
  const LossFunction loss = cross_entropy({.ignore_index = -1, .name = "lane"});
  Step step(model, loss, sgd({.learning_rate = 1.0}), {.accumulate = 2, .batch = 4});
  const std::vector<float> x(8, 0.0f);
  const std::vector<int64_t> first = {0, -1, -1, -1}, second = {1, 1, 0, 0};
  EXPECT_THROW(step.run(view(x, {4, 2}), view(first, {4})), Error);
  step.expect({{"lane", 5}, {"samples", 8}});
  step.run(view(x, {4, 2}), view(first, {4}));
  step.run(view(x, {4, 2}), view(second, {4}));
  // Five valid rows, three of class 0: d/db0 = mean(0.5 - [y = 0]) = (2 - 3) / 5 * 0.5.
  EXPECT_NEAR(model.parameter("bias").data<float>()[0], 0.1, 1e-6);
  EXPECT_NEAR(step.read().terms[0].count, 5, 0);
  step.expect({{"lane", 6}, {"samples", 8}});
  step.run(view(x, {4, 2}), view(first, {4}));
  try {
    step.run(view(x, {4, 2}), view(second, {4}));
    FAIL() << "a wrong count must be refused";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("5 count; 6 were expected"), std::string::npos) << error.what();
  }
  EXPECT_EQ(step.clock().updates, 1);
}

TEST(Window, EvaluationInsideAWindowChangesNothing) {
  const test::Rows rows = test::make_rows(16, {3, 8, 8}, 10, 5);
  const auto train = [&](bool evaluate) {
    Model model(test::residual_net, {3, 8, 8});
    Step step(model, cross_entropy(), sgd({.learning_rate = 0.1, .momentum = 0.9}), {.accumulate = 4, .batch = 4});
    for (int64_t i = 0; i < 4; ++i) {
      step.run(rows.inputs(4 * i, 4), rows.labels(4 * i, 4));
      if (!evaluate) continue;
      step.evaluate({{"input", rows.inputs(0, 3)}, {"target", rows.labels(0, 3)}});
      EXPECT_EQ(step.read_evaluation().samples, 3);
    }
    EXPECT_EQ(step.clock().updates, 1);
    return test::hash_of(model);
  };
  EXPECT_EQ(train(false), train(true));
}

TEST(Window, ALabelOutsideDropsTheWindowAndMovesNothing) {
  const test::Rows rows = test::make_rows(8, {3, 8, 8}, 10, 5);
  Model model(test::residual_net, {3, 8, 8});
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 8});
  const uint64_t before = test::hash_of(model);
  std::vector<int64_t> labels(rows.label);
  labels[5] = 10;
  try {
    step.run(rows.inputs(0, 8), view(labels, {8}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::data);
    const std::string text = error.what();
    EXPECT_NE(text.find("row 5"), std::string::npos) << text;
    EXPECT_NE(text.find("label 10, allowed 0..9 or ignore_index -100; are the labels 1-based?"), std::string::npos)
        << text;
  }
  EXPECT_EQ(test::hash_of(model), before) << "parameters and running statistics stay";
  step.run(rows.inputs(0, 8), rows.labels(0, 8));
  EXPECT_EQ(step.clock().updates, 1);
}

TEST(Window, AGradientThatIsNotFiniteMovesNothing) {
  Model model(one_weight, {1});
  Step step(model, LossFunction(half_square), adam({.learning_rate = 0.1}), {.batch = 2, .targets = {{"target", {1}}}});
  const std::vector<float> x = {1, 1}, good = {1, 2}, bad = {1, NAN};
  step.run(view(x, {2, 1}), view(good, {2, 1}));
  const float before = model.parameter("w").data<float>()[0];
  try {
    step.run(view(x, {2, 1}), view(bad, {2, 1}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::numeric);
    EXPECT_EQ(error.field(), "w");
  }
  EXPECT_EQ(model.parameter("w").data<float>()[0], before);
  EXPECT_EQ(step.clock().updates, 1);
}

TEST(Window, CountsThatCannotBeAreRefusedAndForgotten) {
  Model model(one_weight, {1});
  Step step(model, LossFunction(half_square), sgd({.learning_rate = 0.1}), {.batch = 1, .targets = {{"target", {1}}}});
  for (const double samples : {0.0, -1.0, 0.5, std::nan(""), HUGE_VAL}) {
    EXPECT_THROW(step.expect({{"samples", samples}}), Error) << samples;
  }
  const std::vector<float> one = {1};
  step.run(view(one, {1, 1}), view(one, {1, 1}));
  EXPECT_EQ(step.clock().updates, 1);
}

TEST(Window, ABatchThatIsNotFiniteLeavesRunningStatistics) {
  Model model([](Var x) { return batch_norm(x); }, {2});
  Step step(model, mse(), sgd({.learning_rate = 0.1}), {.batch = 3});
  const std::vector<float> target(6, 0.0f);
  for (const float bad : {std::nanf(""), HUGE_VALF, 1e30f}) {
    const std::vector<float> x = {1, 1, bad, 2, -3, 3};  // the first channel only
    try {
      step.run(view(x, {3, 2}), view(target, {3, 2}));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::numeric);
    }
    EXPECT_EQ(model.parameter("bn1.running_mean").data<float>()[0], 0) << bad;
    EXPECT_EQ(model.parameter("bn1.running_var").data<float>()[0], 1) << bad;
  }
  EXPECT_GT(model.parameter("bn1.running_mean").data<float>()[1], 0);
}

}  // namespace
}  // namespace brisk
