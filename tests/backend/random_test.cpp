// Dropout's mask is the counter stream of core/philox.h, whatever the split of the samples.
#include <gtest/gtest.h>

#include "core/philox.h"
#include "support/run_node.h"

namespace brisk::test {
namespace {

std::vector<double> dropout(int64_t samples, Shape shape, double rate, int64_t stream, oracle::Run run,
                            std::vector<double> x = {}, int64_t rows = 1) {
  const graph::ValueType type{DType::f32, rows, shape};
  if (x.empty()) x.assign(static_cast<size_t>(samples * type.elements()), 1.0);
  return run_native({"dropout", {{"rate", rate}, {"stream", stream}}, {{type, x}}, samples, run}).outputs[0].data;
}

TEST(Dropout, FollowsTheStream) {
  const int64_t stream = -0x123456789ABCDEF;
  const oracle::Run run{false, 0x500000003, 41};
  const int64_t samples = 37, elements = 2 * 7;
  const std::vector<double> y = dropout(samples, Shape{7}, 0.3, stream, run, {}, 2);
  for (int64_t n = 0; n < samples; ++n) {
    for (int64_t e = 0; e < elements; ++e) {
      const PhiloxBlock words =
          philox(static_cast<uint64_t>(stream),
                 philox_counter(static_cast<uint64_t>(run.attempt), static_cast<uint32_t>(run.first_sample + n),
                                static_cast<uint32_t>(e / 4)));
      const bool keep = !bernoulli(words[static_cast<size_t>(e % 4)], 0.3);
      EXPECT_EQ(y[static_cast<size_t>(n * elements + e)], keep ? static_cast<double>(static_cast<float>(1 / 0.7)) : 0.0)
          << n << ", " << e;
    }
  }
}

TEST(Dropout, DoesNotDependOnTheSplit) {
  const int64_t elements = 4099;  // several tiles a sample, none of them whole
  const std::vector<double> whole = dropout(19, Shape{elements}, 0.5, 7, {false, 2, 100});
  std::vector<double> parts = dropout(5, Shape{elements}, 0.5, 7, {false, 2, 100});
  const std::vector<double> rest = dropout(14, Shape{elements}, 0.5, 7, {false, 2, 105});
  parts.insert(parts.end(), rest.begin(), rest.end());
  EXPECT_EQ(whole, parts);
}

TEST(Dropout, KeepsItsShare) {
  const std::vector<double> y = dropout(64, Shape{1000}, 0.25, 99, {false, 1, 0});
  double kept = 0;
  for (const double value : y) kept += value != 0;
  EXPECT_NEAR(kept / static_cast<double>(y.size()), 0.75, 0.01);
}

TEST(Dropout, RatesZeroAndOne) {
  const std::vector<double> all = dropout(9, Shape{33}, 0, 5, {});
  const std::vector<double> none = dropout(9, Shape{33}, 1, 5, {});
  EXPECT_EQ(all, std::vector<double>(9 * 33, 1.0));
  EXPECT_EQ(none, std::vector<double>(9 * 33, 0.0));
}

TEST(Dropout, AttemptsDiffer) {
  EXPECT_NE(dropout(4, Shape{64}, 0.5, 1, {false, 1, 0}), dropout(4, Shape{64}, 0.5, 1, {false, 2, 0}));
  EXPECT_NE(dropout(4, Shape{64}, 0.5, 1, {false, 1, 0}), dropout(4, Shape{64}, 0.5, 2, {false, 1, 0}));
}

}  // namespace
}  // namespace brisk::test
