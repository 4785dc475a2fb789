// Elementwise functions and their derivatives, of floats. Infinities give the limits, NaN stays NaN.
#pragma once

#include <cmath>

#include "kernels/common/cuda.h"

namespace brisk::kernels {

__device__ __forceinline__ bool is_nan(float x) { return x != x; }
/// NaN stays.
__device__ __forceinline__ float at_least(float bound, float x) { return x < bound ? bound : x; }
__device__ __forceinline__ float at_most(float bound, float x) { return x > bound ? bound : x; }

__device__ __forceinline__ float relu(float x) { return at_least(0.0f, x); }
/// dy where y > 0; NaN stays.
__device__ __forceinline__ float relu_gradient(float dy, float y) { return is_nan(y) ? y : y > 0 ? dy : 0.0f; }

__device__ __forceinline__ float sigmoid(float x) { return 1 / (1 + expf(-x)); }

/// x logistic(z) for x and z of one sign; rest: what the rounding of z lost.
__device__ __forceinline__ float gated(float x, float z, float rest) {
  const float e = expf(-fabsf(z)), small = e * x;
  return (z < 0 ? fmaf(small, rest, small) : x) / (1 + e);
}
/// Its derivative: s (1 + x slope (1 - s)) with s = logistic(z), slope = dz/dx.
__device__ __forceinline__ float gated_gradient(float x, float z, float slope) {
  const float e = expf(-fabsf(z)), inverse = 1 / (1 + e), other = e * inverse;
  return fmaf(inverse * other, x * slope, z < 0 ? other : inverse);
}

// Below -104 all of them are 0 as floats; a larger x would only make 0 times infinity.
__device__ __forceinline__ float silu(float x) {
  const float limited = at_least(-104, x);
  return gated(limited, limited, 0);
}
__device__ __forceinline__ float silu_gradient(float x) {
  const float limited = at_most(104, at_least(-104, x));
  return gated_gradient(limited, limited, 1);
}

__device__ __forceinline__ float softplus(float x) { return relu(x) + log1pf(expf(-fabsf(x))); }

// 2 sqrt(2 / pi) and 0.044715 times it, each as a float and the rest.
constexpr double kGeluLinear = 1.5957691216057308, kGeluCubic = kGeluLinear * 0.044715;
constexpr float kGeluLinearHigh = static_cast<float>(kGeluLinear), kGeluCubicHigh = static_cast<float>(kGeluCubic);
constexpr float kGeluLinearLow = static_cast<float>(kGeluLinear - static_cast<double>(kGeluLinearHigh));
constexpr float kGeluCubicLow = static_cast<float>(kGeluCubic - static_cast<double>(kGeluCubicHigh));

/// 0.5 x (1 + tanh(z / 2)) = x logistic(z), z = x (linear + cubic x^2). e^z needs z to more places than a float has.
__device__ __forceinline__ float gelu_tanh(float x) {
  const float limited = at_least(-16, x);
  const float square = limited * limited, square_rest = fmaf(limited, limited, -square);
  const float cubic = kGeluCubicHigh * square;
  const float cubic_rest = fmaf(kGeluCubicHigh, square_rest, fmaf(kGeluCubicHigh, square, -cubic));
  const float factor = kGeluLinearHigh + cubic, added = factor - kGeluLinearHigh;
  const float sum_rest = (kGeluLinearHigh - (factor - added)) + (cubic - added);
  const float factor_rest = sum_rest + (cubic_rest + fmaf(kGeluCubicLow, square, kGeluLinearLow));
  const float z = limited * factor;
  return gated(limited, z, fmaf(limited, factor_rest, fmaf(limited, factor, -z)));
}
__device__ __forceinline__ float gelu_tanh_gradient(float x) {
  const float limited = at_most(16, at_least(-16, x)), square = limited * limited;
  const float z = limited * fmaf(kGeluCubicHigh, square, kGeluLinearHigh);
  return gated_gradient(limited, z, fmaf(3 * kGeluCubicHigh, square, kGeluLinearHigh));
}

/// The normal distribution at t in [0, 15]: e = e^(-t^2 / 2), e times `tail` is the probability of more than t, times
/// `density` its density. `tail` is 1 / (t + 2.5) times a polynomial in (t - 2.5) / (t + 2.5), a minimax fit (Remez) of
/// our own.
struct Normal {
  float e, tail, density;
};
__device__ __forceinline__ Normal normal_at(float t) {
  const float square = t * t, half_rest = 0.5f * fmaf(t, t, -square);
  const float inverse = 1 / (t + 2.5f), v = (t - 2.5f) * inverse;
  float p = fmaf(-1.577023485e-04f, v, -3.116228515e-04f);
  p = fmaf(p, v, 6.844127268e-04f);
  p = fmaf(p, v, 2.523932733e-03f);
  p = fmaf(p, v, -1.600830061e-03f);
  p = fmaf(p, v, -1.638618549e-02f);
  p = fmaf(p, v, 9.235875748e-03f);
  p = fmaf(p, v, 1.319869788e-01f);
  p = fmaf(p, v, -4.336920123e-01f);
  p = fmaf(p, v, 7.066566599e-01f);
  const float tail = p * inverse, density = 3.98942280e-1f;
  return {expf(-0.5f * square), fmaf(-tail, half_rest, tail), fmaf(-density, half_rest, density)};
}

/// x P(normal < x): for x < 0 from the tail itself, which 1 minus a probability near 1 would lose.
__device__ __forceinline__ float gelu(float x) {
  const Normal n = normal_at(at_most(15, fabsf(x)));
  return x < 0 ? n.e * (at_least(-15, x) * n.tail) : x * (1 - n.e * n.tail);
}
__device__ __forceinline__ float gelu_gradient(float x) {
  const float t = at_most(15, fabsf(x));
  const Normal n = normal_at(t);
  const float below = n.e * fmaf(-t, n.density, n.tail);
  return x < 0 ? below : 1 - below;
}

__device__ __forceinline__ float huber(float d, float delta) {
  const float size = fabsf(d);
  return size <= delta ? 0.5f * d * d : delta * (size - 0.5f * delta);
}

/// x^(exponent + rest), rest being what the rounding of the exponent lost.
__device__ __forceinline__ float power(float x, float exponent, float rest) {
  const float y = powf(x, exponent);
  return rest == 0 || !(x > 0) || std::isinf(x) ? y : y * expf(rest * logf(x));
}

}  // namespace brisk::kernels
