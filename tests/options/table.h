// A row for each number that a user gives: what is allowed, and a use of it.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "brisk/brisk.h"
#include "core/text.h"

namespace brisk::test {

/// One value of a number, as messages print it, and its use.
struct Try {
  std::string value;
  std::function<void()> use;
};

/// field: "Conv2dOptions.groups" or "linear.features".
struct Row {
  std::string field;
  std::vector<Try> inside, outside;
  ErrorCode code = ErrorCode::option;
};

template <class T>
using Same = std::type_identity_t<T>;

/// A whole number from lowest to highest; inside: accepted values that are tried, for want of memory other than these.
template <class T = int64_t>
Row whole(std::string field, Same<T> lowest, Same<T> highest, std::function<void(Same<T>)> use,
          std::vector<Same<T>> inside = {}, ErrorCode code = ErrorCode::option) {
  constexpr T kLeast = std::numeric_limits<T>::min(), kMost = std::numeric_limits<T>::max();
  Row row{std::move(field), {}, {}, code};
  const auto add = [&](std::vector<Try>& to, T value) { to.push_back({cat(value), [use, value] { use(value); }}); };
  if (inside.empty()) inside = {lowest, highest};
  for (const T value : inside) add(row.inside, value);
  if (lowest > kLeast) add(row.outside, static_cast<T>(lowest - 1));
  if (lowest > kLeast) add(row.outside, kLeast);
  if (highest < kMost) add(row.outside, static_cast<T>(highest + 1));
  if (highest < kMost) add(row.outside, kMost);
  return row;
}

/// A height and a width, each from lowest to highest, together and apart.
inline Row sizes(std::string field, int64_t lowest, int64_t highest, const std::function<void(Size2)>& use,
                 const std::vector<int64_t>& inside) {
  const int64_t good = inside.back();
  Row row = whole(
      field, lowest, highest, [use](int64_t value) { use(value); }, inside);
  for (const auto& place : {+[](int64_t value, int64_t other) { return Size2(value, other); },
                            +[](int64_t value, int64_t other) { return Size2(other, value); }}) {
    const Row more = whole(
        field, lowest, highest, [=](int64_t value) { use(place(value, good)); }, inside);
    row.inside.insert(row.inside.end(), more.inside.begin(), more.inside.end());
    row.outside.insert(row.outside.end(), more.outside.begin(), more.outside.end());
  }
  return row;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLargestF32 = std::numeric_limits<float>::max();
constexpr double kSmallestF32 = std::numeric_limits<float>::min();

/// The range of a real number. An infinite end: any finite number on that side.
struct Range {
  double low = -kInfinity, high = kInfinity;
  bool low_open = false, high_open = false;
  bool infinite = false;  // infinity is a value like others
};

/// A real number in a range; NaN never is. inside: accepted values that are tried, other than the ends.
inline Row real(std::string field, Range range, const std::function<void(double)>& use,
                std::vector<double> inside = {}) {
  Row row{std::move(field), {}, {}};
  const auto add = [&](std::vector<Try>& to, double value) {
    to.push_back({number_text(value), [use, value] { use(value); }});
  };
  const auto step = [](double end) { return 1e-3 * std::max(1.0, std::fabs(end)); };
  const bool below = std::isfinite(range.low), above = std::isfinite(range.high);
  if (inside.empty()) {
    inside.push_back(!below ? -1e30 : range.low_open ? range.low + step(range.low) : range.low);
    inside.push_back(!above ? 1e30 : range.high_open ? range.high - step(range.high) : range.high);
    if (range.infinite) inside.insert(inside.end(), {-kInfinity, kInfinity});
  }
  for (const double value : inside) add(row.inside, value);
  add(row.outside, std::numeric_limits<double>::quiet_NaN());
  if (below) add(row.outside, range.low - step(range.low));
  if (below && range.low_open) add(row.outside, range.low);
  if (above) add(row.outside, range.high + step(range.high));
  if (above && range.high_open) add(row.outside, range.high);
  if (!range.infinite) {
    add(row.outside, -kInfinity);
    add(row.outside, kInfinity);
  }
  return row;
}

constexpr Range kF32{.low = -kLargestF32, .high = kLargestF32};
constexpr Range kPositiveF32{.low = kSmallestF32, .high = kLargestF32};
constexpr Range kNotNegativeF32{.low = 0, .high = kLargestF32};
constexpr Range kShare{.low = 0, .high = 1};
constexpr Range kShareBelowOne{.low = 0, .high = 1, .high_open = true};
constexpr Range kBetweenZeroAndOne{.low = 0, .high = 1, .low_open = true, .high_open = true};

/// Traces f of one input [N, ...shape].
inline void trace(Shape shape, const std::function<Var(Var)>& f, DType dtype = DType::f32) {
  Model([&](const Vars& in) { return Vars{{"output", f(in["input"])}}; }, Inputs{{"input", shape, dtype}});
}

/// Rows of the files in this folder.
std::vector<Row> operation_rows();
std::vector<Row> loss_rows();
std::vector<Row> data_rows();
std::vector<Row> training_rows();
std::vector<Row> model_rows();

}  // namespace brisk::test
