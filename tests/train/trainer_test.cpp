// fit() and evaluate(): exact means and gradients over tails and windows, clocks, reports, and how a run ends.
#include "brisk/trainer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/norm.h"
#include "train_support.h"

namespace brisk {
namespace {

/// Points of two classes, told apart by the sign of their first feature.
InMemoryDataset signs(int64_t n, int64_t features = 3) {
  std::vector<float> x(static_cast<size_t>(n * features));
  std::vector<int64_t> y(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t k = 0; k < features; ++k) {
      x[static_cast<size_t>(i * features + k)] =
          static_cast<float>(std::sin(1.7 * static_cast<double>(i * features + k) + 0.3));
    }
    y[static_cast<size_t>(i)] = x[static_cast<size_t>(i * features)] > 0;
  }
  InMemoryDataset out;
  out.add("input", Tensor(std::move(x), {n, features}));
  out.add("target", Tensor(std::move(y), {n}));
  out.set_name("signs");
  return out;
}

TEST(Trainer, AWindowIsTheMeanOfAllItsSamples) {
  Model model = weight_model();
  Trainer trainer(model, half_square, sgd({.learning_rate = 0.1}), {.accumulate = 3, .batch = 4});
  const FitResult result = trainer.fit(counting(7), quiet(1_epochs));
  EXPECT_EQ(result.clock.updates, 1);
  EXPECT_EQ(result.clock.samples, 7);
  EXPECT_EQ(result.clock.epochs, 1);
  EXPECT_NEAR(weight(model), 0.4, 1e-6);
  EXPECT_NEAR(result.train.loss, 0.5 * 140 / 7, 1e-6);  // all seven at w = 0
  EXPECT_EQ(result.train.samples, 7);
}

TEST(Trainer, TailsAreExact) {
  Model model = weight_model();
  Trainer trainer(model, half_square, sgd({.learning_rate = 0.1}), {.batch = 4});
  FitOptions options = quiet(1_epochs);
  options.shuffle = false;
  trainer.fit(counting(7), options);
  const double first = 0.1 * 2.5;
  EXPECT_NEAR(weight(model), first + 0.1 * (6 - first), 1e-6);
}

TEST(Trainer, CountedTermsAreExactOverWindows) {
  // Labels 1 are ignored in an uneven way; the update must be that of one large batch.
  const auto run = [](int64_t batch, int64_t accumulate) {
    Model model([](Var x) { return linear(x, 3); }, {3});
    const CrossEntropyOptions loss = {.class_weights = {1, 2, 0.5}, .ignore_index = 1};
    Trainer trainer(model, cross_entropy(loss), sgd({.learning_rate = 0.5}),
                    {.accumulate = accumulate, .batch = batch});
    FitOptions options = quiet(3_epochs);
    options.shuffle = false;
    const FitResult result = trainer.fit(signs(11), options);
    EXPECT_EQ(result.clock.updates, 3);
    return model.parameter("fc1.weight");
  };
  const Tensor whole = run(11, 1), parts = run(2, 6);
  for (int64_t i = 0; i < whole.count(); ++i) EXPECT_NEAR(whole.data<float>()[i], parts.data<float>()[i], 2e-6);
}

TEST(Trainer, ReachesALowLoss) {
  Model model([](Var x) { return linear(relu(linear(x, 16)), 2); }, {3});
  Trainer trainer(model, cross_entropy(), adamw({.learning_rate = warmup(5_updates).then(cosine(0.05))}),
                  {.batch = 16});
  trainer.add_metric("accuracy", accuracy());
  const FitResult result = trainer.fit(signs(200), signs(60), quiet(20_epochs));
  EXPECT_LT(result.train.loss, 0.1);
  EXPECT_GT(result.evaluation.metric("accuracy"), 0.95);
  EXPECT_EQ(result.evaluation.samples, 60);
  EXPECT_EQ(result.reason, StopReason::finished);
  EXPECT_NE(result.text().find("finished: 20 epochs, 260 updates in "), std::string::npos) << result.text();
  EXPECT_NE(result.text().find("cpu "), std::string::npos) << result.text();
}

TEST(Trainer, EvaluationIsTheMeanOverAllSamples) {
  Model model = weight_model();
  Trainer trainer(model, half_square, sgd({.learning_rate = 0.1}), {.batch = 4});
  const EvaluationResult found = trainer.evaluate(counting(21));
  double expected = 0;
  for (int i = 1; i <= 21; ++i) expected += 0.5 * i * i / 21;
  EXPECT_NEAR(found.loss, expected, 1e-5);
  EXPECT_EQ(found.samples, 21);
  EXPECT_EQ(trainer.clock().updates, 0);
  EXPECT_EQ(weight(model), 0);
}

TEST(Trainer, AccuracyOf20In21) {
  Model model([](Var x) { return linear(x, 2, {.bias = false}); }, {1});
  model.set_parameter("fc1.weight", Tensor(std::vector<float>{1, -1}, {2, 1}));
  std::vector<int64_t> labels(21, 0);
  labels[0] = 1;
  InMemoryDataset data;
  data.add("input", Tensor(std::vector<float>(21, 1), {21, 1}));
  data.add("target", Tensor(std::move(labels), {21}));
  for (const int64_t batch : {1, 2, 4, 20, 64}) {
    Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = batch});
    trainer.add_metric("accuracy", accuracy());
    EXPECT_EQ(trainer.evaluate(data).metric("accuracy"), 20.0 / 21) << batch;
  }
}

