// Pieces that the rows of the case table are written with.
#pragma once

#include <numeric>
#include <utility>

#include "cases/op_cases.h"

namespace brisk::test {

using graph::Attributes;
using graph::Place;
using graph::ValueType;

/// Batched with m rows a sample; without a batch.
inline ValueType b(Shape shape, int64_t rows = 1, DType dtype = DType::f32) { return {dtype, rows, shape}; }
inline ValueType p(Shape shape, DType dtype = DType::f32) { return {dtype, 0, shape}; }

/// Every tail of a block of 8 or 16 samples, over several blocks.
inline std::vector<int64_t> all_tails() {
  std::vector<int64_t> batches(67);
  std::iota(batches.begin(), batches.end(), 1);
  return batches;
}
inline std::vector<int64_t> some_tails() { return {1, 2, 5, 8, 15, 16, 17, 33, 67}; }
inline std::vector<int64_t> few_tails() { return {1, 7, 18}; }

template <class F>
Fill each(F next) {
  return [next](const OpCase&, int64_t count, Random& random) {
    std::vector<double> data;
    for (int64_t i = 0; i < count; ++i) data.push_back(next(random, i));
    return data;
  };
}
inline Fill uniform(double low = -1, double high = 1) {
  return each([=](Random& random, int64_t) { return random.uniform(low, high); });
}
/// Quarters: many are equal.
inline Fill quarters() {
  return each([](Random& random, int64_t) { return static_cast<double>(random.below(17) - 8) / 4; });
}
inline Fill constant(double value) {
  return each([=](Random&, int64_t) { return static_cast<double>(static_cast<float>(value)); });
}
/// The given values over and over.
inline Fill values(std::vector<double> list) {
  return each([list = std::move(list)](Random&, int64_t i) { return list[static_cast<size_t>(i) % list.size()]; });
}
/// Classes, one in eight of them `ignored`.
inline Fill labels(int64_t classes, int64_t ignored = -100) {
  return each([=](Random& random, int64_t) {
    return static_cast<double>(random.below(8) == 0 ? ignored : random.below(classes));
  });
}

inline CaseInput in(ValueType type, Fill fill = uniform()) { return {type, std::move(fill)}; }
inline CaseInput at(Place place, int32_t slot, ValueType type, Fill fill = uniform()) {
  return {type, std::move(fill), place, slot};
}
inline CaseInput label_input(int64_t classes, int64_t rows = 1) { return in(b({}, rows, DType::i64), labels(classes)); }

constexpr Tolerance kExact = {};
/// Sums of products in float: an error of many roundings, relative to the sum of absolute values.
constexpr Tolerance kSum = {1e-6, Measure::magnitude};
/// A function of one value in float.
constexpr Tolerance kFunction = {1e-6, Measure::element};
/// Statistics over many elements.
constexpr Tolerance kStatistics = {2e-6, Measure::output};

inline void append(std::vector<OpCase>& rows, std::vector<OpCase> more) {
  for (OpCase& row : more) rows.push_back(std::move(row));
}

}  // namespace brisk::test
