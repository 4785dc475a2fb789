// Micro-batches, windows, durations and triggers against plain simulation.
#include "train/epoch_plan.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace brisk::train {
namespace {

TEST(EpochShape, TailsAndDroppedRows) {
  const EpochShape shape{7, 4, 3, false};
  EXPECT_EQ(shape.micro_batches(), 2);
  EXPECT_EQ(shape.rows(0), 4);
  EXPECT_EQ(shape.rows(1), 3);
  EXPECT_EQ(shape.rows(), 7);
  EXPECT_EQ(shape.updates(), 1);
  const EpochShape dropping{7, 4, 3, true};
  EXPECT_EQ(dropping.micro_batches(), 1);
  EXPECT_EQ(dropping.rows(), 4);
  const EpochShape short_one{10, 64, 1, false};
  EXPECT_EQ(short_one.micro_batches(), 1);
  EXPECT_EQ(short_one.rows(0), 10);
  EXPECT_EQ((EpochShape{10, 64, 1, true}).micro_batches(), 0);
}

/// Runs the loop's rules one micro-batch at a time.
struct Simulation {
  EpochShape shape;
  Position position;
  int64_t samples = 0, updates = 0, window = 0, micro_batches = 0;

  void close() {
    if (window > 0) ++updates;
    window = 0;
  }
  void micro_batch() {
    samples += shape.rows(position.micro);
    ++micro_batches;
    if (++window == shape.accumulate) close();
    if (++position.micro == shape.micro_batches()) {
      close();
      position = {position.epoch + 1, 0};
    }
  }
};

TEST(Horizon, AgreesWithSimulation) {
  for (const int64_t samples : {1, 7, 16, 33}) {
    for (const int64_t batch : {1, 4, 40}) {
      for (const int64_t accumulate : {1, 2, 3}) {
        for (const int64_t done : {0, 1, 5}) {
          const EpochShape shape{samples, batch, accumulate, false};
          Simulation before{shape, {}};
          for (int64_t i = 0; i < done; ++i) before.micro_batch();
          before.close();
          for (const int64_t wanted : {1, 2, 5, 9, 40}) {
            for (const auto unit : {Duration::Unit::epochs, Duration::Unit::samples, Duration::Unit::updates}) {
              Simulation run = before;
              const auto reached = [&] {
                if (unit == Duration::Unit::epochs) return run.position.epoch >= wanted;
                // An open window counts as an update when the run ends here.
                if (unit == Duration::Unit::updates) return run.updates >= wanted;
                return run.samples >= wanted;
              };
              while (!reached()) run.micro_batch();
              run.close();
              const Start start{before.position, before.samples, before.updates};
              const Horizon found = horizon(Duration(static_cast<double>(wanted), unit), shape, start);
              const std::string label =
                  testing::PrintToString(std::vector<int64_t>{samples, batch, accumulate, done, wanted}) +
                  Duration(1, unit).text();
              EXPECT_EQ(found.end, run.position) << label;
              EXPECT_EQ(found.total_updates, run.updates) << label;
              EXPECT_EQ(found.micro_batches, run.micro_batches - before.micro_batches) << label;
            }
          }
        }
      }
    }
  }
}

TEST(Horizon, EndlessDataSetsAndDurations) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const EpochShape& shape :
       {EpochShape{kMost, 1, 1, false}, EpochShape{kMost, 4, 3, false}, EpochShape{kMost, int64_t{1} << 31, 2, true}}) {
    EXPECT_GT(shape.micro_batches(), 0);
    EXPECT_GE(shape.rows(), kMost - shape.batch);
    EXPECT_EQ(shape.rows(0), shape.batch);
    EXPECT_EQ(horizon(Duration(5, Duration::Unit::updates), shape, {}).micro_batches, 5 * shape.accumulate);
  }
  for (const Duration::Unit unit : {Duration::Unit::epochs, Duration::Unit::samples, Duration::Unit::updates}) {
    const EpochShape shape{int64_t{1} << 40, 4, 100000, false};
    const Horizon far = horizon(Duration(8.9e15, unit), shape, {{0, 1}, 4, 0});
    EXPECT_GT(far.micro_batches, int64_t{1} << 50);
    EXPECT_GT(far.total_updates, int64_t{1} << 34);
  }
}

TEST(Horizon, FractionsOfAnEpochEndAtAWholeMicroBatch) {
  const EpochShape shape{100, 10, 1, false};
  EXPECT_EQ(horizon(1.5_epochs, shape, {}).end, (Position{1, 5}));
  EXPECT_EQ(horizon(0.01_epochs, shape, {}).end, (Position{0, 1}));
  EXPECT_EQ(horizon(0.3_epochs, shape, {}).end, (Position{0, 3}));
  EXPECT_EQ(horizon(0.999_epochs, shape, {}).end, (Position{1, 0}));
  EXPECT_EQ(horizon(0.3_epochs, shape, {}).total_updates, 3);
}

TEST(Trigger, DueAtEachMultipleOnce) {
  Trigger trigger(10_updates, {});
  std::vector<int64_t> due;
  for (int64_t u = 1; u <= 35; ++u) {
    if (trigger.due({.updates = u})) due.push_back(u);
  }
  EXPECT_EQ(due, (std::vector<int64_t>{10, 20, 30}));
  Trigger resumed(10_updates, {.updates = 17});
  EXPECT_FALSE(resumed.due({.updates = 19}));
  EXPECT_TRUE(resumed.due({.updates = 23}));
  EXPECT_FALSE(resumed.due({.updates = 29}));
  EXPECT_TRUE(resumed.due({.updates = 30}));
  Trigger tenths(0.1_epochs, {});
  int count = 0;
  for (int i = 1; i <= 1000; ++i) count += tenths.due({.epochs = i / 100.0});
  EXPECT_EQ(count, 100);
  Trigger never({}, {});
  EXPECT_FALSE(never.due({.epochs = 1e9, .updates = 1000000000}));
}

}  // namespace
}  // namespace brisk::train
