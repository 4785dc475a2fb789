// The texts of the bar and of the plain lines.
#include "train/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "brisk/trainer.h"

namespace brisk::train {
namespace {

ProgressState half_way() {
  ProgressState state;
  state.clock = {.epochs = 1.25, .samples = 75000, .seconds = 30, .updates = 1500};
  state.epochs_wanted = 5;
  state.fraction = 0.25;
  state.samples_per_s = 12340.4;
  state.seconds_left = 90;
  state.values = "loss 0.4123";
  return state;
}

TEST(Progress, BarFitsTheTerminal) {
  const std::string bar = bar_text(half_way(), 100);
  EXPECT_EQ(bar.find("epoch 2 of 5 [#"), 0U);
  EXPECT_NE(bar.find("25 %, 1:30 left, 12,340 samples/s, loss 0.4123"), std::string::npos);
  for (int columns = 1; columns < 120; ++columns) {
    EXPECT_LE(bar_text(half_way(), columns).size(), static_cast<size_t>(std::max(columns - 1, 1)));
  }
  ProgressState done = half_way();
  done.clock.epochs = 5;
  done.fraction = 1;
  EXPECT_EQ(bar_text(done, 100).find("epoch 5 of 5"), 0U);
}

TEST(Progress, PlainLine) {
  EXPECT_EQ(report_text(half_way(), {.learning_rate = 0.001}),
            "epoch 1.25, 1,500 updates: loss 0.4123; rate 0.001, 12,340 samples/s, 1:30 left");
}

TEST(Progress, LossScaleAndSkipsAreTold) {
  EXPECT_EQ(report_text(half_way(), {.learning_rate = 0.001, .loss_scale = 32768, .skipped = 1}),
            "epoch 1.25, 1,500 updates: loss 0.4123; rate 0.001, 12,340 samples/s, loss scale 32768, 1 skipped, 1:30 "
            "left");
}

TEST(Progress, TimesAreReadable) {
  EXPECT_EQ(time_text(0), "0:00");
  EXPECT_EQ(time_text(42.4), "0:42");
  EXPECT_EQ(time_text(3723), "1:02:03");
  EXPECT_EQ(time_text(-1), "?");
  EXPECT_EQ(time_text(1e300), "?");
}

TEST(Progress, LinesWhereThereIsNoTerminal) {
  std::FILE* const file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  {
    Progress progress(true, false, file);
    EXPECT_EQ(progress.mode(), Progress::Mode::lines);
    EXPECT_FALSE(progress.wants_tick(1e9));
    progress.tick(half_way());
    progress.report(half_way(), {.learning_rate = 0.001});
    progress.line("finished");
    Progress silent(false, false, file);
    silent.report(half_way(), {.learning_rate = 0.001});
    silent.line("nothing");
  }
  std::rewind(file);
  char text[512] = {};
  const size_t size = std::fread(text, 1, sizeof(text) - 1, file);
  std::fclose(file);
  EXPECT_EQ(std::string(text, size), report_text(half_way(), {.learning_rate = 0.001}) + "\nfinished\n");
}

TEST(FitResult, TextSaysHowItEnded) {
  FitResult result;
  result.clock = {.epochs = 2, .samples = 120000, .seconds = 9.81, .updates = 30000};
  result.evaluation.loss = 0.41;
  result.evaluation.metrics = {{"accuracy", 853, 1000}};
  result.evaluation.samples = 1000;
  result.machine = "28 MB, cpu avx512, f32";
  EXPECT_EQ(
      result.text(),
      "finished: 2 epochs, 30,000 updates in 9.8 s; validation loss 0.41, accuracy 0.853; 28 MB, cpu avx512, f32");
  EXPECT_EQ(result.exit_code(), 0);
  EXPECT_EQ(result.evaluation.metric("accuracy"), 0.853);
  EXPECT_EQ(result.evaluation.metric("loss"), 0.41);
  try {
    result.evaluation.metric("acuracy");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "Error [option] metric \"acuracy\": there is none of this name; there are loss, accuracy (did you "
                 "mean accuracy?)");
  }
  result.reason = StopReason::diverged;
  EXPECT_EQ(result.exit_code(), 1);
}

}  // namespace
}  // namespace brisk::train
