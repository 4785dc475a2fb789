// Random numbers are the counter streams of core/philox.h, whatever the split of the samples.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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

std::vector<double> numbers(const std::string& op, int64_t samples, std::vector<int64_t> shape, oracle::Run run,
                            graph::Attributes attributes) {
  attributes.set("shape", std::move(shape));
  attributes.set("stream", int64_t{41});
  return run_native({op, std::move(attributes), {}, samples, run}).outputs[0].data;
}
const graph::Attributes kNormal = {{"deviation", 1.0}, {"mean", 0.0}}, kUniform = {{"high", 1.0}, {"low", 0.0}};

TEST(RandomNumbers, DoNotDependOnTheSplitNorTheInstructionSet) {
  for (const auto& [op, attributes] : {std::pair("random_normal", kNormal), std::pair("random_uniform", kUniform)}) {
    const std::vector<double> whole = numbers(op, 37, {1031}, {false, 7, 100}, attributes);
    std::vector<double> parts = numbers(op, 5, {1031}, {false, 7, 100}, attributes);
    const std::vector<double> rest = numbers(op, 32, {1031}, {false, 7, 105}, attributes);
    parts.insert(parts.end(), rest.begin(), rest.end());
    EXPECT_EQ(whole, parts);
    NodeCase node_case{op, attributes, {}, 37, {false, 7, 100}};
    node_case.attributes.set("shape", std::vector<int64_t>{1031});
    node_case.attributes.set("stream", int64_t{41});
    for (const cpu::Isa isa : instruction_sets()) {
      EXPECT_EQ(run_node(node_case, *implementations(op)[0], isa).outputs[0].data, whole) << cpu::name(isa);
    }
  }
}

/// The largest distance between the shares of numbers up to x and the distribution (Kolmogorov's statistic).
double distance(std::vector<double> x, double (*distribution)(double)) {
  std::sort(x.begin(), x.end());
  double largest = 0;
  const auto count = static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double wanted = distribution(x[i]), below = static_cast<double>(i) / count;
    largest = std::max({largest, wanted - below, below + 1 / count - wanted});
  }
  return largest;
}

double correlation(const std::vector<double>& x, size_t apart) {
  double sum = 0;
  for (size_t i = 0; i + apart < x.size(); ++i) sum += x[i] * x[i + apart];
  return sum / static_cast<double>(x.size() - apart);
}

TEST(RandomNumbers, AreNormal) {
  const std::vector<double> x = numbers("random_normal", 1000, {1000}, {false, 3, 0}, kNormal);
  double moments[5] = {};
  double largest = 0;
  for (const double value : x) {
    for (int k = 1; k < 5; ++k) moments[k] += std::pow(value, k) / static_cast<double>(x.size());
    largest = std::max(largest, std::fabs(value));
  }
  // Five standard errors each; Kolmogorov's bound at a level of about 1e-6.
  EXPECT_NEAR(moments[1], 0, 0.005);
  EXPECT_NEAR(moments[2], 1, 0.0071);
  EXPECT_NEAR(moments[3], 0, 0.0194);
  EXPECT_NEAR(moments[4], 3, 0.049);
  EXPECT_GT(largest, 4.4);
  EXPECT_LT(largest, 6.8);
  EXPECT_LT(distance(x, [](double v) { return 0.5 * std::erfc(-v / std::sqrt(2.0)); }), 2.7e-3);
  for (const size_t apart : {1, 2, 4, 1000, 16000}) EXPECT_NEAR(correlation(x, apart), 0, 0.005) << apart;
}

TEST(RandomNumbers, AreUniform) {
  const std::vector<double> x = numbers("random_uniform", 1000, {1000}, {false, 3, 0}, kUniform);
  EXPECT_GE(*std::min_element(x.begin(), x.end()), 0);
  EXPECT_LT(*std::max_element(x.begin(), x.end()), 1);
  EXPECT_LT(distance(x, [](double v) { return v; }), 2.7e-3);
  EXPECT_NE(x, numbers("random_uniform", 1000, {1000}, {false, 4, 0}, kUniform));
}

}  // namespace
}  // namespace brisk::test
