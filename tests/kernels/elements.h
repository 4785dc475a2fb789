// Elements of any type in device memory, for tests whose values are computed in double on the host.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "kernels/values.h"

namespace brisk::kernels {

using test::kFloatTypes;
constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

/// `count` elements of `dtype`; with an offset they are not aligned to more than an element.
class Elements {
 public:
  Elements(DType dtype, size_t count, int offset = 0)
      : dtype_(dtype),
        count_(count),
        skipped_(static_cast<size_t>(offset * size_of(dtype))),
        buffer_(std::make_unique<simt::DeviceBuffer<uint8_t>>(
            std::max(size_t{1}, skipped_ + count * static_cast<size_t>(size_of(dtype))))) {}
  Elements(DType dtype, const std::vector<double>& values, int offset = 0) : Elements(dtype, values.size(), offset) {
    std::vector<uint8_t> bytes(buffer_->size());
    dispatch_any(dtype, [&](auto element) {
      for (size_t i = 0; i < values.size(); ++i) {
        element = static_cast<decltype(element)>(values[i]);
        std::memcpy(bytes.data() + skipped_ + i * sizeof element, &element, sizeof element);
      }
    });
    buffer_->upload(bytes);
  }

  template <class T = void>
  T* data() const {
    return reinterpret_cast<T*>(buffer_->data() + skipped_);
  }
  std::vector<double> values() const {
    const std::vector<uint8_t> bytes = buffer_->download();
    std::vector<double> values(count_);
    dispatch_any(dtype_, [&](auto element) {
      for (size_t i = 0; i < count_; ++i) {
        std::memcpy(&element, bytes.data() + skipped_ + i * sizeof element, sizeof element);
        if constexpr (std::is_arithmetic_v<decltype(element)>) {
          values[i] = static_cast<double>(element);
        } else {
          values[i] = static_cast<double>(static_cast<float>(element));
        }
      }
    });
    return values;
  }
  DType dtype() const { return dtype_; }
  size_t size() const { return count_; }

 private:
  DType dtype_;
  size_t count_, skipped_;
  std::unique_ptr<simt::DeviceBuffer<uint8_t>> buffer_;
};

/// What the value is when stored as a float type.
inline double rounded(double value, DType dtype) { return test::rounded(dtype, value); }

inline std::vector<double> rounded(std::vector<double> values, DType dtype) {
  for (double& value : values) value = rounded(value, dtype);
  return values;
}

/// Floats, as doubles.
inline std::vector<double> random_values(size_t count, unsigned seed, double low = -2, double high = 2) {
  return rounded(test::random_numbers(count, seed, low, high), DType::f32);
}

/// Within `relative` of the wanted value, or within `absolute`; NaN where NaN is wanted, infinities exactly.
inline void expect_close(const std::vector<double>& have, const std::vector<double>& want, double relative,
                         double absolute = 0) {
  ASSERT_EQ(have.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i])) {
      EXPECT_TRUE(std::isnan(have[i])) << "element " << i << ": " << have[i];
    } else if (std::isinf(want[i])) {
      EXPECT_EQ(have[i], want[i]) << "element " << i;
    } else {
      EXPECT_NEAR(have[i], want[i], std::abs(want[i]) * relative + absolute) << "element " << i;
    }
  }
}

}  // namespace brisk::kernels
