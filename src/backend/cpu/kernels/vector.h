// The vector type that kernels are written on: kLanes floats (Vec), as many 32-bit integers (Ints) and a Mask. Each
// operation is one rounding, the same bits from every compiler; a multiply-add is fused only where fma() says so. Only
// for kernels/*.cpp, which are compiled with an instruction set's flags and BRISK_ISA as its namespace.
#pragma once

// The compiler's own header initialises its "undefined" vectors with themselves, which g++ 12 warns about where it
// inlines.
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include <cstdint>

#ifndef BRISK_ISA
#error "vector.h is for sources that are compiled once for each instruction set, with BRISK_ISA defined"
#endif

#define BRISK_INLINE inline __attribute__((always_inline))
#define BRISK_NOINLINE __attribute__((noinline))
// Before a loop over an array of vectors with a constant count: keeps the array in registers.
#if defined(__clang__)
#define BRISK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define BRISK_UNROLL _Pragma("GCC unroll 32")
#endif

#if defined(__AVX512F__)
#include "backend/cpu/kernels/vector_avx512.h"
#else
#include "backend/cpu/kernels/vector_avx2.h"
#endif

namespace brisk::backend::cpu::BRISK_ISA {

// What follows is made of the operations above, for both instruction sets alike.

BRISK_INLINE Vec zero() { return set1(0.0f); }
BRISK_INLINE Vec& operator+=(Vec& a, Vec b) { return a = a + b; }
BRISK_INLINE Vec& operator-=(Vec& a, Vec b) { return a = a - b; }
BRISK_INLINE Vec& operator*=(Vec& a, Vec b) { return a = a * b; }
/// a < 0 ? 0 : a, with relu(NaN) = NaN.
BRISK_INLINE Vec relu(Vec a) { return max(zero(), a); }
BRISK_INLINE Mask is_nan(Vec a) { return unordered(a, a); }

/// Lanes [0, count), count clamped to [0, kLanes].
BRISK_INLINE Mask first_lanes(int64_t count) {
  return first_lanes_clamped(static_cast<int>(count < 0 ? 0 : count > kLanes ? kLanes : count));
}
/// Lanes that hold samples in block `block` of a batch of `samples`.
BRISK_INLINE Mask valid_lanes(int64_t samples, int64_t block) { return first_lanes(samples - block * kLanes); }

BRISK_INLINE Vec load_bf16(const uint16_t* from) { return from_bits(shift_left<16>(load_halves(from))); }
/// To nearest, ties to even; NaN stays NaN.
BRISK_INLINE void store_bf16(uint16_t* to, Vec a) {
  const Ints high = shift_right<16>(bits(a));
  const Ints rounded = shift_right<16>(bits(a) + set1_int(0x7FFF) + (high & set1_int(1)));
  store_halves(to, select(is_nan(a), high | set1_int(0x40), rounded));
}

/// The first `count` lanes of memory, zeros behind; touches no other memory.
BRISK_INLINE Vec load_first(const float* from, int64_t count) { return load(from, first_lanes(count)); }
BRISK_INLINE void store_first(float* to, Vec a, int64_t count) { store(to, a, first_lanes(count)); }

/// Sum of the lanes in a fixed tree: halves are added until one is left.
BRISK_INLINE float sum(Vec a) {
  float part[4];
  store4(part, fold(a));
  return (part[0] + part[2]) + (part[1] + part[3]);
}
BRISK_INLINE float maximum(Vec a) {
  alignas(64) float lane[kLanes];
  store(lane, a);
  float best = lane[0];
  for (int i = 1; i < kLanes; ++i) best = lane[i] > best || lane[i] != lane[i] ? lane[i] : best;
  return best;
}

}  // namespace brisk::backend::cpu::BRISK_ISA
