// Activation functions and their derivatives on vectors, made of what math.h has: at most 5 units in the last place
// from the true value where that is no denormal, derivatives as close relative to 1. Infinities give the limits, NaN
// stays.
#pragma once

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/math.h"

namespace brisk::backend::cpu::BRISK_ISA {

/// x limited to [-bound, bound]; NaN stays, since it stands second.
BRISK_INLINE Vec limit(Vec x, float bound) { return min(set1(bound), max(set1(-bound), x)); }

/// y > 0 passes dy, NaN stays NaN, all else is 0.
BRISK_INLINE Vec relu_gradient(Vec dy, Vec y) { return select(is_nan(y), y, keep(y > zero(), dy)); }

/// x logistic(z) for x and z of one sign. rest: what the rounding of z lost.
BRISK_INLINE Vec gated(Vec x, Vec z, Vec rest) {
  const Exponential e = exponential(-abs(z));
  const Vec small = e.times(x);
  return select(z < zero(), fma(small, rest, small), x) / (set1(1.0f) + e.value());
}

/// Its derivative: s (1 + x slope (1 - s)) with s = logistic(z), slope = dz/dx.
BRISK_INLINE Vec gated_gradient(Vec x, Vec z, Vec slope) {
  const Vec e = exp(-abs(z));
  const Vec inverse = set1(1.0f) / (set1(1.0f) + e);
  const Vec other = e * inverse;
  return fma(inverse * other, x * slope, select(z < zero(), other, inverse));
}

// Below -104 all of them are 0 as floats; a larger x would only make 0 times infinity.
BRISK_INLINE Vec silu(Vec x) {
  const Vec limited = max(set1(-104.0f), x);
  return gated(limited, limited, zero());
}
BRISK_INLINE Vec silu_gradient(Vec x) {
  const Vec limited = limit(x, 104.0f);
  return gated_gradient(limited, limited, set1(1.0f));
}

/// log(1 + e^x) = max(x, 0) + log(1 + e^-|x|); the quotient gives back what the rounding of 1 + e lost.
BRISK_INLINE Vec softplus(Vec x) {
  const Vec one = set1(1.0f), e = exp(-abs(x)), sum = one + e;
  return relu(x) + (log(sum) + (e - (sum - one)) / sum);
}

// 2 sqrt(2 / pi) and 0.044715 times it, each as a float and the rest.
constexpr double kGeluLinear = 1.5957691216057308, kGeluCubic = kGeluLinear * 0.044715;
constexpr float kGeluLinearHigh = static_cast<float>(kGeluLinear), kGeluCubicHigh = static_cast<float>(kGeluCubic);
constexpr float kGeluLinearLow = static_cast<float>(kGeluLinear - static_cast<double>(kGeluLinearHigh));
constexpr float kGeluCubicLow = static_cast<float>(kGeluCubic - static_cast<double>(kGeluCubicHigh));

/// 0.5 x (1 + tanh(z / 2)) = x logistic(z), z = x (linear + cubic x^2). e^z needs z to more places than a float has.
BRISK_INLINE Vec gelu_tanh(Vec x) {
  const Vec limited = max(set1(-16.0f), x);
  const Vec square = limited * limited, square_rest = fma(limited, limited, -square);
  const Vec cubic = set1(kGeluCubicHigh) * square;
  const Vec cubic_rest = fma(set1(kGeluCubicHigh), square_rest, fma(set1(kGeluCubicHigh), square, -cubic));
  const Vec linear = set1(kGeluLinearHigh), factor = linear + cubic, added = factor - linear;
  const Vec sum_rest = (linear - (factor - added)) + (cubic - added);
  const Vec factor_rest = sum_rest + (cubic_rest + fma(set1(kGeluCubicLow), square, set1(kGeluLinearLow)));
  const Vec z = limited * factor;
  return gated(limited, z, fma(limited, factor_rest, fma(limited, factor, -z)));
}
BRISK_INLINE Vec gelu_tanh_gradient(Vec x) {
  const Vec limited = limit(x, 16.0f), square = limited * limited;
  const Vec z = limited * fma(set1(kGeluCubicHigh), square, set1(kGeluLinearHigh));
  return gated_gradient(limited, z, fma(set1(3 * kGeluCubicHigh), square, set1(kGeluLinearHigh)));
}

/// The normal distribution at t in [0, 15]: e^(-t^2 / 2) times `tail` is the probability of more than t, times
/// `density` its density. `tail` is 1 / (t + 2.5) times a polynomial in (t - 2.5) / (t + 2.5), a minimax fit (Remez) of
/// our own.
struct Normal {
  Exponential e;
  Vec tail, density;
};
BRISK_INLINE Normal normal(Vec t) {
  const Vec square = t * t, half_rest = set1(0.5f) * fma(t, t, -square);
  const Vec inverse = set1(1.0f) / (t + set1(2.5f)), v = (t - set1(2.5f)) * inverse;
  Vec p = fma(set1(-1.577023485e-04f), v, set1(-3.116228515e-04f));
  p = fma(p, v, set1(6.844127268e-04f));
  p = fma(p, v, set1(2.523932733e-03f));
  p = fma(p, v, set1(-1.600830061e-03f));
  p = fma(p, v, set1(-1.638618549e-02f));
  p = fma(p, v, set1(9.235875748e-03f));
  p = fma(p, v, set1(1.319869788e-01f));
  p = fma(p, v, set1(-4.336920123e-01f));
  p = fma(p, v, set1(7.066566599e-01f));
  const Vec tail = p * inverse;
  const Vec density = set1(3.98942280e-1f);
  return {exponential(set1(-0.5f) * square), fnma(tail, half_rest, tail), fnma(density, half_rest, density)};
}

/// x P(normal < x): for x < 0 from the tail itself, which 1 minus a probability near 1 would lose.
BRISK_INLINE Vec gelu(Vec x) {
  const Normal n = normal(min(set1(15.0f), abs(x)));
  return select(x < zero(), n.e.times(max(set1(-15.0f), x) * n.tail), x * (set1(1.0f) - n.e.times(n.tail)));
}
BRISK_INLINE Vec gelu_gradient(Vec x) {
  const Vec t = min(set1(15.0f), abs(x));
  const Normal n = normal(t);
  const Vec below = n.e.times(fnma(t, n.density, n.tail));
  return select(x < zero(), below, set1(1.0f) - below);
}

/// The activation that is chosen at run time: for what is done once a tile or a row.
BRISK_INLINE Vec activate(Vec a, Activation activation) {
  switch (activation) {
    case Activation::none:
      return a;
    case Activation::relu:
      return relu(a);
    case Activation::tanh:
      return tanh(a);
    case Activation::sigmoid:
      return sigmoid(a);
    case Activation::silu:
      return silu(a);
  }
  return a;
}

}  // namespace brisk::backend::cpu::BRISK_ISA
