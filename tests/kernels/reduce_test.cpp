// Reductions and broadcasting on the device against their definitions in double.
#include "brisk/kernels/reduce.h"

#include <limits>
#include <optional>

#include "kernels/values.h"
#include "support/error_text.h"

namespace brisk::kernels {
namespace {

using simt::DeviceBuffer;
using test::Values;

struct Case {
  size_t outer, size, inner;
  DType dtype, output = DType::f32;
  size_t skew = 0;
  size_t count() const { return outer * size * inner; }
  size_t lines() const { return outer * inner; }
  size_t line(size_t i) const { return i / (size * inner) * inner + i % inner; }
  std::string text() const {
    return std::to_string(outer) + " x " + std::to_string(size) + " x " + std::to_string(inner) + " " + name(dtype);
  }
  template <class Options>
  Options options() const {
    Options o;
    o.dtype = dtype;
    o.outer = static_cast<int64_t>(outer), o.size = static_cast<int64_t>(size), o.inner = static_cast<int64_t>(inner);
    return o;
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : test::kFloatTypes) {
    all.push_back({1, 1, 1, dtype});
    all.push_back({300, 7, 1, dtype});
    all.push_back({5, 64, 1, dtype, dtype});
    all.push_back({3, 2051, 1, dtype});
    all.push_back({2, 40000, 1, dtype});  // several blocks a line
    all.push_back({1, 9001, 1, dtype});   // the same without vectors
    all.push_back({3, 49, 72, dtype, dtype});
    all.push_back({2, 5, 3, dtype});
    all.push_back({2, 3001, 8, dtype});  // slices
    all.push_back({1, 1100, 20, dtype, DType::bf16});
    all.push_back({2, 9, 16, dtype, DType::f16, 1});
  }
  return all;
}

TEST(KernelReduce, SumsAndMeansAgreeWithTheirDefinitions) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    const Values x(c.dtype, test::random_numbers(c.count(), 1, -1, 2), c.skew);
    const auto got = test::same_under_schedules([&]() -> std::vector<std::vector<double>> {
      const Values sum(c.output, c.lines()), mean(c.output, c.lines());
      const DeviceBuffer<int32_t> counters = test::counters();
      auto o = c.options<ReduceOptions>();
      o.counters = counters.data(), o.output_dtype = c.output, o.x = x.data(), o.y = sum.data();
      o.workspace_bytes = reduce_workspace_bytes(o);
      std::optional<DeviceBuffer<unsigned char>> workspace;
      if (o.workspace_bytes > 0) o.workspace = workspace.emplace(static_cast<size_t>(o.workspace_bytes)).data();
      reduce_sum(o, nullptr);
      o.y = mean.data();
      reduce_mean(o, nullptr);
      EXPECT_EQ(counters.download(), std::vector<int32_t>(counters.size(), 0)) << "counters are left zero";
      return {sum.get(), mean.get()};
    });
    std::vector<double> sum(c.lines()), mean(c.lines());
    for (size_t i = 0; i < c.count(); ++i) sum[c.line(i)] += x.given()[i];
    for (size_t i = 0; i < c.lines(); ++i) mean[i] = sum[i] / static_cast<double>(c.size);
    test::expect_near("sum", c.output, got[0], sum, 1e-6 * static_cast<double>(c.size));
    test::expect_near("mean", c.output, got[1], mean, 1e-6);
  }
}

