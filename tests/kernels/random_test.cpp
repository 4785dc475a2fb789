// Random values against the generator's definition (core/philox.h): the same numbers as on the CPU.
#include "brisk/kernels/random.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "brisk/error.h"
#include "core/philox.h"
#include "kernels/elements.h"

namespace brisk::kernels {
namespace {

const RunState kState{.attempt = (int64_t{1} << 32) + 5, .first_sample = 96};
constexpr uint64_t kKey = 0xfedcba9876543210;

struct Batch {
  int64_t samples, elements, channels, positions;
};
constexpr Batch kBatches[] = {{1, 1, 1, 1}, {3, 64, 1, 1}, {5, 13, 1, 1}, {2, 6 * 9, 6, 9}, {3, 2 * 5 * 4, 5, 4}};

size_t count(const Batch& b) { return static_cast<size_t>(b.samples * b.elements); }

PhiloxBlock words_of(int64_t sample, int64_t element) {
  return brisk::philox(
      kKey, philox_counter(static_cast<uint64_t>(kState.attempt), static_cast<uint32_t>(kState.first_sample + sample),
                           static_cast<uint32_t>(element / 4)));
}

/// f(words, which of them) for each element of a batch that lies channels last.
template <class F>
std::vector<double> drawn(const Batch& b, F f) {
  std::vector<double> values;
  for (int64_t s = 0; s < b.samples; ++s) {
    for (int64_t i = 0; i < b.elements; ++i) {
      int64_t e = i;
      if (b.channels > 1) {
        const int64_t size = b.channels * b.positions, inside = i % size;
        e = i / size * size + inside % b.channels * b.positions + inside / b.channels;
      }
      values.push_back(f(words_of(s, e), static_cast<size_t>(e % 4)));
    }
  }
  return values;
}

TEST(Random, Normal) {
  for (const DType dtype : kFloatTypes) {
    for (const Batch& b : kBatches) {
      SCOPED_TRACE(testing::Message() << name(dtype) << ", " << b.elements);
      const simt::DeviceBuffer<RunState> run({kState});
      const Elements y(dtype, count(b));
      random_normal({.channels = b.channels,
                     .deviation = 0.5,
                     .dtype = dtype,
                     .key = kKey,
                     .mean = 2,
                     .positions = b.positions,
                     .run = run.data(),
                     .sample_elements = b.elements,
                     .samples = b.samples,
                     .y = y.data()},
                    nullptr);
      const auto want = drawn(b, [](const PhiloxBlock& words, size_t i) {
        const auto pair = brisk::normal(words[i / 2 * 2], words[i / 2 * 2 + 1]);
        return 2 + 0.5 * static_cast<double>(pair[i % 2]);
      });
      expect_close(y.values(), want, 1.01 * test::rounding(dtype), 5e-7);
    }
  }
}

TEST(Random, Uniform) {
  for (const DType dtype : kFloatTypes) {
    for (const Batch& b : kBatches) {
      SCOPED_TRACE(testing::Message() << name(dtype) << ", " << b.elements);
      const simt::DeviceBuffer<RunState> run({kState});
      const Elements y(dtype, count(b));
      random_uniform({.channels = b.channels,
                      .dtype = dtype,
                      .high = 3,
                      .key = kKey,
                      .low = -1,
                      .positions = b.positions,
                      .run = run.data(),
                      .sample_elements = b.elements,
                      .samples = b.samples,
                      .y = y.data()},
                     nullptr);
      const auto want = drawn(b, [&](const PhiloxBlock& words, size_t i) {
        return rounded(static_cast<double>(uniform(words[i])) * 4 - 1, DType::f32);
      });
      EXPECT_EQ(y.values(), rounded(want, dtype));
    }
  }
}

TEST(Random, UniformStaysBelowHigh) {
  const int64_t samples = 4096;
  const simt::DeviceBuffer<RunState> run({kState});
  const Elements y(DType::f32, static_cast<size_t>(samples));
  // Few floats lie between the bounds: rounding would reach the upper one.
  random_uniform({.high = 1 + 0x1p-22, .key = kKey, .low = 1, .run = run.data(), .samples = samples, .y = y.data()},
                 nullptr);
  const std::vector<double> values = y.values();
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 1 + 0x1p-22);
  EXPECT_GE(*std::min_element(values.begin(), values.end()), 1);
}

TEST(Random, Dropout) {
  const int64_t samples = 40, elements = 21;
  const simt::DeviceBuffer<RunState> run({kState});
  const std::vector<double> x = rounded(random_values(static_cast<size_t>(samples * elements), 3, 1, 2), DType::f16);
  const Elements in(DType::f16, x), out(DType::f16, x.size());
  dropout({.dtype = DType::f16,
           .key = kKey,
           .rate = 0.25,
           .run = run.data(),
           .sample_elements = elements,
           .samples = samples,
           .x = in.data(),
           .y = out.data()},
          nullptr);
  std::vector<double> want = drawn({samples, elements, 1, 1}, [](const PhiloxBlock& words, size_t i) {
    return bernoulli(words[i], 0.25) ? 0.0 : 1 / 0.75;
  });
  for (size_t i = 0; i < want.size(); ++i) {
    want[i] = rounded(x[i] * rounded(want[i], DType::f32), DType::f16);
  }
  EXPECT_EQ(out.values(), want);
  EXPECT_NEAR(static_cast<double>(std::count(want.begin(), want.end(), 0.0)), 0.25 * 840, 40);
}

TEST(Random, StochasticDepth) {
  struct Case {
    int64_t samples, rows, elements;
  };
  for (const DType dtype : kFloatTypes) {
    for (const Case& c : {Case{9, 1, 16}, Case{4, 3, 24}, Case{5, 6, 7}}) {
      SCOPED_TRACE(testing::Message() << name(dtype) << ", " << c.elements);
      const simt::DeviceBuffer<RunState> run({kState});
      const std::vector<double> x =
          rounded(random_values(static_cast<size_t>(c.samples * c.rows * c.elements), 3), dtype);
      const Elements in(dtype, x), out(dtype, x.size());
      stochastic_depth({.dtype = dtype,
                        .key = kKey,
                        .rate = 0.4,
                        .row_elements = c.elements,
                        .rows = c.rows,
                        .run = run.data(),
                        .samples = c.samples,
                        .x = in.data(),
                        .y = out.data()},
                       nullptr);
      std::vector<double> want;
      for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
        const int64_t line = i / c.elements, row = line % c.rows;
        const bool stays = !bernoulli(words_of(line / c.rows, row)[static_cast<size_t>(row % 4)], 0.4);
        const double factor = static_cast<double>(static_cast<float>(1 / (1 - 0.4)));
        want.push_back(stays ? rounded(rounded(x[static_cast<size_t>(i)] * factor, DType::f32), dtype) : 0);
      }
      EXPECT_EQ(out.values(), want);
    }
  }
}

