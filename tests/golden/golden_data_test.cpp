// The C++ counter gives the bits of counter.py (literals printed by it), and the files hold what README.md says.
#include "golden/golden_data.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace brisk::golden {
namespace {

const std::string kFolder = BRISK_SOURCE_DIR "/tests/golden/";

TEST(GoldenCounter, GivesTheBitsOfThePythonScript) {
  EXPECT_EQ(hash(1, 2, 0), 0xe68e6fc01df08360u);
  EXPECT_EQ(hash(1, 2, 1), 0xb815246f417cade2u);
  EXPECT_EQ(hash(1, 2, 3), 0xd0734750fde362b3u);
  EXPECT_EQ(uniform(7, 1000, 4, 0.2),
            (std::vector<float>{0x1.0ab634p-5f, 0x1.1a41c0p-5f, -0x1.114f80p-5f, 0x1.d0e51ap-5f}));
  EXPECT_EQ(labels(3, 2001, 8, 10), (std::vector<int64_t>{5, 8, 5, 2, 7, 2, 8, 1}));
  double sum = 0;
  float low = 0, high = 0;
  for (const float value : uniform(9, 5, 100000, 1.0 / std::sqrt(3.0))) {
    sum += value;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  EXPECT_EQ(low, -0x1.2796dap-1f);
  EXPECT_EQ(high, 0x1.27987cp-1f);
  EXPECT_NEAR(sum / 100000, -0x1.5e30fb8c0b7fep-11, 1e-15);
}

TEST(GoldenFiles, TrajectoriesAreWhole) {
  const Trajectories all = read_trajectories(kFolder + "trajectories.safetensors");
  ASSERT_EQ(all.runs.size(), 2u);
  for (const auto& [network, by_optimizer] : all.runs) {
    ASSERT_EQ(by_optimizer.size(), 2u) << network;
    for (const auto& [optimizer, runs] : by_optimizer) {
      ASSERT_EQ(runs.size(), 3u) << network << " " << optimizer;
      for (const Trajectory& run : runs) {
        const std::vector<double> start = all.sample(all.initial(network, run.seed));
        EXPECT_EQ(run.losses.size(), static_cast<size_t>(all.updates));
        EXPECT_EQ(run.first.size(), start.size());
        EXPECT_EQ(run.last.size(), start.size());
        EXPECT_EQ(run.statistics.size(), all.initial_statistics(network).size());
        EXPECT_GT(run.pytorch.after_last, 1e-7);
        EXPECT_LT(run.pytorch.after_last, 1e-4);
        EXPECT_NEAR(distance(start, run.last, start), 1.0, 1e-12);  // no update at all is at distance one
      }
    }
  }
}

TEST(GoldenFiles, OpsAreWhole) {
  const Ops ops = read_ops(kFolder + "ops.json");
  std::set<std::string> names;
  for (const OpCase& row : ops.cases) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " twice";
    EXPECT_EQ(row.outputs.at("y").shape, row.cotangent.shape) << row.name;
    for (const auto& [input, gradient] : row.gradients) {
      EXPECT_EQ(row.inputs.at(input).values.size(), gradient.values.size()) << row.name << " " << input;
    }
  }
  EXPECT_GE(ops.cases.size(), 50u);
  EXPECT_GE(ops.optimizers.size(), 13u);
  for (const OptimizerTrace& trace : ops.optimizers) {
    EXPECT_EQ(trace.rates.size(), 6u) << trace.name;
    EXPECT_EQ(trace.gradients.size(), trace.parameters.size()) << trace.name;
  }
}

TEST(GoldenFiles, AbsentAndForeignFilesAreNamed) {
  EXPECT_THROW(read_trajectories("/nonexistent.safetensors"), std::runtime_error);
  EXPECT_THROW(read_trajectories(kFolder + "README.md"), std::runtime_error);
  EXPECT_THROW(read_ops(kFolder + "README.md"), std::runtime_error);
}

}  // namespace
}  // namespace brisk::golden
