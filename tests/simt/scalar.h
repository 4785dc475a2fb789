// Arithmetic of one thread that the host has under other names: bits, integers, cached loads.
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

inline unsigned __float_as_uint(float x) { return brisk::simt::bits_as<unsigned>(x); }
inline float __uint_as_float(unsigned x) { return brisk::simt::bits_as<float>(x); }
inline double __longlong_as_double(long long x) { return brisk::simt::bits_as<double>(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(uint64_t{a} * b >> 32); }

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
inline T __ldcg(const T* address) {
  return *address;
}
