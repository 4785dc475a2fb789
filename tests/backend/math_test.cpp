// Functions of the kernels against double, over all magnitudes, and their bits, which no compiler may
// change.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>

#include "support/run_node.h"

namespace brisk::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kSmallest = std::numeric_limits<float>::min();

float from_bits(uint32_t bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Every `step`th float by its bits: all exponents, both signs.
std::vector<double> floats_apart(uint32_t step) {
  std::vector<double> values;
  for (uint64_t bits = 0; bits < (uint64_t{1} << 32); bits += step) {
    const float value = from_bits(static_cast<uint32_t>(bits));
    if (!std::isnan(value)) values.push_back(static_cast<double>(value));
  }
  return values;
}

std::vector<double> values_of(const std::string& op, const std::vector<double>& x, graph::Attributes attributes = {}) {
  const graph::ValueType type{DType::f32, 0, Shape{static_cast<int64_t>(x.size())}};
  return run_native({op, std::move(attributes), {{type, x}}}).outputs[0].data;
}

/// Distance in units of the last place that a float near `truth` has; denormals count as zero.
double distance(double got, double truth) {
  if (std::isnan(truth) || std::isnan(got)) return std::isnan(truth) && std::isnan(got) ? 0 : kInfinity;
  const auto limit = static_cast<double>(std::numeric_limits<float>::max());
  if (std::fabs(truth) > limit * (1 + 0x1p-25))
    return got == std::copysign(static_cast<double>(kInfinity), truth) ? 0 : kInfinity;
  if (std::fabs(truth) < static_cast<double>(kSmallest)) {
    return std::fabs(got) <= static_cast<double>(kSmallest) ? 0 : kInfinity;
  }
  return std::fabs(got - truth) / std::ldexp(1.0, std::ilogb(truth) - 23);
}

struct Function {
  std::string op;
  double (*truth)(double);
  double most;  ///< units in the last place
  graph::Attributes attributes = {};
};

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double logarithm(double x) { return std::fabs(x) < static_cast<double>(kSmallest) ? -HUGE_VAL : std::log(x); }

double flushed(double x) { return std::fabs(x) < static_cast<double>(kSmallest) ? 0 : x; }
double root(double x) { return std::sqrt(flushed(x)); }
double power(double x) { return std::pow(flushed(x), -1.7); }
double elu(double x) { return x > 0 ? x : 1.25 * std::expm1(flushed(x)); }
double silu(double x) { return std::isinf(x) && x < 0 ? 0 : x / (1 + std::exp(-x)); }
double softplus(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }
double gelu(double x) { return std::isinf(x) && x < 0 ? 0 : 0.5 * x * std::erfc(-x * std::sqrt(0.5)); }
double gelu_tanh(double x) {
  return x < -20 ? 0 : x / (1 + std::exp(-std::sqrt(2 / std::atan(1.0)) * (x + 0.044715 * x * x * x)));
}

const Function kFunctions[] = {{"exp", std::exp, 2},
                               {"log", logarithm, 2},
                               {"tanh", std::tanh, 3},
                               {"sigmoid", logistic, 2},
                               {"sqrt", root, 0.51},
                               {"pow", power, 0.51, {{"exponent", -1.7}}},
                               {"elu", elu, 2, {{"alpha", 1.25}}},
                               {"softplus", softplus, 2},
                               {"silu", silu, 4},
                               {"gelu", gelu, 5},
                               {"gelu_tanh", gelu_tanh, 5}};

class Math : public testing::TestWithParam<Function> {};

void expect_close(const Function& function, const std::vector<double>& x) {
  const std::vector<double> y = values_of(function.op, x, function.attributes);
  double worst = 0, at = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = distance(y[i], function.truth(x[i]));
    if (!(d <= worst)) {
      worst = d;
      at = x[i];
    }
  }
  EXPECT_LE(worst, function.most) << function.op << "(" << at << ")";
}

TEST_P(Math, IsCloseOverAllFloats) { expect_close(GetParam(), floats_apart(4099)); }

TEST_P(Math, IsCloseWhereNetworksAre) {
  std::vector<double> x;
  for (int i = -400000; i <= 400000; ++i) x.push_back(static_cast<double>(static_cast<float>(i * 2.5e-4)));
  for (int i = -100000; i <= 100000; ++i) x.push_back(static_cast<double>(static_cast<float>(1 + i * 1e-6)));
  expect_close(GetParam(), x);
}

INSTANTIATE_TEST_SUITE_P(All, Math, testing::ValuesIn(kFunctions), [](const auto& made) { return made.param.op; });

TEST(MathEdges, InfinitiesAndNan) {
  const std::vector<double> x = {HUGE_VAL, -HUGE_VAL, NAN, 0.0, -0.0, -1.0};
  const auto expect = [&](const std::string& op, const std::vector<double>& wanted) {
    const std::vector<double> y = values_of(op, x);
    for (size_t i = 0; i < x.size(); ++i) {
      EXPECT_TRUE(y[i] == wanted[i] || (std::isnan(y[i]) && std::isnan(wanted[i])))
          << op << "(" << x[i] << ") = " << y[i];
    }
  };
  const double e = values_of("exp", {-1.0})[0], s = values_of("sigmoid", {-1.0})[0], t = values_of("tanh", {-1.0})[0];
  expect("exp", {HUGE_VAL, 0, NAN, 1, 1, e});
  expect("log", {HUGE_VAL, NAN, NAN, -HUGE_VAL, -HUGE_VAL, NAN});
  expect("tanh", {1, -1, NAN, 0, 0, t});
  expect("sigmoid", {1, 0, NAN, 0.5, 0.5, s});
  EXPECT_TRUE(std::signbit(values_of("tanh", {-0.0})[0]));
}

TEST(MathEdges, Denormals) {
  EXPECT_EQ(values_of("exp", {1e-40})[0], 1);
  EXPECT_EQ(values_of("exp", {-88.0})[0], 0) << "the result would be denormal";
  EXPECT_EQ(values_of("log", {1e-40})[0], -HUGE_VAL);
  EXPECT_EQ(values_of("log", {static_cast<double>(kSmallest)})[0], static_cast<double>(std::log(kSmallest)));
  EXPECT_EQ(values_of("tanh", {1e-40})[0], 0);
}

/// FNV-1a of the results' bits: the same from every compiler and instruction set.
uint64_t fingerprint(const Function& function) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const double value : values_of(function.op, floats_apart(65537), function.attributes)) {
    const auto narrow = static_cast<float>(value);
    uint32_t bits = 0;
    std::memcpy(&bits, &narrow, sizeof bits);
    if (std::isnan(narrow)) bits = 0x7FC00000;
    for (int i = 0; i < 4; ++i) hash = (hash ^ (bits >> (8 * i) & 0xFF)) * 0x100000001B3;
  }
  return hash;
}

TEST(MathEdges, BitsAreFixed) {
  const std::map<std::string, uint64_t> bits = {
      {"exp", 16545225609796419414u},     {"log", 18338008745662747737u},      {"tanh", 12945318817473211573u},
      {"sigmoid", 17711135648269808011u}, {"sqrt", 3750016328315505612u},      {"pow", 9431530362394672641u},
      {"elu", 13418492826771726645u},     {"softplus", 15126115490819515128u}, {"silu", 15033436982390232024u},
      {"gelu", 9505290774714522386u},     {"gelu_tanh", 12272770481968401347u}};
  for (const Function& function : kFunctions) EXPECT_EQ(fingerprint(function), bits.at(function.op)) << function.op;
}

}  // namespace
}  // namespace brisk::test
