// What tests of kernels share: elements of any float type on the device, given and read as doubles; comparison with a
// double-precision reference; the same bits under each schedule.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "kernels/common/vector.h"
#include "simt/device_buffer.h"
#include "support/random.h"

namespace brisk::test {

inline constexpr DType kFloatTypes[] = {DType::f32, DType::f16, DType::bf16};

inline double rounded(DType dtype, double value) {
  return kernels::dispatch(dtype, [&](auto element) {
    return static_cast<double>(kernels::to_float(kernels::from_float<decltype(element)>(static_cast<float>(value))));
  });
}

/// The largest relative error of rounding to the type.
inline double rounding(DType dtype) { return dtype == DType::f32 ? 0x1p-24 : dtype == DType::f16 ? 0x1p-11 : 0x1p-8; }

/// Device memory of one float type. `given()` are the numbers as rounded to it. `skew` elements lie before the first,
/// so that 16-byte accesses do not fit.
class Values {
 public:
  Values(DType dtype, const std::vector<double>& values, size_t skew = 0) : Values(dtype, values.size(), skew) {
    given_.reserve(values.size());
    std::vector<unsigned char> bytes(bytes_.size());
    for (size_t i = 0; i < values.size(); ++i) {
      given_.push_back(rounded(dtype, values[i]));
      kernels::dispatch(dtype, [&](auto element) {
        element = kernels::from_float<decltype(element)>(static_cast<float>(values[i]));
        std::memcpy(bytes.data() + (skew + i) * sizeof element, &element, sizeof element);
      });
    }
    bytes_.upload(bytes);
  }
  Values(DType dtype, size_t count, size_t skew = 0)
      : dtype_(dtype), count_(count), skew_(skew), bytes_((count + skew) * size()) {}

  void* data() const { return bytes_.data() + skew_ * size(); }
  const std::vector<double>& given() const { return given_; }
  std::vector<double> get() const {
    const std::vector<unsigned char> bytes = bytes_.download();
    std::vector<double> values(count_);
    for (size_t i = 0; i < count_; ++i) {
      values[i] = kernels::dispatch(dtype_, [&](auto element) {
        std::memcpy(&element, bytes.data() + (skew_ + i) * sizeof element, sizeof element);
        return static_cast<double>(kernels::to_float(element));
      });
    }
    return values;
  }

 private:
  size_t size() const { return static_cast<size_t>(size_of(dtype_)); }

  DType dtype_;
  size_t count_;
  size_t skew_;
  simt::DeviceBuffer<unsigned char> bytes_;
  std::vector<double> given_;
};

inline std::vector<double> random_numbers(size_t count, uint64_t seed, double low = -2, double high = 2) {
  Random random(seed);
  std::vector<double> numbers(count);
  for (double& number : numbers) number = random.uniform(low, high);
  return numbers;
}

inline std::vector<float> floats(const std::vector<double>& values) { return {values.begin(), values.end()}; }

/// |got - want| <= rounding(dtype) |want| + bound(i); NaN where NaN is wanted, the same infinity where one is.
inline void expect_near(const std::string& what, DType dtype, const std::vector<double>& got,
                        const std::vector<double>& want, const std::function<double(size_t)>& bound) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i]) continue;
    // Below the smallest normal number the steps are even: 2^-24 of an f16.
    const double most = rounding(dtype) * std::fabs(want[i]) + bound(i) + (dtype == DType::f16 ? 0x1p-25 : 0);
    EXPECT_LE(std::fabs(got[i] - want[i]), most) << what << ", element " << i << ": " << got[i] << " for " << want[i];
    if (!(std::fabs(got[i] - want[i]) <= most)) return;
  }
}
inline void expect_near(const std::string& what, DType dtype, const std::vector<double>& got,
                        const std::vector<double>& want, double bound) {
  expect_near(what, dtype, got, want, [=](size_t) { return bound; });
}

/// Runs `body`, which returns all results, under several schedules; returns the results, which must have the same bits.
inline std::vector<std::vector<double>> same_under_schedules(
    const std::function<std::vector<std::vector<double>>()>& body, uint64_t schedules = 3) {
  std::vector<std::vector<double>> first;
  simt::for_each_schedule(
      [&] {
        std::vector<std::vector<double>> results = body();
        if (first.empty()) first = results;
        ASSERT_EQ(first.size(), results.size());
        for (size_t i = 0; i < results.size(); ++i) {
          ASSERT_EQ(first[i].size(), results[i].size());
          EXPECT_TRUE(first[i].empty() ||
                      std::memcmp(first[i].data(), results[i].data(), first[i].size() * sizeof(double)) == 0)
              << "result " << i << " has other bits";
        }
      },
      schedules);
  return first;
}

inline std::vector<double> doubles(const simt::DeviceBuffer<float>& buffer) {
  const std::vector<float> values = buffer.download();
  return {values.begin(), values.end()};
}

/// The counters that reductions over many blocks need, zeros.
inline simt::DeviceBuffer<int32_t> counters() {
  return simt::DeviceBuffer<int32_t>(std::vector<int32_t>(kernels::kCounterBytes / 4, 0));
}

}  // namespace brisk::test
