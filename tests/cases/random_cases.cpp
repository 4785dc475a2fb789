// Rows of random values and of stochastic depth; dropout's are among the elementwise ones.
#include "cases/table.h"

namespace brisk::test {
namespace {

using Sizes = std::vector<int64_t>;

const oracle::Run kLater = {false, 0x300000007, 1000001};

Attributes drawn(Attributes attributes, Sizes shape) {
  attributes.set("shape", std::move(shape));
  attributes.set("stream", int64_t{-0x123456789ABCDEF});
  return attributes;
}

}  // namespace

std::vector<OpCase> random_cases() {
  // Sines and cosines near 0 are as exact as the largest element, no more.
  constexpr Tolerance kNormal = {1e-6, Measure::output, 1e-6};
  constexpr Tolerance kUniform = {2e-7, Measure::output};
  std::vector<OpCase> rows;
  const auto row = [&](const std::string& op, const std::string& name, Attributes attributes, Sizes batches,
                       Tolerance tolerance) {
    rows.push_back({op + "_" + name, op, std::move(attributes), {}, std::move(batches), tolerance, true, kLater});
  };
  const Attributes standard = {{"deviation", 1.0}, {"mean", 0.0}}, unit = {{"high", 1.0}, {"low", 0.0}};
  for (const auto& [name, shape, batches] :
       std::vector<std::tuple<std::string, Sizes, Sizes>>{{"tails", {3}, all_tails()},
                                                          {"number", {}, some_tails()},
                                                          {"image", {3, 5, 7}, some_tails()},
                                                          {"large", {2, 1031}, {1, 19}}}) {
    row("random_normal", name, drawn(standard, shape), batches, kNormal);
    row("random_uniform", name, drawn(unit, shape), batches, kUniform);
  }
  row("random_normal", "moved", drawn({{"deviation", 0.25}, {"mean", -3.0}}, {5}), some_tails(), kNormal);
  row("random_normal", "constant", drawn({{"deviation", 0.0}, {"mean", 2.0}}, {5}), {7}, kExact);
  row("random_uniform", "moved", drawn({{"high", 2.0}, {"low", -1.0}}, {5}), some_tails(), kUniform);
  row("random_uniform", "far", drawn({{"high", 16777220.0}, {"low", 16777216.0}}, {5}), {67}, kUniform);

  for (const auto& [name, x, rate, batches] :
       std::vector<std::tuple<std::string, ValueType, double, Sizes>>{{"tails", b({3}), 0.5, all_tails()},
                                                                      {"image", b({4, 5, 3}), 0.2, some_tails()},
                                                                      {"two_rows", b({3}, 6), 0.4, some_tails()},
                                                                      {"none", b({7}), 0.0, few_tails()},
                                                                      {"large", b({1031}), 0.7, {1, 19}}}) {
    rows.push_back({"stochastic_depth_" + name,
                    "stochastic_depth",
                    {{"rate", rate}, {"stream", int64_t{77}}},
                    {in(x)},
                    batches,
                    {2e-7},
                    true,
                    kLater});
  }
  return rows;
}

}  // namespace brisk::test
