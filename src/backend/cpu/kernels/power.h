// x^p as 2^(p log2 x) in double, element by element: p log2 x has more places before the point than a float can spare.
// Rounded once, so that it is nearly always the float nearest to the true value; the same bits from every compiler.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "backend/cpu/kernels/math.h"

namespace brisk::backend::cpu::BRISK_ISA {

/// x: positive, normal. x = 2^k m with sqrt(1/2) <= m < sqrt(2); log m = 2 atanh(s), s = (m - 1) / (m + 1), by its
/// series.
BRISK_INLINE double log2_of(float x) {
  const auto word = std::bit_cast<int32_t>(x);
  const int32_t k = (word - 0x3F3504F3) >> 23;
  const auto m = static_cast<double>(std::bit_cast<float>(word - (k << 23)));
  const double s = (m - 1) / (m + 1), z = s * s;
  double p = z * (1.0 / 15) + 1.0 / 13;
  p = p * z + 1.0 / 11;
  p = p * z + 1.0 / 9;
  p = p * z + 1.0 / 7;
  p = p * z + 1.0 / 5;
  p = p * z + 1.0 / 3;
  p = p * z + 1;
  return k + 2.8853900817779268 * (s * p);  // 2 / ln 2
}

/// 2^x by the series of e^(r ln 2), |r| <= 1/2; |x| below 2^50. Without a comparison of doubles, which would keep a
/// loop over it from becoming vectors.
BRISK_INLINE double exp2_of(double x) {
  constexpr double kRound = 0x1.8p52;
  const double shifted = x + kRound;  // whose last bits are the nearest integer
  const int64_t n = std::bit_cast<int64_t>(shifted) - std::bit_cast<int64_t>(kRound);
  const int64_t limited = std::min<int64_t>(std::max<int64_t>(n, -200), 200);
  const double r = (x - (shifted - kRound)) * 0.6931471805599453;
  double p = r * (1.0 / 39916800) + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 1.0 / 2;
  p = p * r + 1;
  p = p * r + 1;
  return p * std::bit_cast<double>((limited + 1023) << 52);
}

/// C's pow with one exponent for all.
class Power {
 public:
  explicit Power(double exponent)
      : exponent_(std::min(std::max(exponent, -0x1p40), 0x1p40)),  // beyond, all but 1 becomes 0 or infinity
        integer_(std::trunc(exponent) == exponent),
        odd_(integer_ && std::fmod(exponent, 2) != 0),
        at_zero_(exponent < 0   ? kInfinity
                 : exponent > 0 ? 0.0f
                                : 1.0f),
        at_infinity_(exponent < 0   ? 0.0f
                     : exponent > 0 ? kInfinity
                                    : 1.0f) {}

  /// y: may be x.
  void apply(const float* x, float* y, int64_t count) const {
    constexpr int64_t kChunk = 64;
    for (int64_t i = 0; i < count; i += kChunk) {
      const int64_t here = count - i < kChunk ? count - i : kChunk;
      alignas(64) float power[kChunk] = {};
      for (int64_t k = 0; k < here; ++k) {
        power[k] = static_cast<float>(exp2_of(exponent_ * log2_of(std::fabs(x[i + k]))));
      }
      for (int64_t k = 0; k < here; k += kLanes) {
        store_first(y + i + k, complete(load_first(x + i + k, here - k), load(power + k)), here - k);
      }
    }
  }

 private:
  /// |x|^p, which holds for positive normal numbers, made into x^p.
  Vec complete(Vec x, Vec power) const {
    const Vec size = abs(x), nan = set1(std::numeric_limits<float>::quiet_NaN());
    const Mask large = size == set1(kInfinity), small = size < set1(std::numeric_limits<float>::min());
    Vec y = select(large, set1(at_infinity_), select(small, set1(at_zero_), power));
    if (odd_) y = from_bits(bits(y) | (bits(x) & set1_int(INT32_MIN)));
    if (!integer_) y = select((x < zero()) & ~large & ~small, nan, y);
    return exponent_ == 0 ? y : select(is_nan(x), x, y);
  }

  double exponent_;
  bool integer_, odd_;
  float at_zero_, at_infinity_;
};

}  // namespace brisk::backend::cpu::BRISK_ISA
