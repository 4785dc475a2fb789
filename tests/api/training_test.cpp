// Stories of training: a network on digits, early stop and signals, tabular data, callbacks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <csignal>
#include <limits>

#include "api/story_support.h"

namespace {

using namespace brisk;
using story::error_text;
using story::lenet;
using testing::MatchesRegex;

TEST(TrainingStory, LeNet) {
  const InMemoryDataset train = data::drawn_digits(400), test = data::drawn_digits(100, 1);
  Model model(lenet, {1, 28, 28});
  Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.01, .momentum = 0.9}), {.batch = 4});
  trainer.add_metric("accuracy", accuracy());
  testing::internal::CaptureStdout();
  const FitResult result = trainer.fit(train, test, {.duration = 2_epochs});
  const std::string printed = testing::internal::GetCapturedStdout();
  const char* const form =
      "finished: 2 epochs, 200 updates in [0-9.]+ s; validation loss [0-9.]+, accuracy [0-9.]+; [0-9.]+ MB, cpu "
      "avx[0-9]+, f32";
  EXPECT_THAT(result.text(), MatchesRegex(form));
  EXPECT_TRUE(story::contains(printed, result.text())) << printed;
  EXPECT_GT(result.evaluation.metric("accuracy"), 0.3);
  EXPECT_EQ(model.parameter("conv1.weight").shape(), (Shape{20, 1, 5, 5}));
  EXPECT_EQ(model.parameter("fc2.bias").shape(), (Shape{10}));
}

TEST(TrainingStory, EarlyStopAndWhyItEnded) {
  const InMemoryDataset train = data::drawn_digits(200), test = data::drawn_digits(50, 1);
  Model model(models::mlp({64, 10}), {1, 28, 28});
  Trainer trainer(model, cross_entropy(), sgd({.learning_rate = cosine(0.1), .momentum = 0.9}), {.batch = 20});
  trainer.add_metric("accuracy", accuracy());
  const FitResult r = trainer.fit(train, test,
                                  {.duration = 90_epochs,  // the horizon of the schedule
                                   .early_stop = {.monitor = highest("accuracy"), .patience = 5, .restore_best = true},
                                   .progress = false,
                                   .stop_on_signals = true,     // SIGTERM, SIGINT, SIGUSR1; old handlers come back
                                   .time_limit = 55_minutes});  // a budget: does not bend the schedule
  EXPECT_EQ(r.reason, StopReason::early_stop);
  EXPECT_THAT(r.text(), MatchesRegex("early_stop: .* updates in .*accuracy [0-9.]+ not beaten for 5 evaluations"));
  EXPECT_EQ(r.exit_code(), 0);
  EXPECT_LT(r.clock.epochs, 90);
  EXPECT_NEAR(r.best.clock.epochs, r.clock.epochs - 5, 1e-9);
  EXPECT_EQ(trainer.evaluate(test).metric("accuracy"), r.best.metric("accuracy"));  // restored
}

TEST(TrainingStory, ASignalEndsTheRun) {
  const InMemoryDataset train = data::drawn_digits(40);
  Model model(models::mlp({10}), {1, 28, 28});
  Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 4});
  trainer.on_update([](const UpdateReport& r, Control&) {
    if (r.clock.updates == 7) std::raise(SIGTERM);
  });
  const auto before = std::signal(SIGTERM, SIG_IGN);
  const FitResult r = trainer.fit(train, {.duration = 90_epochs, .progress = false, .stop_on_signals = true});
  EXPECT_EQ(std::signal(SIGTERM, before), SIG_IGN);  // the old handler is back
  EXPECT_EQ(r.reason, StopReason::signal);
  EXPECT_EQ(r.clock.updates, 7);
  EXPECT_EQ(r.exit_code(), 143);
}

