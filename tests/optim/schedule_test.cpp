// Rates: values of closed forms, lengths that are zero, open, contradictory or in the wrong unit.
#include "brisk/schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "brisk/optimizer.h"
#include "optim/schedule_body.h"
#include "support/error_text.h"

namespace brisk {
namespace {

using test::error_text;

double rate(const Schedule& schedule, int64_t update) { return schedule.at({.updates = update}); }

TEST(Schedule, LR01WarmupNeverBeginsAtZero) {
  const Schedule schedule = warmup(4_updates).then(0.1);
  const double expected[] = {0.025, 0.05, 0.075, 0.1, 0.1};
  for (int64_t u = 0; u < 5; ++u) EXPECT_NEAR(rate(schedule, u), expected[u], 1e-15) << u;
  EXPECT_GT(rate(schedule, 0), 0);
  EXPECT_EQ(rate(schedule, 3), 0.1);
  EXPECT_EQ(rate(schedule, 4), 0.1);
}

TEST(Schedule, LR02ZeroLengths) {
  std::vector<Schedule> built;
  for (const int64_t total : {0, 1}) {
    built.push_back(constant(0.1).resolve(1, 1, total));
    built.push_back(cosine(0.1).resolve(1, 1, total));
    built.push_back(cosine(0.1, {.over = 0_updates}).resolve(1, 1, total));
    built.push_back(warmup(0_updates).then(cosine(0.1)).resolve(1, 1, total));
    built.push_back(warmup(0_updates).then(cosine(0.1, {.over = 0_updates})).resolve(1, 1, total));
    built.push_back(
        warmup(Duration(static_cast<double>(total), Duration::Unit::updates)).then(cosine(0.1)).resolve(1, 1, total));
    built.push_back(step_decay(0.1, {.every = 1_updates}).resolve(1, 1, total));
    built.push_back(step_decay(0.1, {.every = 0.001_epochs}).resolve(1, 1, total));
  }
  for (const Schedule& schedule : built) {
    for (int64_t u = 0; u < 3; ++u) {
      EXPECT_TRUE(std::isfinite(rate(schedule, u))) << schedule.text() << " at " << u;
      EXPECT_GE(rate(schedule, u), 0);
    }
  }
  EXPECT_EQ(rate(cosine(0.1).resolve(1, 1, 1), 0), 0.1);
  const std::string text = error_text([] { warmup(10_updates).then(cosine(0.1)).resolve(100, 1, 5); });
  EXPECT_EQ(
      text,
      "Error [schedule] warmup(10 updates): ends after the run, which has 5 updates; make it shorter, or train longer");
  EXPECT_NE(error_text([] { warmup(10_updates).then(0.1).resolve(100, 1, 5); }).find("warmup(10 updates)"),
            std::string::npos);
  EXPECT_EQ(error_text([] { step_decay(0.1, {.every = 0_updates}); }),
            "Error [option] StepDecayOptions.every = 0 updates: must be more than 0");
}

TEST(Schedule, LR03CosineStaysAtItsFloor) {
  const Schedule schedule = cosine(0.1, {.over = 4_updates});
  const double expected[] = {0.1, 0.0853553, 0.05, 0.0146447, 0};
  for (int64_t t = 0; t < 5; ++t) EXPECT_NEAR(rate(schedule, t), expected[t], 1e-6 * expected[t] + 5e-8) << t;
  EXPECT_NEAR(rate(schedule, 1), 0.1 * (2 + std::sqrt(2.0)) / 4, 1e-16);
  for (int64_t t = 4; t <= 10; ++t) EXPECT_EQ(rate(schedule, t), 0) << t;
  EXPECT_EQ(rate(cosine(0.1, {.end = 0.003, .over = 4_updates}), 4), 0.003);
  const Schedule longest = cosine(0.1, {.over = 1000000000_updates});
  EXPECT_NEAR(rate(longest, 500000000), 0.05, 1e-8 * 0.05);
}

TEST(Schedule, WarmupThenCosineGoesOnAtTheJoint) {
  const Schedule schedule = warmup(500_updates).then(cosine(3e-4, {.end = 3e-6})).resolve(100, 64, 10000);
  EXPECT_NEAR(rate(schedule, 0), 6e-7, 1e-20);
  EXPECT_EQ(rate(schedule, 499), 3e-4);
  EXPECT_EQ(rate(schedule, 500), 3e-4);
  EXPECT_NEAR(rate(schedule, 500 + 4750), (3e-4 + 3e-6) / 2, 1e-12);
  EXPECT_EQ(rate(schedule, 10000), 3e-6);
  EXPECT_TRUE(schedule.resolved());
}

TEST(Schedule, AnyOrderGivesTheSameBits) {
  const Schedule schedule =
      warmup(7_updates).then(cosine(0.3, {.over = 41_updates})).then(step_decay(0.1, {.every = 3_updates}));
  std::vector<double> forward;
  for (int64_t u = 0; u < 100; ++u) forward.push_back(rate(schedule, u));
  for (int64_t u = 99; u >= 0; --u) EXPECT_EQ(rate(schedule, u), forward[static_cast<size_t>(u)]);
}

TEST(Schedule, StepDecayFallsAtEachStair) {
  const Schedule schedule = step_decay(1, {.every = 2_updates, .factor = 0.5});
  const double expected[] = {1, 1, 0.5, 0.5, 0.25};
  for (int64_t u = 0; u < 5; ++u) EXPECT_EQ(rate(schedule, u), expected[u]);
}

TEST(Schedule, EpochsAndSamplesBecomeUpdates) {
  const Schedule schedule = warmup(2_epochs).then(cosine(0.1, {.over = 640_samples})).resolve(5, 64, 100);
  EXPECT_EQ(schedule.text(), "warmup(10 updates).then(cosine(0.1, {.over = 10 updates}))");
  EXPECT_EQ(rate(schedule, 20), 0);
  EXPECT_EQ(step_decay(0.1, {.every = 1.5_epochs}).resolve(3, 1, 9).text(),
            "step_decay(0.1, {.every = 5 updates, .factor = 0.1})");
}

TEST(Schedule, TextIsWhatOneWrites) {
  EXPECT_EQ(warmup(500_updates).then(cosine(0.0003)).text(), "warmup(500 updates).then(cosine(0.0003))");
  EXPECT_EQ(warmup(1_epochs).then(0.1).text(), "warmup(1 epoch).then(0.1)");
  EXPECT_EQ(cosine(0.1, {.end = 0.01, .over = 10000_updates}).text(),
            "cosine(0.1, {.end = 0.01, .over = 10,000 updates})");
  EXPECT_EQ(Schedule().text(), "not set");
  EXPECT_EQ((2.5_epochs).text(), "2.5 epochs");
}

TEST(Schedule, RefusesWhatHasNoMeaning) {
  EXPECT_NE(error_text([] { constant(0.1).then(0.2); }).find("has no end"), std::string::npos);
  EXPECT_NE(error_text([] { cosine(0.1).then(0.2); }).find(".over"), std::string::npos);
  EXPECT_NE(error_text([] { warmup(2_updates).then(warmup(3_updates).then(0.1)); }).find("has none"),
            std::string::npos);
  EXPECT_NE(error_text([] { warmup(10_minutes); }).find("a rate is a function of updates"), std::string::npos);
  EXPECT_NE(error_text([] { warmup(Duration(2.5, Duration::Unit::updates)); }).find("whole"), std::string::npos);
  EXPECT_NE(error_text([] { warmup(Duration(-1, Duration::Unit::epochs)); }).find("at least 0"), std::string::npos);
  EXPECT_NE(error_text([] { warmup(Duration(NAN, Duration::Unit::epochs)); }).find("nan"), std::string::npos);
  EXPECT_NE(error_text([] { warmup({}); }).find("needs a length"), std::string::npos);
  EXPECT_NE(error_text([] { cosine(NAN); }).find("cosine.peak = nan"), std::string::npos);
  EXPECT_NE(error_text([] { cosine(0.1, {.end = -1}); }).find("CosineOptions.end = -1"), std::string::npos);
  EXPECT_NE(error_text([] { step_decay(0.1, {}); }).find("StepDecayOptions.every: missing"), std::string::npos);
  EXPECT_NE(error_text([] { step_decay(0.1, {.every = 3_updates, .factor = 1.5}); }).find("(0, 1]"), std::string::npos);
  EXPECT_NE(error_text([] { rate(constant(0.1), -1); }).find("at least 0"), std::string::npos);
  EXPECT_NE(error_text([] { rate(warmup(5_updates), 0); }).find(".then(0.1)"), std::string::npos);
}

TEST(Schedule, UnresolvedSaysWhatIsMissing) {
  EXPECT_EQ(error_text([] { optim::check_resolved("sgd.learning_rate", cosine(0.1)); }),
            "Error [schedule] sgd.learning_rate: cosine(0.1) lasts to the end of the run, and a Step has none; give "
            "cosine(0.1, {.over = 10000_updates})");
  EXPECT_NE(error_text([] { rate(warmup(2_epochs).then(0.1), 0); }).find("counts in epochs"), std::string::npos);
  EXPECT_NO_THROW(optim::check_resolved("sgd.learning_rate", cosine(0.1).resolve(10, 1, 10)));
}

}  // namespace
}  // namespace brisk