TEST(KernelReduce, MaximumAndItsGradientAgreeWithTheirDefinitions) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    std::vector<double> numbers = test::random_numbers(c.count(), 1, -1, 2);
    for (double& n : numbers) n = std::round(n * 8) / 8;  // ties
    if (c.lines() > 5) numbers[0] = numbers[c.count() - 1] = nan;
    if (c.lines() > 5 && c.size > 3) numbers[c.inner * 3] = nan;
    const Values x(c.dtype, numbers, c.skew), dy(c.dtype, test::random_numbers(c.lines(), 2));
    std::vector<double> largest(c.lines()), index(c.lines(), -1), dx(c.count());
    for (size_t i = 0; i < c.count(); ++i) {
      const size_t line = c.line(i);
      const double value = x.given()[i];
      const bool larger = value > largest[line] || (std::isnan(value) && !std::isnan(largest[line]));
      if (index[line] >= 0 && !larger) continue;
      largest[line] = value;
      index[line] = static_cast<double>(i / c.inner % c.size);
    }
    for (size_t i = 0; i < c.count(); ++i) {
      if (index[c.line(i)] == static_cast<double>(i / c.inner % c.size)) dx[i] = dy.given()[c.line(i)];
    }
    const auto got = test::same_under_schedules([&]() -> std::vector<std::vector<double>> {
      const Values y(c.dtype, c.lines()), gradient(c.dtype, c.count());
      DeviceBuffer<int32_t> found(c.lines());
      auto o = c.options<ReduceMaxOptions>();
      o.x = x.data(), o.y = y.data(), o.index = found.data();
      reduce_max(o, nullptr);
      auto g = c.options<ReduceMaxGradientOptions>();
      g.dy = dy.data(), g.dx = gradient.data(), g.index = found.data();
      reduce_max_gradient(g, nullptr);
      const std::vector<int32_t> at = found.download();
      return {y.get(), {at.begin(), at.end()}, gradient.get()};
    });
    test::expect_near("largest", c.dtype, got[0], largest, 0);
    EXPECT_EQ(got[1], index);
    EXPECT_EQ(got[2], dx);
  }
}

TEST(KernelReduce, ChannelSumsOverwriteOrAdd) {
  for (const DType dtype : test::kFloatTypes) {
    for (const auto& sizes : std::initializer_list<std::pair<size_t, size_t>>{
             {1, 1}, {64, 500}, {3000, 20}, {2500, 64}, {7, 4000}, {5000, 3}, {3, 16390}}) {
      const size_t rows = sizes.first, channels = sizes.second;
      SCOPED_TRACE(std::string(name(dtype)) + " " + std::to_string(rows) + " x " + std::to_string(channels));
      const Values x(dtype, test::random_numbers(rows * channels, 1));
      std::vector<double> want(channels);
      for (size_t i = 0; i < rows * channels; ++i) want[i % channels] += x.given()[i];
      const auto got = test::same_under_schedules(
          [&]() -> std::vector<std::vector<double>> {
            const DeviceBuffer<float> y(std::vector<float>(channels, 1000));
            const DeviceBuffer<int32_t> counters = test::counters();
            ChannelSumOptions o{.channels = static_cast<int64_t>(channels),
                                .counters = counters.data(),
                                .dtype = dtype,
                                .rows = static_cast<int64_t>(rows),
                                .x = x.data(),
                                .y = y.data()};
            o.workspace_bytes = channel_sum_workspace_bytes(o);
            std::optional<DeviceBuffer<unsigned char>> workspace;
            if (o.workspace_bytes > 0) o.workspace = workspace.emplace(static_cast<size_t>(o.workspace_bytes)).data();
            channel_sum(o, nullptr);
            const std::vector<double> once = test::doubles(y);
            o.accumulate = true;
            channel_sum(o, nullptr);
            return {once, test::doubles(y)};
          },
          2);
      const double bound = 2e-6 * static_cast<double>(rows);
      test::expect_near("sum", DType::f32, got[0], want, bound);
      for (double& value : want) value *= 2;
      test::expect_near("twice", DType::f32, got[1], want, 2 * bound);
    }
  }
}

/// An axis of many blocks: work of one launch, cut the same way whatever runs first.
TEST(KernelReduce, NaNReachesTheSum) {
  std::vector<double> numbers(2000 * 8, 1);
  numbers[1234 * 8 + 5] = std::numeric_limits<double>::quiet_NaN();
  const Values x(DType::bf16, numbers), y(DType::f32, 8);
  auto o = Case{1, 2000, 8, DType::bf16}.options<ReduceOptions>();
  const DeviceBuffer<int32_t> counters = test::counters();
  o.counters = counters.data(), o.x = x.data(), o.y = y.data();
  o.workspace_bytes = reduce_workspace_bytes(o);
  const DeviceBuffer<unsigned char> workspace(static_cast<size_t>(o.workspace_bytes) + 16);
  o.workspace = workspace.data();
  reduce_sum(o, nullptr);
  const std::vector<double> got = y.get();
  for (size_t i = 0; i < 8; ++i) EXPECT_TRUE(i == 5 ? std::isnan(got[i]) : got[i] == 2000) << got[i];
}

