// What an update decides on the device beside the walks: the loss scale, its counters, which update's rates hold.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "brisk/kernels/optimizer.h"
#include "simt/device_buffer.h"

namespace brisk::kernels {
namespace {

using Floats = std::vector<float>;
using Device = simt::DeviceBuffer<float>;
using Counters = std::vector<int64_t>;

struct Scaler {
  void feed(bool good, int times = 1) {
    for (int i = 0; i < times; ++i) {
      stats.upload({1.0f, good ? 0.0f : 1.0f, 1.0f});
      options.counters = counters.data(), options.scale = scale.data(), options.stats = stats.data();
      scale_update(options, nullptr);
    }
  }
  float now() const { return scale.download()[0]; }

  ScaleUpdateOptions options{.interval = 4};
  Device scale{Floats{65536.0f}}, stats{3};
  simt::DeviceBuffer<int64_t> counters{Counters{0, 0, 0, 0}};
};

TEST(LossScale, AMP01_GrowsAfterTheIntervalAndBacksOff) {
  Scaler scaler;
  scaler.feed(true, 3);
  EXPECT_EQ(scaler.now(), 65536);
  scaler.feed(true);
  EXPECT_EQ(scaler.now(), 131072);
  scaler.feed(false);
  EXPECT_EQ(scaler.now(), 65536);
  EXPECT_EQ(scaler.counters.download(), (Counters{4, 0, 1, 1}));
  scaler.feed(true, 3);
  EXPECT_EQ(scaler.now(), 65536);
  EXPECT_EQ(scaler.counters.download(), (Counters{7, 3, 0, 1}));
  scaler.feed(true);
  EXPECT_EQ(scaler.now(), 131072);
  EXPECT_EQ(scaler.counters.download(), (Counters{8, 0, 0, 1}));
}

TEST(LossScale, StaysWithinItsBounds) {
  Scaler scaler;
  scaler.feed(false, 20);
  EXPECT_EQ(scaler.now(), 1);
  EXPECT_EQ(scaler.counters.download(), (Counters{0, 0, 20, 20}));
  scaler.options.maximum = 8;
  scaler.feed(true, 40);
  EXPECT_EQ(scaler.now(), 8);
}

TEST(LossScale, CountsWithoutAScaleAndStopsForTheStatus) {
  Scaler scaler;
  simt::DeviceBuffer<Status> status({Status{}});
  scaler.stats.upload({1.0f, 0.0f, 1.0f});
  const ScaleUpdateOptions options{
      .counters = scaler.counters.data(), .stats = scaler.stats.data(), .status = status.data()};
  scale_update(options, nullptr);
  EXPECT_EQ(scaler.counters.download(), (Counters{1, 1, 0, 0}));
  status.upload({Status{Status::kLabel, 0, 0, 0}});
  scale_update(options, nullptr);
  EXPECT_EQ(scaler.counters.download(), (Counters{1, 1, 0, 0}));
}

TEST(Rates, RowOfTheDevicesOwnCounter) {
  const Device table(Floats{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}), scalars(3);
  const Floats rows = table.download();
  for (const int64_t updates : {0, 4, 5, 13}) {
    const simt::DeviceBuffer<int64_t> counters(Counters{updates, 0, 0, 0});
    select_rates(
        {.columns = 3, .counters = counters.data(), .rows = 5, .scalars = scalars.data(), .table = table.data()},
        nullptr);
    const auto first = rows.begin() + updates % 5 * 3;
    EXPECT_EQ(scalars.download(), Floats(first, first + 3)) << updates;
  }
}

}  // namespace
}  // namespace brisk::kernels