TEST(Trainer, TwoFitsGoOnWithTheSameClock) {
  const InMemoryDataset data = signs(50);
  const auto make = [] { return Model([](Var x) { return linear(relu(linear(x, 8)), 2); }, {3}); };
  Model once = make(), twice = make();
  Trainer one(once, cross_entropy(), sgd({.learning_rate = 0.1, .momentum = 0.9}), {.batch = 8});
  one.fit(data, quiet(3_epochs));
  Trainer two(twice, cross_entropy(), sgd({.learning_rate = 0.1, .momentum = 0.9}), {.batch = 8});
  const FitResult first = two.fit(data, quiet(1.5_epochs));
  EXPECT_EQ(first.clock.updates, 7 + 4);
  const FitResult second = two.fit(data, quiet(3_epochs));
  EXPECT_EQ(second.clock.updates, 21);
  EXPECT_EQ(second.clock.samples, 150);
  EXPECT_EQ(second.clock.epochs, 3);
  const Tensor a = once.parameter("fc1.weight"), b = twice.parameter("fc1.weight");
  for (int64_t i = 0; i < a.count(); ++i) EXPECT_EQ(a.data<float>()[i], b.data<float>()[i]);
  EXPECT_EQ(two.fit(data, quiet(3_epochs)).clock.updates, 21);  // reached already: nothing moves
  EXPECT_EQ(two.clock().updates, 21);
}

TEST(Trainer, DurationsInUpdatesAndSamples) {
  Model model = weight_model();
  Trainer trainer(model, half_square, sgd({.learning_rate = 0.1}), {.batch = 4});
  EXPECT_EQ(trainer.fit(counting(7), quiet(3_updates)).clock.samples, 11);
  EXPECT_EQ(trainer.fit(counting(7), quiet(20_samples)).clock.samples, 21);
  EXPECT_NE(error_text([&] { trainer.fit(counting(7), {}); }).find("FitOptions.duration: missing"), std::string::npos);
  EXPECT_NE(error_text([&] { trainer.fit(counting(7), quiet(10_minutes)); }).find("FitOptions.duration = 600 seconds"),
            std::string::npos);
  EXPECT_NE(error_text([&] { trainer.fit(counting(7), quiet(Duration(NAN, Duration::Unit::epochs))); }).find("nan"),
            std::string::npos);
  FitOptions limited = quiet(9_epochs);
  limited.time_limit = 3_epochs;
  EXPECT_NE(error_text([&] { trainer.fit(counting(7), limited); }).find("FitOptions.time_limit = 3 epochs"),
            std::string::npos);
}

TEST(Trainer, TimeLimitEndsTheRunAfterAnUpdate) {
  Model model = weight_model();
  Trainer trainer(model, half_square, sgd({.learning_rate = 0.1}), {.batch = 4});
  FitOptions options = quiet(100_epochs);
  options.time_limit = Duration(1e-9, Duration::Unit::seconds);
  const FitResult result = trainer.fit(counting(7), counting(7), options);
  EXPECT_EQ(result.reason, StopReason::time_limit);
  EXPECT_EQ(result.clock.updates, 1);
  EXPECT_EQ(result.evaluation.samples, 7);
  EXPECT_EQ(result.exit_code(), 0);
}

TEST(Trainer, SchedulesSpanTheRun) {
  Model model = weight_model();
  Trainer trainer(model, half_square, sgd({.learning_rate = warmup(2_updates).then(cosine(0.1))}), {.batch = 4});
  std::vector<double> rates;
  trainer.on_update([&](const UpdateReport& report, Control&) { rates.push_back(report.learning_rate); });
  trainer.fit(counting(7), quiet(3_epochs));
  ASSERT_EQ(rates.size(), 6U);
  EXPECT_NEAR(rates[0], 0.05, 1e-12);
  EXPECT_EQ(rates[1], 0.1);
  EXPECT_EQ(rates[2], 0.1);
  EXPECT_NEAR(rates[4], 0.05, 1e-12);
  EXPECT_NEAR(rates[5], 0.05 * (1 - std::sqrt(0.5)), 1e-12);
  Model other = weight_model();
  Trainer refused(other, half_square, sgd({.learning_rate = warmup(9_updates).then(0.1)}), {.batch = 4});
  EXPECT_NE(
      error_text([&] { refused.fit(counting(7), quiet(2_epochs)); }).find("warmup(9 updates): ends after the run"),
      std::string::npos);
}