TEST(Random, AWordOfExactlyTheThresholdKeeps) {
  const simt::DeviceBuffer<RunState> run({kState});
  const Elements x(DType::f32, std::vector<double>{1}), y(DType::f32, 1);
  const uint32_t word = words_of(0, 0)[0];
  for (const bool kept : {true, false}) {
    const double rate = (word + (kept ? 0 : 1)) * 0x1p-32;
    const double want = kept ? rounded(1 / (1 - rate), DType::f32) : 0;
    dropout({.key = kKey, .rate = rate, .run = run.data(), .samples = 1, .x = x.data(), .y = y.data()}, nullptr);
    EXPECT_EQ(y.values()[0], want);
    stochastic_depth({.key = kKey, .rate = rate, .run = run.data(), .samples = 1, .x = x.data(), .y = y.data()},
                     nullptr);
    EXPECT_EQ(y.values()[0], want);
  }
}

TEST(Random, RefusesRates) {
  for (const double rate : {-0.1, 1.0, kNan}) {
    EXPECT_THROW(dropout({.rate = rate}, nullptr), Error);
    EXPECT_THROW(stochastic_depth({.rate = rate}, nullptr), Error);
  }
  EXPECT_THROW(random_uniform({.high = 1, .low = 1}, nullptr), Error);
  EXPECT_THROW(random_normal({.deviation = -1}, nullptr), Error);
}

}  // namespace
}  // namespace brisk::kernels
