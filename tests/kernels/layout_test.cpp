// Elements that move: casts between all types, transposes, boxes, fills, gradients of a window.
#include "brisk/kernels/layout.h"

#include <gtest/gtest.h>

#include <numeric>

#include "brisk/error.h"
#include "kernels/elements.h"

namespace brisk::kernels {
namespace {

constexpr DType kTypes[] = {DType::f32, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8};

bool is_float(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

/// An integer type's range.
std::pair<double, double> range_of(DType dtype) {
  if (dtype == DType::u8) return {0, 255};
  if (dtype == DType::i32) return {-0x1p31, 0x1p31 - 1};
  return {-0x1p63, 0x1p63};
}

/// What becomes of a value of type `from`.
double casted(double x, DType from, DType to) {
  if (is_float(to)) return rounded(rounded(x, DType::f32), to);
  if (!is_float(from)) {
    const auto bits = static_cast<int64_t>(x);
    return to == DType::u8    ? static_cast<double>(static_cast<uint8_t>(bits))
           : to == DType::i32 ? static_cast<double>(static_cast<int32_t>(bits))
                              : x;
  }
  if (std::isnan(x)) return 0;
  const auto [low, high] = range_of(to);
  return std::trunc(std::min(std::max(x, low), high));
}

std::vector<double> values_of(DType dtype, size_t count) {
  std::vector<double> values = random_values(count, 11, dtype == DType::u8 ? 0 : -300, 300);
  for (double& value : values) value = is_float(dtype) ? rounded(value, dtype) : std::trunc(value);
  if (dtype == DType::u8) {
    for (double& value : values) value = std::min(value, 255.0);
  }
  return values;
}

TEST(Layout, CastBetweenAllTypes) {
  for (const DType from : kTypes) {
    for (const DType to : kTypes) {
      for (const int offset : {0, 1}) {
        SCOPED_TRACE(testing::Message() << name(from) << " to " << name(to) << ", offset " << offset);
        std::vector<double> x = values_of(from, 1043), want;
        if (is_float(from)) x[3] = kNan, x[9] = kInfinity, x[20] = -kInfinity;
        x[30] = 1, x[31] = 254, x[32] = 255, x[33] = 0;
        for (const double value : x) want.push_back(casted(value, from, to));
        const Elements in(from, x, offset), out(to, x.size(), offset);
        cast({.count = 1043, .from = from, .to = to, .x = in.data(), .y = out.data()}, nullptr);
        expect_close(out.values(), want, 0);
      }
    }
  }
}

void check_transpose(int64_t batch, int64_t rows, int64_t columns, DType from, DType to) {
  const std::vector<double> x = values_of(from, static_cast<size_t>(batch * rows * columns));
  std::vector<double> want(x.size());
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = 0; c < columns; ++c) {
        want[static_cast<size_t>((b * columns + c) * rows + r)] =
            casted(x[static_cast<size_t>((b * rows + r) * columns + c)], from, to);
      }
    }
  }
  const Elements in(from, x), out(to, x.size());
  transpose({.batch = batch, .columns = columns, .from = from, .rows = rows, .to = to, .x = in.data(), .y = out.data()},
            nullptr);
  EXPECT_EQ(out.values(), want);
}

TEST(Layout, TransposeOfEachShape) {
  const int64_t shapes[][3] = {{1, 1, 9},  {2, 3, 50},  {2, 50, 3},  {3, 8, 8},  {2, 8, 300},
                               {2, 9, 33}, {1, 33, 65}, {2, 64, 32}, {3, 40, 9}, {1, 100, 70}};
  simt::for_each_schedule([&] {
    for (const auto& s : shapes) {
      SCOPED_TRACE(testing::Message() << s[0] << " x " << s[1] << " x " << s[2]);
      check_transpose(s[0], s[1], s[2], DType::f32, DType::f16);
      check_transpose(s[0], s[1], s[2], DType::f16, DType::f16);
    }
  });
}

TEST(Layout, TransposeBetweenAllTypes) {
  for (const DType from : kTypes) {
    for (const DType to : kTypes) {
      SCOPED_TRACE(testing::Message() << name(from) << " to " << name(to));
      check_transpose(2, 3, 21, from, to);
      check_transpose(2, 35, 21, from, to);
    }
  }
}

struct BoxCase {
  std::vector<int64_t> dims, before, x_dims, x_strides, y_strides;
  int offset = 0;  ///< of x and y, in elements
};

std::vector<int64_t> row_major(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size(), 1);
  for (size_t d = dims.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * dims[d + 1];
  return strides;
}

int64_t reach(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
  int64_t last = 0;
  for (size_t d = 0; d < dims.size(); ++d) last += (dims[d] - 1) * strides[d];
  return last + 1;
}

