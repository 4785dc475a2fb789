// exp, log, tanh, sigmoid on vectors: at most 2 units in the last place from the true value (tanh 3), exact for
// infinities and NaN, the same bits from every compiler. Coefficients are minimax fits (Remez) of our own.
#pragma once

#include <limits>

#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {

constexpr float kLn2High = 0x1.62e430p-1f;  // ln 2 rounded up; the rest below
constexpr float kLn2Low = -0x1.05c610p-29f;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// e^x = 2^n e^r with |r| <= ln 2 / 2, as e^r - 1 and 2^n in two factors, since n reaches 128 and -150.
struct Exponential {
  Vec rest, scale1, scale2;
  BRISK_INLINE Vec value() const { return (rest + set1(1.0f)) * scale1 * scale2; }
  /// x times the value without a denormal before the last product.
  BRISK_INLINE Vec times(Vec x) const { return (rest + set1(1.0f)) * scale1 * x * scale2; }
  /// e^x - 1, for x <= 0.
  BRISK_INLINE Vec minus_one() const {
    const Vec scale = scale1 * scale2;
    return fma(rest, scale, scale - set1(1.0f));
  }
};

/// e^r = 1 + r + r^2 q(r).
BRISK_INLINE Exponential exponential(Vec x) {
  // Beyond these the result is 0 or infinity; NaN passes since it stands second.
  const Vec clamped = min(set1(89.0f), max(set1(-104.0f), x));
  const Vec n = round(clamped * set1(1.44269504f));
  const Vec r = fnma(n, set1(kLn2Low), fnma(n, set1(kLn2High), clamped));
  Vec q = fma(set1(1.3814321e-3f), r, set1(8.3688511e-3f));
  q = fma(q, r, set1(4.1668401e-2f));
  q = fma(q, r, set1(1.66665195e-1f));
  q = fma(q, r, set1(4.99999934e-1f));
  const Ints exponent = to_ints(n);
  const Ints half = shift_right_signed<1>(exponent);
  return {fma(r * r, q, r), from_bits(shift_left<23>(half + set1_int(127))),
          from_bits(shift_left<23>(exponent - half + set1_int(127)))};
}

BRISK_INLINE Vec exp(Vec x) { return exponential(x).value(); }

/// x = 2^k (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2); log(1 + f) = f - f^2 / 2 + f^3 p(f). A denormal counts as 0.
BRISK_INLINE Vec log(Vec x) {
  const Ints k = shift_right_signed<23>(bits(x) - set1_int(0x3F3504F3));
  const Vec f = from_bits(bits(x) - shift_left<23>(k)) - set1(1.0f);
  const Vec exponent = to_float(k);
  Vec p = fma(set1(6.7466339e-2f), f, set1(-1.16756455e-1f));
  p = fma(p, f, set1(1.18881617e-1f));
  p = fma(p, f, set1(-1.24055899e-1f));
  p = fma(p, f, set1(1.42195526e-1f));
  p = fma(p, f, set1(-1.66679958e-1f));
  p = fma(p, f, set1(2.00021186e-1f));
  p = fma(p, f, set1(-2.50000096e-1f));
  p = fma(p, f, set1(3.33333126e-1f));
  const Vec rest = fma(f * f, fma(f, p, set1(-0.5f)), exponent * set1(kLn2Low));
  const Vec y = fma(exponent, set1(kLn2High), f + rest);
  // Where x is not a positive normal number: 0 -> -inf, negative -> NaN, inf and NaN stay.
  const Vec nan = set1(std::numeric_limits<float>::quiet_NaN());
  const Vec low = select(x > set1(-std::numeric_limits<float>::min()), set1(-kInfinity), nan);
  const Vec normal = select(x < set1(kInfinity), y, x);
  return select(x < set1(std::numeric_limits<float>::min()), low, normal);
}

/// Near 0 x + x^3 p(x^2), else 1 - 2 / (e^2|x| + 1) with the sign of x.
BRISK_INLINE Vec tanh(Vec x) {
  const Vec size = abs(x);
  const Vec square = x * x;
  Vec p = fma(set1(-5.8951583e-3f), square, set1(2.0795972e-2f));
  p = fma(p, square, set1(-5.3783830e-2f));
  p = fma(p, square, set1(1.33319241e-1f));
  p = fma(p, square, set1(-3.33332980e-1f));
  const Vec near = fma(size * square, p, size);
  const Vec far = set1(1.0f) - set1(2.0f) / (exp(size + size) + set1(1.0f));
  const Ints sign = bits(x) & set1_int(INT32_MIN);
  return from_bits(bits(select(size < set1(0.6f), near, far)) | sign);
}

/// 1 / (1 + e^-x), from e = e^-|x| so that nothing overflows. One step of refinement takes out the roundings of 1 + e
/// and of the division.
BRISK_INLINE Vec sigmoid(Vec x) {
  const Vec one = set1(1.0f);
  const Vec e = exp(-abs(x));
  const Vec numerator = select(x < zero(), e, one);
  const Vec denominator = one + e;
  const Vec lost = e - (denominator - one);
  const Vec inverse = one / denominator;
  const Vec quotient = numerator * inverse;
  const Vec rest = fnma(quotient, lost, fnma(quotient, denominator, numerator));
  return fma(rest, inverse, quotient);
}

}  // namespace brisk::backend::cpu::BRISK_ISA
