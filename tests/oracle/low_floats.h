// 16-bit floats by their definition, in double: rounding to the nearest, ties to even, and their bits.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "brisk/tensor.h"

namespace brisk::oracle {

struct LowFormat {
  int digits;    ///< of the fraction
  int exponent;  ///< of the smallest normal number
  int bias() const { return 1 - exponent; }
  int infinite() const { return 2 * bias() + 1; }  ///< exponent field of infinity and NaN
};
inline LowFormat low_format(DType dtype) { return dtype == DType::f16 ? LowFormat{10, -14} : LowFormat{7, -126}; }

/// The nearest value of the type; beyond the largest one infinity.
inline double rounded_to(DType dtype, double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  const LowFormat format = low_format(dtype);
  const double unit = std::ldexp(1.0, std::max(std::ilogb(x), format.exponent) - format.digits);
  const double near = std::nearbyint(x / unit) * unit;
  const bool fits = std::fabs(near) < std::ldexp(1.0, format.bias() + 1);
  return fits ? near : std::copysign(std::numeric_limits<double>::infinity(), x);
}

/// The bits of a value of the type.
inline uint16_t low_bits(DType dtype, double x) {
  const LowFormat format = low_format(dtype);
  const uint32_t sign = std::signbit(x) ? 0x8000u : 0u;
  const auto field = [&](int exponent, uint32_t fraction) {
    return static_cast<uint16_t>(sign | static_cast<uint32_t>(exponent) << format.digits | fraction);
  };
  if (std::isnan(x)) return field(format.infinite(), 1u << (format.digits - 1));
  if (std::isinf(x)) return field(format.infinite(), 0);
  if (x == 0) return static_cast<uint16_t>(sign);
  const int exponent = std::max(std::ilogb(x), format.exponent);
  const auto whole = static_cast<uint32_t>(std::ldexp(std::fabs(x), format.digits - exponent));
  const bool normal = whole >> format.digits != 0;
  return field(normal ? exponent + format.bias() : 0, whole & ((1u << format.digits) - 1));
}

inline double low_value(DType dtype, uint16_t bits) {
  const LowFormat format = low_format(dtype);
  const double sign = (bits & 0x8000u) != 0 ? -1 : 1;
  const int exponent = (bits & 0x7FFF) >> format.digits;
  const auto fraction = static_cast<double>(bits & ((1u << format.digits) - 1));
  if (exponent == format.infinite())
    return sign * (fraction != 0 ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity());
  if (exponent == 0) return sign * std::ldexp(fraction, format.exponent - format.digits);
  return sign * std::ldexp(fraction + std::ldexp(1.0, format.digits), exponent - format.bias() - format.digits);
}

}  // namespace brisk::oracle
