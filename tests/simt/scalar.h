// Arithmetic of one thread: bits, conversions, mathematics, cached loads and stores. The fast forms (__expf) are the
// exact ones here.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "simt/core.h"

namespace brisk::simt {

template <class To, class From>
To bits_as(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

}  // namespace brisk::simt

inline int __float_as_int(float x) { return brisk::simt::bits_as<int>(x); }
inline unsigned __float_as_uint(float x) { return brisk::simt::bits_as<unsigned>(x); }
inline float __int_as_float(int x) { return brisk::simt::bits_as<float>(x); }
inline float __uint_as_float(unsigned x) { return brisk::simt::bits_as<float>(x); }
inline long long __double_as_longlong(double x) { return brisk::simt::bits_as<long long>(x); }
inline double __longlong_as_double(long long x) { return brisk::simt::bits_as<double>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(uint64_t{a} * b >> 32); }

inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float x) { return 1.0f / x; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fadd_rn(float a, float b) { return a + b; }  // the build contracts nothing
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }

// NaN loses, as in CUDA.
inline float max(float a, float b) { return std::fmax(a, b); }
inline float min(float a, float b) { return std::fmin(a, b); }
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
inline T max(T a, T b) {
  return a < b ? b : a;
}
template <class T, class = std::enable_if_t<std::is_integral_v<T>>>
inline T min(T a, T b) {
  return b < a ? b : a;
}

template <class T>
inline T __ldg(const T* address) {
  return *address;
}
template <class T>
inline T __ldcg(const T* address) {
  return *address;
}
template <class T>
inline T __ldcs(const T* address) {
  return *address;
}
template <class T>
inline void __stcg(T* address, std::type_identity_t<T> value) {
  *address = value;
}
template <class T>
inline void __stcs(T* address, std::type_identity_t<T> value) {
  *address = value;
}