TEST(Trainer, EventsOfARun) {
  const TemporaryFolder folder;
  Model model([](Var x) { return linear(x, 2); }, {3});
  Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 8});
  trainer.add_metric("accuracy", accuracy());
  FitOptions options = quiet(2_epochs);
  options.evaluate_every = 0.5_epochs;
  options.log_every = 4_updates;
  options.run_folder = folder.path();
  trainer.fit(signs(32), signs(10), options);
  std::vector<std::string> types;
  for (const nlohmann::json& event : read_events(folder.path() + "/events.jsonl")) types.push_back(event["type"]);
  EXPECT_EQ(types, (std::vector<std::string>{"start", "evaluation", "train", "evaluation", "evaluation", "train",
                                             "evaluation", "finish"}));
}

TEST(Trainer, DivergenceIsAReasonAndLogged) {
  const TemporaryFolder folder;
  InMemoryDataset data;
  data.add("input", Tensor(std::vector<float>{1, std::numeric_limits<float>::quiet_NaN()}, {2, 1}));
  data.add("target", Tensor(std::vector<float>{1, 1}, {2, 1}));
  Model model = weight_model();
  Trainer trainer(model, half_square, sgd({.learning_rate = 0.1}), {.batch = 2});
  FitOptions options = quiet(2_epochs);
  options.run_folder = folder.path();
  const FitResult result = trainer.fit(data, options);
  EXPECT_EQ(result.reason, StopReason::diverged);
  EXPECT_EQ(result.exit_code(), 1);
  EXPECT_NE(result.message.find("fc1.weight"), std::string::npos) << result.message;
  EXPECT_EQ(weight(model), 0);
  const std::vector<nlohmann::json> events = read_events(folder.path() + "/events.jsonl");
  EXPECT_EQ(events.back()["reason"], "diverged");
  bool nonfinite = false;
  for (const nlohmann::json& event : events) nonfinite = nonfinite || event.contains("nonfinite");
  EXPECT_TRUE(nonfinite);
}

TEST(Trainer, AMetricMayBeAddedAfterTheSummary) {
  Model model([](Var x) { return linear(x, 2); }, {3});
  Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 8});
  const std::string before = trainer.summary();
  trainer.add_metric("accuracy", accuracy());
  EXPECT_NE(error_text([&] { trainer.add_metric("accuracy", accuracy()); }).find("needs a name of its own"),
            std::string::npos);
  EXPECT_NE(error_text([&] { trainer.add_metric("mse", mse()); }).find("mse (trainer_test.cpp:"),
            std::string::npos);  // does not fit
  EXPECT_NE(trainer.summary().find("plan: "), std::string::npos);
  EXPECT_EQ(trainer.fit(signs(32), signs(10), quiet(1_epochs)).evaluation.metrics.size(), 1U);
  EXPECT_NE(error_text([&] { trainer.add_metric("late", accuracy()); }).find("before the first fit() or evaluate()"),
            std::string::npos);
}

TEST(Trainer, ModelMayMoveBeforeTheFirstFit) {
  Model model = weight_model();
  Trainer trainer(model, half_square, sgd({.learning_rate = 0.1}), {.batch = 8});
  Model moved = std::move(model);
  trainer.fit(counting(7), quiet(1_epochs));
  EXPECT_NEAR(weight(moved), 0.4, 1e-6);
}

TEST(Trainer, SummaryCountsWhatDecays) {
  Model model([](Var x) { return linear(relu(linear(x, 16)), 2); }, {3});
  const Trainer trainer(model, cross_entropy(),
                        adamw({.groups = {{.learning_rate_scale = 10, .match = "fc2.*"}}, .weight_decay = 0.05}),
                        {.accumulate = 4, .batch = 64});
  const std::string text = trainer.summary();
  EXPECT_NE(text.find("98 parameters in 4 tensors"), std::string::npos) << text;
  EXPECT_NE(text.find("global batch 256 = 64 x accumulate 4 x ranks 1"), std::string::npos) << text;
  EXPECT_NE(text.find("weight decay 0.05 on 2 parameters, 0 on 2; rate x 10 on 2"), std::string::npos) << text;
}

}  // namespace
}  // namespace brisk