struct Expansion {
  Shape shape;
  std::array<int64_t, Shape::kMaximumRank> strides;
  size_t elements;  ///< of x
};

TEST(KernelExpand, AgreesWithItsDefinition) {
  const std::vector<Expansion> expansions = {
      {{}, {}, 1},
      {{5}, {0}, 1},
      {{3, 7, 16}, {16, 0, 1}, 48},  // an image's mean over its pixels
      {{3, 7, 5}, {5, 0, 1}, 15},
      {{2, 64}, {1, 0}, 2},        // a number a row
      {{4, 3, 8}, {0, 8, 1}, 24},  // what all samples share
      {{2, 3, 4, 5, 2}, {0, 8, 2, 0, 1}, 24},
      {{3, 4, 8}, {4, 1, 0}, 12},
      {{2, 3, 24}, {8, 0, 0}, 16},
      {{2, 1, 3, 1, 4}, {3, 99, 1, 99, 0}, 6},
  };
  for (const DType dtype : test::kFloatTypes) {
    for (const Expansion& e : expansions) {
      for (const size_t skew : {size_t{0}, size_t{1}}) {
        SCOPED_TRACE(std::string(name(dtype)) + " " + e.shape.text());
        const Values x(dtype, test::random_numbers(e.elements, 1), skew);
        const auto count = static_cast<size_t>(e.shape.count());
        std::vector<double> want(count);
        for (size_t i = 0; i < count; ++i) {
          auto rest = static_cast<int64_t>(i);
          int64_t at = 0;
          for (int d = e.shape.rank() - 1; d >= 0; --d) {
            at += rest % e.shape[d] * e.strides[static_cast<size_t>(d)];
            rest /= e.shape[d];
          }
          want[i] = 0.25 * x.given()[static_cast<size_t>(at)];
        }
        const auto got = test::same_under_schedules(
            [&]() -> std::vector<std::vector<double>> {
              const Values y(dtype, count);
              expand({.dtype = dtype,
                      .factor = 0.25,
                      .shape = e.shape,
                      .strides = e.strides,
                      .x = x.data(),
                      .y = y.data()},
                     nullptr);
              return {y.get()};
            },
            2);
        EXPECT_EQ(got[0], want);
      }
    }
  }
}

TEST(KernelReduce, RefusesWhatItCannotDo) {
  const Values x(DType::f32, std::vector<double>(8)), y(DType::f32, 8);
  EXPECT_EQ(test::error_text([&] { reduce_sum({.size = 0, .x = x.data(), .y = y.data()}, nullptr); }),
            "Error [option] kernels::reduce_sum.size = 0: must be 1 or more");
  ReduceOptions o{.size = 100000, .x = x.data(), .y = y.data()};
  EXPECT_NE(test::error_text([&] { reduce_mean(o, nullptr); }).find("kernels::reduce_mean.workspace_bytes = 0"),
            std::string::npos);
  const DeviceBuffer<unsigned char> workspace(static_cast<size_t>(reduce_workspace_bytes(o)));
  o.workspace = workspace.data(), o.workspace_bytes = reduce_workspace_bytes(o);
  EXPECT_EQ(test::error_text([&] { reduce_mean(o, nullptr); }),
            "Error [option] kernels::reduce_mean.counters = null: must be a device pointer");
  EXPECT_EQ(test::error_text([&] { expand({.shape = {2}, .strides = {-1}, .x = x.data(), .y = y.data()}, nullptr); }),
            "Error [option] kernels::expand.strides = -1: must be 0 or more");
}

}  // namespace
}  // namespace brisk::kernels
