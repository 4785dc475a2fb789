// Training in fp16 through the Trainer: skipped updates are told, and too many of them end the run.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/devices.h"
#include "train/train_support.h"

namespace brisk {
namespace {

class Skips : public testing::TestWithParam<Device> {};
INSTANTIATE_TEST_SUITE_P(Devices, Skips, testing::ValuesIn(test::devices()),
                         [](const auto& made) { return test::device_name(made.param); });

/// A weight that learns 1, 2, ... n through a matrix product.
Model product() {
  return {[](Var x) { return linear(x, 1, {.bias = false}); }, {1}};
}

InMemoryDataset with_overflow() {
  InMemoryDataset out;
  std::vector<float> x(8, 1), y = {1, 2, 3, 4, 5, 6, 7, 8};
  x[3] = std::numeric_limits<float>::infinity();
  out.add("input", Tensor(std::move(x), {8, 1}));
  out.add("target", Tensor(std::move(y), {8, 1}));
  out.set_name("with overflow");
  return out;
}

TEST_P(Skips, AreReportedAndLogged) {
  const TemporaryFolder folder;
  Model model = product();
  Trainer trainer(model, mse(), sgd({.learning_rate = 0.01}),
                  {.batch = 2, .device = GetParam(), .loss_scale = {.initial = 1024}, .precision = Precision::fp16});
  UpdateReport last;
  trainer.on_update([&](const UpdateReport& report, Control&) { last = report; }, {.every = 1_epochs});
  const FitResult result = trainer.fit(
      with_overflow(), {.duration = 2_epochs, .progress = false, .run_folder = folder.path(), .shuffle = false});
  EXPECT_EQ(result.reason, StopReason::finished) << result.text();
  EXPECT_EQ(result.clock.attempts, 8);
  EXPECT_EQ(result.clock.updates, 6);
  EXPECT_EQ(last.skipped, 2);
  EXPECT_EQ(last.loss_scale, 256);
  EXPECT_TRUE(std::isfinite(model.parameter("fc1.weight").data<float>()[0]));
  nlohmann::json last_line;
  for (const nlohmann::json& event : read_events(folder.path() + "/events.jsonl"))
    if (event["type"] == "train") last_line = event;
  EXPECT_EQ(last_line["skipped"], 2);
  EXPECT_EQ(last_line["loss_scale"], 256);
  EXPECT_EQ(last_line["attempts"], 8);
}

TEST_P(Skips, ForEverEndTheRun) {
  Model model = product();
  Trainer trainer(model, mse(), sgd({.learning_rate = 0.01}),
                  {.batch = 8, .device = GetParam(), .loss_scale = {.maximum_skips = 3}, .precision = Precision::fp16});
  const FitResult result = trainer.fit(with_overflow(), {.duration = 20_epochs, .progress = false});
  EXPECT_EQ(result.reason, StopReason::diverged);
  EXPECT_NE(result.message.find("fc1.weight"), std::string::npos) << result.message;
  EXPECT_EQ(result.clock.updates, 0);
}

TEST(Precision, TheSummaryNamesTheRecipe) {
  Model model = product();
  Trainer trainer(model, mse(), sgd({.learning_rate = 0.01}), {.batch = 8, .precision = Precision::automatic});
  EXPECT_NE(trainer.summary().find("precision: automatic"), std::string::npos) << trainer.summary();
}

}  // namespace
}  // namespace brisk
