// Rows of the normalisations within a sample.
#include <limits>

#include "cases/table.h"

namespace brisk::test {
namespace {

struct Norm {
  std::string name;
  ValueType x;
  int64_t setting;  ///< dims, or groups
  std::vector<int64_t> batches;
  Fill fill = uniform(-2, 3);
};

/// Forward with and without parameters, and the gradient of both.
void add_rows(const std::string& op, const std::string& setting, const Norm& n, std::vector<OpCase>& rows) {
  Shape weights, groups;
  for (int i = 0; i < n.x.shape.rank(); ++i) {
    if (setting == "dims") (i < n.x.shape.rank() - n.setting ? groups : weights).append(n.x.shape[i]);
  }
  if (setting == "groups") {
    weights.append(n.x.shape[0]);
    groups.append(n.setting);
  }
  const Attributes gradient = {{setting, n.setting}};
  const Attributes forward = {{setting, n.setting}, {"epsilon", 1e-3}};
  const CaseInput x = in(n.x, n.fill), dy = in(n.x), weight = in(p(weights), uniform(0.5, 1.5)), bias = in(p(weights));
  const CaseInput mean = in(b(groups, n.x.rows)), inverse = in(b(groups, n.x.rows), uniform(0.5, 2));
  constexpr Tolerance kGradient = {4e-6, Measure::output, 1e-6};
  constexpr Tolerance kForward = {2e-6, Measure::output, 1e-6};
  rows.push_back({op + "_" + n.name, op, forward, {x, weight, bias}, n.batches, kForward});
  rows.push_back({op + "_" + n.name + "_plain", op, forward, {x}, n.batches, kForward});
  rows.push_back(
      {op + "_gradient_" + n.name, op + "_gradient", gradient, {dy, x, mean, inverse, weight}, n.batches, kGradient});
  rows.push_back({op + "_gradient_" + n.name + "_plain",
                  op + "_gradient",
                  gradient,
                  {dy, x, mean, inverse},
                  n.batches,
                  kGradient});
}

}  // namespace

std::vector<OpCase> layer_norm_cases() {
  std::vector<OpCase> rows;
  for (const Norm& n : {Norm{"tails", b({5}), 1, all_tails()}, Norm{"tokens", b({3, 7}), 1, some_tails()},
                        Norm{"image", b({3, 5, 7}), 3, some_tails()}, Norm{"two_dims", b({3, 5, 7}), 2, few_tails()},
                        Norm{"two_rows", b({2, 6}, 2), 1, some_tails()}, Norm{"large", b({1031}), 1, {1, 19}},
                        Norm{"many", b({41, 33}), 1, {1, 203}}}) {
    add_rows("layer_norm", "dims", n, rows);
  }
  for (const Norm& n : {Norm{"tails", b({6}), 2, all_tails()}, Norm{"image", b({6, 3, 5}), 3, some_tails()},
                        Norm{"one", b({4, 3, 3}), 1, some_tails()}, Norm{"instance", b({5, 4, 4}), 5, few_tails()},
                        Norm{"two_rows", b({4, 3}, 2), 2, some_tails()}, Norm{"large", b({6, 27, 29}), 2, {1, 19}}}) {
    add_rows("group_norm", "groups", n, rows);
  }
  // A far mean costs no digits of the variance; equal elements have none; NaN spoils its line alone.
  const Attributes forward = {{"dims", int64_t{1}}, {"epsilon", 1e-5}};
  const auto special = [&](const std::string& name, Fill fill, Tolerance tolerance) {
    rows.push_back(
        {"layer_norm_" + name, "layer_norm", forward, {in(b({4, 64}), std::move(fill))}, {1, 19}, tolerance, false});
  };
  special("far", uniform(4095, 4097), {2e-5, Measure::output, 1e-5});
  special("equals", constant(0.1), {1e-6, Measure::output, 1e-5});
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  special("nan", each([=](Random& random, int64_t i) { return i % 97 == 5 ? kNaN : random.uniform(-1, 1); }),
          {2e-6, Measure::output, 1e-6});
  return rows;
}

}  // namespace brisk::test
