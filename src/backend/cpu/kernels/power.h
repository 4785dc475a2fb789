// x^p as 2^(p log2 x) in double, element by element: p log2 x has more places before the point than a float can spare.
// Rounded once, so that it is nearly always the float nearest to the true value; the same bits from every compiler.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {

/// x: positive, normal. x = 2^k m with sqrt(1/2) <= m < sqrt(2); log m = 2 atanh(s), s = (m - 1) / (m + 1), by its
/// series.
BRISK_INLINE double log2_of(float x) {
  const auto word = std::bit_cast<int32_t>(x);
  const int32_t k = (word - 0x3F3504F3) >> 23;
  const auto m = static_cast<double>(std::bit_cast<float>(word - (k << 23)));
  const double s = (m - 1) / (m + 1), z = s * s;
  double p = 1.0 / 15;
  for (const double term : {1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0}) p = p * z + term;
  return k + 2.8853900817779268 * (s * p);  // 2 / ln 2
}

/// 2^x by the series of e^(r ln 2), |r| <= 1/2.
BRISK_INLINE double exp2_of(double x) {
  const double limited = x < -200 ? -200 : x > 200 ? 200 : x;
  const double n = (limited + 0x1.8p52) - 0x1.8p52;  // to the nearest integer
  const double r = (limited - n) * 0.6931471805599453;
  double p = 1.0 / 39916800;
  for (const double factorial : {3628800.0, 362880.0, 40320.0, 5040.0, 720.0, 120.0, 24.0, 6.0, 2.0, 1.0, 1.0}) {
    p = p * r + 1 / factorial;
  }
  return p * std::bit_cast<double>((static_cast<int64_t>(n) + 1023) << 52);
}

/// C's pow with one exponent for all.
class Power {
 public:
  explicit Power(double exponent)
      : exponent_(exponent),
        integer_(std::trunc(exponent) == exponent),
        odd_(integer_ && std::fmod(exponent, 2) != 0) {}

  float operator()(float x) const {
    if (exponent_ == 0) return 1;
    if (x != x) return x;
    const float size = std::fabs(x), infinity = std::numeric_limits<float>::infinity();
    const bool negative = std::signbit(x), inside = size > 0 && size < infinity;
    if (inside && negative && !integer_) return std::numeric_limits<float>::quiet_NaN();
    const float y = inside ? static_cast<float>(exp2_of(exponent_ * log2_of(size)))
                           : ((size > 0) == (exponent_ > 0) ? infinity : 0.0f);
    return negative && odd_ ? -y : y;
  }

 private:
  double exponent_;
  bool integer_, odd_;
};

}  // namespace brisk::backend::cpu::BRISK_ISA
