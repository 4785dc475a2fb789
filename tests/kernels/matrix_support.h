// What the tests of matrix kernels share: numbers that a type holds, and how far a sum may be from the exact one.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "kernels/common/vector.h"
#include "simt/device_buffer.h"

namespace brisk::kernels {

template <class T>
constexpr DType dtype_of() {
  return sizeof(T) == 4 ? DType::f32 : std::is_same_v<T, __half> ? DType::f16 : DType::bf16;
}

/// Uniform in [-1, 1), rounded to T.
template <class T>
std::vector<T> uniform(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::vector<T> values(static_cast<size_t>(count));
  for (T& value : values) value = from_float<T>(static_cast<float>(engine() >> 8) * 0x1p-23f - 1);
  return values;
}

/// Half of the distance between 1 and the next number.
template <class T>
constexpr double rounding() {
  return sizeof(T) == 4 ? 0x1p-24 : std::is_same_v<T, __half> ? 0x1p-11 : 0x1p-8;
}

/// An exact value beside what a kernel may make of it: the sum of the magnitudes of all that was added.
struct Exact {
  double value = 0, magnitude = 0;
  void add(double x) { value += x, magnitude += std::fabs(x); }
  void add_product(double a, double b) { add(a * b); }
  void scale(double by) { value *= by, magnitude *= std::fabs(by); }
};

/// The bound of a sum of `terms` f32 additions in any order (Higham, 2002, section 4.2; twice that, for Tensor Cores
/// that cut instead of rounding), and one rounding to Out.
template <class Out>
double bound(const Exact& exact, int64_t terms) {
  const double sum = 2 * static_cast<double>(terms + 8) * 0x1p-24 * exact.magnitude;
  return sum + rounding<Out>() * (std::fabs(exact.value) + sum) + 0x1p-25;
}

/// The parts of a matrix kernel that it borrows: a workspace of exactly the bytes it asks for, and counters.
struct Borrowed {
  explicit Borrowed(int64_t bytes)
      : workspace(static_cast<size_t>(bytes > 0 ? bytes : 16)),
        counters(std::vector<int32_t>(kCounterBytes / 4)),
        size(bytes) {}
  template <class Options>
  void lend(Options& options) {
    options.workspace = size > 0 ? workspace.data() : nullptr;
    options.workspace_bytes = size;
    options.counters = counters.data();
  }
  void expect_counters_zero() {
    for (const int32_t counter : counters.download()) ASSERT_EQ(counter, 0);
  }

  simt::DeviceBuffer<unsigned char> workspace;
  simt::DeviceBuffer<int32_t> counters;
  int64_t size;
};

/// The statistics of `rows` x `columns` values as a kernel stored them, in tiles of `tile` rows.
template <class Out>
void expect_statistics(const std::vector<float>& got, const std::vector<Out>& d, int64_t rows, int64_t columns,
                       int64_t tile) {
  const int64_t tiles = (rows + tile - 1) / tile;
  ASSERT_EQ(static_cast<int64_t>(got.size()), tiles * 2 * columns);
  for (int64_t t = 0; t < tiles; ++t) {
    for (int64_t column = 0; column < columns; ++column) {
      Exact sum, square;
      for (int64_t row = t * tile; row < std::min(rows, (t + 1) * tile); ++row) {
        const double x = to_float(d[static_cast<size_t>(row * columns + column)]);
        sum.add(x);
        square.add(x * x);
      }
      ASSERT_NEAR(got[static_cast<size_t>((t * 2) * columns + column)], sum.value, bound<float>(sum, tile));
      ASSERT_NEAR(got[static_cast<size_t>((t * 2 + 1) * columns + column)], square.value, bound<float>(square, tile));
    }
  }
}

/// The rows of a tile, which `statistics` go by.
inline int64_t tile_rows(int64_t rows, int64_t tiles) {
  for (const int64_t size : {64, 128}) {
    if ((rows + size - 1) / size == tiles) return size;
  }
  return rows;
}

inline double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::relu:
      return x > 0 || std::isnan(x) ? x : 0;
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
    default:
      return x;
  }
}

}  // namespace brisk::kernels