TEST(TrainingStory, TabularData) {
  const int64_t n = 900;
  std::vector<float> x = story::numbers(n * 13), y(static_cast<size_t>(n));
  for (size_t i = 0; i < y.size(); ++i) y[i] = 1 + x[13 * i] - x[13 * i + 3];
  InMemoryDataset all;
  all.add("input", Tensor(std::move(x), {n, 13}));  // the vector is adopted; view(x, {n, 13}) would borrow
  all.add("target", Tensor(std::move(y), {n, 1}));
  auto [train, test] = all.split({.first = 0.8, .seed = 7});
  const Standardizer scale = Standardizer::fit(train, "input");
  Model model([&](Var v) { return linear(silu(linear(silu(linear(scale(v), 64)), 64)), 1); },
              {13});  // scale is saved with the weights
  Trainer trainer(model, mse(), adamw({.learning_rate = 1e-3}), {.batch = 256});
  trainer.add_metric("mae", [](Var out, Var target) { return sample_mean(abs(out - target)); });  // in the plan
  trainer.add_host_metric("largest", [](ConstView out, ConstView target) {                        // all rows, once
    double most = 0;
    for (int64_t i = 0; i < out.count(); ++i)
      most = std::max(most, std::abs(double(out.data<float>()[i]) - target.data<float>()[i]));
    return most;
  });
  const FitResult r = trainer.fit(
      train, test,
      {.duration = 200_epochs, .early_stop = {.monitor = lowest("mae"), .patience = 20}, .progress = false});
  EXPECT_LT(r.best.metric("mae"), 0.05);
  EXPECT_LT(r.best.metric("mae"), r.best.metric("largest"));
}

TEST(TrainingStory, ATargetOfAnotherShapeIsNeverBroadcast) {
  InMemoryDataset flat;
  flat.add("input", Tensor(Shape{8, 13}));
  flat.add("target", Tensor(Shape{8}));
  Model model([](Var v) { return linear(v, 1); }, {13});
  EXPECT_TRUE(story::contains(
      error_text([&] {
        Step(model, [](Var out, Var target) { return mse(out, target); }, adamw(), {.targets = {{"target", {}}}});
      }),
      "output [N, 1], target [N]; reshape one"));
  Trainer trainer(model, mse(), adamw());
  const std::string text = error_text([&] { trainer.fit(flat, {.duration = 1_epochs, .progress = false}); });
  EXPECT_TRUE(story::contains(text, "Error [data]") && story::contains(text, "target")) << text;
}

TEST(TrainingStory, NanInTheDataIsFound) {
  std::vector<float> x = story::numbers(1000 * 13);
  x[812 * 13 + 4] = std::numeric_limits<float>::quiet_NaN();
  InMemoryDataset data;
  data.add("input", Tensor(std::move(x), {1000, 13}));
  EXPECT_EQ(error_text([&] { data.check_finite(); }), "Error [data] \"input\", sample 812, column 4 is NaN");
}

TEST(TrainingStory, CallbacksKnowTheBest) {
  const InMemoryDataset train = data::drawn_digits(100), test = data::drawn_digits(50, 1);
  Model model(models::mlp({32, 10}), {1, 28, 28});
  Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.05, .momentum = 0.9}), {.batch = 10});
  std::vector<std::string> my_log;
  set_logger([&](LogLevel, std::string_view line) { my_log.emplace_back(line); });
  double best = std::numeric_limits<double>::infinity();
  int64_t updates = 0;
  trainer.on_update(
      [&](const UpdateReport& r, Control& control) {
        EXPECT_EQ(r.clock.updates, updates += 5);
        if (updates == 40) control.stop("battery");  // fit() returns reason requested, message "battery"
      },
      {.every = 5_updates});
  trainer.on_evaluation([&](const EvaluationReport& r, Control&) {
    EXPECT_EQ(r.is_best, r.metric("loss") < best);
    best = std::min(best, r.loss);
  });
  const FitResult r = trainer.fit(train, test, {.duration = 10_epochs});
  set_logger({});
  EXPECT_EQ(r.reason, StopReason::requested);
  EXPECT_EQ(r.message, "battery");
  EXPECT_EQ(r.clock.updates, 40);
  EXPECT_EQ(r.best.loss, best);
  EXPECT_FALSE(my_log.empty());
  // Throwing leaves fit() with that exception, the model usable.
  struct Stop {};
  trainer.on_update([](const UpdateReport&, Control&) { throw Stop(); });
  EXPECT_THROW(trainer.fit(train, {.duration = 20_epochs, .progress = false}), Stop);
  EXPECT_TRUE(std::isfinite(trainer.evaluate(test).loss));
}

}  // namespace
