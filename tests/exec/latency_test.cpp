// Quantiles from buckets: within their width of the sorted values.
#include "exec/latency.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace brisk::exec {
namespace {

TEST(Latency, QuantilesLieWithinABucketOfTheValues) {
  for (const int64_t step : {1, 7, 1000, 123'456}) {
    LatencyHistogram histogram;
    EXPECT_EQ(histogram.quantile_us(0.5), 0) << "nothing was counted";
    constexpr int64_t kCount = 1000;
    for (int64_t i = 1; i <= kCount; ++i) histogram.add((i * 389 % kCount + 1) * step);  // each of 1..1000 once
    EXPECT_EQ(histogram.count(), kCount);
    for (const double part : {0.001, 0.5, 0.99, 1.0}) {
      const double exact = part * static_cast<double>(kCount * step) / 1e3;
      EXPECT_NEAR(histogram.quantile_us(part), exact, 0.02 * exact) << part << " of " << step;
    }
  }
}

TEST(Latency, TheLongestAndTheImpossibleAreCountedToo) {
  LatencyHistogram histogram;
  histogram.add(-5);
  histogram.add(INT64_MAX);
  EXPECT_EQ(histogram.count(), 2);
  EXPECT_EQ(histogram.quantile_us(0.5), 0);
  EXPECT_GT(histogram.quantile_us(1), 1e9);
}

TEST(Latency, SeveralThreadsCountEachValueOnce) {
  LatencyHistogram histogram;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int value = 0; value < 10'000; ++value) histogram.add(value);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(histogram.count(), 40'000);
}

}  // namespace
}  // namespace brisk::exec