void check_box(const BoxCase& c, DType dtype) {
  const size_t rank = c.dims.size();
  const std::vector<int64_t> x_dims = c.x_dims.empty() ? c.dims : c.x_dims;
  const std::vector<int64_t> before = c.before.empty() ? std::vector<int64_t>(rank, 0) : c.before;
  const std::vector<int64_t> from = c.x_strides.empty() ? row_major(x_dims) : c.x_strides;
  const std::vector<int64_t> to = c.y_strides.empty() ? row_major(c.dims) : c.y_strides;
  const std::vector<double> x = values_of(dtype, static_cast<size_t>(reach(x_dims, from)));
  std::vector<double> want(static_cast<size_t>(reach(c.dims, to)), 77);  // what the box leaves alone stays
  const Elements in(dtype, x, c.offset), out(dtype, want, c.offset);
  const int64_t total = std::accumulate(c.dims.begin(), c.dims.end(), int64_t{1}, std::multiplies<>());
  for (int64_t i = 0; i < total; ++i) {
    int64_t rest = i, source = 0, target = 0;
    bool inside = true;
    for (size_t d = rank; d-- > 0; rest /= c.dims[d]) {
      const int64_t at = rest % c.dims[d], x_at = at - before[d];
      inside = inside && x_at >= 0 && x_at < x_dims[d];
      source += x_at * from[d];
      target += at * to[d];
    }
    want[static_cast<size_t>(target)] = inside ? x[static_cast<size_t>(source)] : 5;
  }
  copy_box({.before = c.before,
            .dims = c.dims,
            .dtype = dtype,
            .value = 5,
            .x = in.data(),
            .x_dims = c.x_dims,
            .x_strides = c.x_strides,
            .y = out.data(),
            .y_strides = c.y_strides},
           nullptr);
  EXPECT_EQ(out.values(), want);
}

TEST(Layout, Boxes) {
  const BoxCase cases[] = {
      {{3, 4, 32}, {}, {}, {}, {}},     // a copy
      {{3, 4, 32}, {}, {}, {}, {}, 1},  // of elements that no vector begins with
      {{5, 16}, {}, {}, {}, {40, 1}},   // into a wider row (concat)
      {{5, 12}, {}, {}, {}, {37, 1}},
      {{4, 2, 8}, {0, -3, 0}, {4, 7, 8}, {}, {}},          // slice
      {{4, 9, 8}, {0, 3, 0}, {4, 2, 8}, {}, {}},           // and its derivative
      {{2, 7, 9, 3}, {0, 1, 2, 0}, {2, 5, 5, 3}, {}, {}},  // frame of an image, channels last
      {{2, 7, 9, 16}, {0, 1, 2, 0}, {2, 5, 5, 16}, {}, {}},
      {{24}, {8}, {8}, {}, {}},
      {{5, 3, 4}, {}, {}, {1, 5, 15}, {}},         // permute
      {{2, 3, 4, 8}, {}, {}, {8, 16, 48, 1}, {}},  // of 8 side by side
      {{1, 1, 1, 1, 2, 1, 3, 4}, {}, {}, {}, {}},
  };
  for (const DType dtype : kTypes) {
    for (size_t i = 0; i < std::size(cases); ++i) {
      SCOPED_TRACE(testing::Message() << name(dtype) << ", case " << i);
      check_box(cases[i], dtype);
    }
  }
}

TEST(Layout, Fill) {
  for (const DType dtype : kTypes) {
    for (const size_t count : {size_t{1}, size_t{64}, size_t{301}}) {
      const Elements y(dtype, count, 1);
      fill({.count = static_cast<int64_t>(count), .dtype = dtype, .value = 3, .y = y.data()}, nullptr);
      EXPECT_EQ(y.values(), std::vector<double>(count, 3)) << name(dtype) << ", " << count;
    }
  }
}

TEST(Layout, GradientsAddWhereTheRunSaysSo) {
  for (const DType dtype : kFloatTypes) {
    for (const size_t count : {size_t{5}, size_t{2051}}) {
      const std::vector<double> first = rounded(random_values(count, 1), dtype),
                                second = rounded(random_values(count, 2), dtype);
      std::vector<double> sum;
      for (size_t i = 0; i < count; ++i) sum.push_back(rounded(first[i] + second[i], DType::f32));
      const Elements a(dtype, first), b(dtype, second), window(DType::f32, count);
      const simt::DeviceBuffer<RunState> overwrites({RunState{}}), adds({RunState{.accumulate = 1}});
      StoreGradientOptions options{.count = static_cast<int64_t>(count),
                                   .from = dtype,
                                   .gradient = a.data(),
                                   .output = window.data<float>(),
                                   .run = overwrites.data()};
      store_gradient(options, nullptr);
      EXPECT_EQ(window.values(), first);
      options.gradient = b.data(), options.run = adds.data();
      store_gradient(options, nullptr);
      EXPECT_EQ(window.values(), sum);
      options.run = nullptr;
      store_gradient(options, nullptr);
      EXPECT_EQ(window.values(), second);
    }
  }
}

TEST(Layout, NothingToDoAndRefusals) {
  cast({}, nullptr);
  fill({}, nullptr);
  transpose({.batch = 0, .columns = 3, .rows = 4}, nullptr);
  const int64_t none[] = {3, 0}, dims[] = {3, 4}, one[] = {1};
  copy_box({.dims = none}, nullptr);
  EXPECT_THROW(cast({.count = -1}, nullptr), Error);
  EXPECT_THROW(cast({.count = 1}, nullptr), Error);
  EXPECT_THROW(copy_box({.dims = dims}, nullptr), Error);
  EXPECT_THROW(copy_box({.before = one, .dims = dims}, nullptr), Error);
  EXPECT_THROW(transpose({.columns = 3, .rows = 4}, nullptr), Error);
  EXPECT_THROW(store_gradient({.count = 1, .from = DType::i32}, nullptr), Error);
}

}  // namespace
}  // namespace brisk::kernels
