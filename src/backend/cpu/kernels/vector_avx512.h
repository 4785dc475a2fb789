// AVX-512: 16 lanes. Included by vector.h only.
#pragma once

namespace brisk::backend::cpu::BRISK_ISA {

constexpr int kLanes = 16;
/// Vectors of accumulators that fit in the registers beside their operands.
constexpr int kAccumulators = 24;

struct Vec {
  __m512 v;
};
struct Ints {
  __m512i v;
};
struct Mask {
  __mmask16 v;
};
/// Four floats: sums of four vectors.
struct Quad {
  __m128 v;
};

// Memory. Any alignment.
BRISK_INLINE Vec load(const float* from) { return {_mm512_loadu_ps(from)}; }
/// Zeros where the mask is off; that memory is not touched.
BRISK_INLINE Vec load(const float* from, Mask mask) { return {_mm512_maskz_loadu_ps(mask.v, from)}; }
/// The same, where all the memory may be read: the cheaper form in a loop.
BRISK_INLINE Vec load_whole(const float* from, Mask mask) { return {_mm512_maskz_loadu_ps(mask.v, from)}; }
BRISK_INLINE void store(float* to, Vec a) { _mm512_storeu_ps(to, a.v); }
BRISK_INLINE void store(float* to, Vec a, Mask mask) { _mm512_mask_storeu_ps(to, mask.v, a.v); }
BRISK_INLINE Ints load_ints(const int32_t* from) { return {_mm512_loadu_si512(from)}; }
BRISK_INLINE void store(int32_t* to, Ints a) { _mm512_storeu_si512(to, a.v); }
BRISK_INLINE Vec set1(float value) { return {_mm512_set1_ps(value)}; }
/// kCount floats of memory (1, 2, 4 or half of the lanes), over and over.
template <int kCount>
BRISK_INLINE Vec repeat(const float* from) {
  if constexpr (kCount == 1) return set1(*from);
  if constexpr (kCount == 2) {
    double two = 0;
    __builtin_memcpy(&two, from, sizeof two);
    return {_mm512_castpd_ps(_mm512_set1_pd(two))};
  }
  if constexpr (kCount == 4) return {_mm512_broadcast_f32x4(_mm_loadu_ps(from))};
  if constexpr (kCount == 8) return {_mm512_broadcast_f32x8(_mm256_loadu_ps(from))};
}
/// The first kCount lanes (1, 2, 4 or half of them).
template <int kCount>
BRISK_INLINE void store_low(float* to, Vec a) {
  const __m128 low = _mm512_castps512_ps128(a.v);
  if constexpr (kCount == 1) _mm_store_ss(to, low);
  if constexpr (kCount == 2) _mm_storel_pi(reinterpret_cast<__m64*>(to), low);
  if constexpr (kCount == 4) _mm_storeu_ps(to, low);
  if constexpr (kCount == 8) _mm256_storeu_ps(to, _mm512_castps512_ps256(a.v));
}

// Arithmetic.
BRISK_INLINE Vec operator+(Vec a, Vec b) { return {_mm512_add_ps(a.v, b.v)}; }
BRISK_INLINE Vec operator-(Vec a, Vec b) { return {_mm512_sub_ps(a.v, b.v)}; }
BRISK_INLINE Vec operator*(Vec a, Vec b) { return {_mm512_mul_ps(a.v, b.v)}; }
BRISK_INLINE Vec operator/(Vec a, Vec b) { return {_mm512_div_ps(a.v, b.v)}; }
/// a * b + c with one rounding.
BRISK_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
/// c - a * b with one rounding.
BRISK_INLINE Vec fnma(Vec a, Vec b, Vec c) { return {_mm512_fnmadd_ps(a.v, b.v, c.v)}; }
/// b where either is NaN.
BRISK_INLINE Vec max(Vec a, Vec b) { return {_mm512_max_ps(a.v, b.v)}; }
BRISK_INLINE Vec min(Vec a, Vec b) { return {_mm512_min_ps(a.v, b.v)}; }
BRISK_INLINE Vec sqrt(Vec a) { return {_mm512_sqrt_ps(a.v)}; }
/// To the nearest integer, ties to even.
BRISK_INLINE Vec round(Vec a) { return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }

// Bits.
BRISK_INLINE Ints bits(Vec a) { return {_mm512_castps_si512(a.v)}; }
BRISK_INLINE Vec from_bits(Ints a) { return {_mm512_castsi512_ps(a.v)}; }
BRISK_INLINE Vec abs(Vec a) { return {_mm512_abs_ps(a.v)}; }
BRISK_INLINE Vec operator-(Vec a) {
  return {_mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(a.v), _mm512_set1_epi32(INT32_MIN)))};
}

// Comparison: false where either is NaN, but for unordered().
BRISK_INLINE Mask operator<(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
BRISK_INLINE Mask operator<=(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LE_OQ)}; }
BRISK_INLINE Mask operator>(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ)}; }
BRISK_INLINE Mask operator>=(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_GE_OQ)}; }
BRISK_INLINE Mask operator==(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)}; }
BRISK_INLINE Mask unordered(Vec a, Vec b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_UNORD_Q)}; }
BRISK_INLINE Mask operator==(Ints a, Ints b) { return {_mm512_cmpeq_epi32_mask(a.v, b.v)}; }
BRISK_INLINE Mask operator>(Ints a, Ints b) { return {_mm512_cmpgt_epi32_mask(a.v, b.v)}; }  ///< signed

// Masks.
BRISK_INLINE Mask operator&(Mask a, Mask b) { return {static_cast<__mmask16>(a.v & b.v)}; }
BRISK_INLINE Mask operator|(Mask a, Mask b) { return {static_cast<__mmask16>(a.v | b.v)}; }
BRISK_INLINE Mask operator~(Mask a) { return {static_cast<__mmask16>(~a.v)}; }
/// Bit i: lane i.
BRISK_INLINE uint32_t lane_bits(Mask a) { return a.v; }
BRISK_INLINE bool any(Mask a) { return a.v != 0; }
BRISK_INLINE Mask first_lanes_clamped(int count) { return {static_cast<__mmask16>((1u << count) - 1)}; }
/// a where the mask is on, else b.
BRISK_INLINE Vec select(Mask mask, Vec a, Vec b) { return {_mm512_mask_blend_ps(mask.v, b.v, a.v)}; }
BRISK_INLINE Ints select(Mask mask, Ints a, Ints b) { return {_mm512_mask_blend_epi32(mask.v, b.v, a.v)}; }
/// a where the mask is on, else 0 (also where a is NaN).
BRISK_INLINE Vec keep(Mask mask, Vec a) { return {_mm512_maskz_mov_ps(mask.v, a.v)}; }

// Integers, modulo 2^32.
BRISK_INLINE Ints set1_int(int32_t value) { return {_mm512_set1_epi32(value)}; }
/// 0, 1, 2, ...
BRISK_INLINE Ints lane_numbers() { return {_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)}; }
BRISK_INLINE Ints operator+(Ints a, Ints b) { return {_mm512_add_epi32(a.v, b.v)}; }
BRISK_INLINE Ints operator-(Ints a, Ints b) { return {_mm512_sub_epi32(a.v, b.v)}; }
BRISK_INLINE Ints operator*(Ints a, Ints b) { return {_mm512_mullo_epi32(a.v, b.v)}; }
BRISK_INLINE Ints operator&(Ints a, Ints b) { return {_mm512_and_si512(a.v, b.v)}; }
BRISK_INLINE Ints operator|(Ints a, Ints b) { return {_mm512_or_si512(a.v, b.v)}; }
BRISK_INLINE Ints operator^(Ints a, Ints b) { return {_mm512_xor_si512(a.v, b.v)}; }
template <int kBits>
BRISK_INLINE Ints shift_left(Ints a) {
  return {_mm512_slli_epi32(a.v, kBits)};
}
/// Zeros come in.
template <int kBits>
BRISK_INLINE Ints shift_right(Ints a) {
  return {_mm512_srli_epi32(a.v, kBits)};
}
/// The sign comes in.
template <int kBits>
BRISK_INLINE Ints shift_right_signed(Ints a) {
  return {_mm512_srai_epi32(a.v, kBits)};
}
/// Upper 32 bits of the unsigned product.
BRISK_INLINE Ints multiply_high(Ints a, Ints b) {
  const __m512i even = _mm512_srli_epi64(_mm512_mul_epu32(a.v, b.v), 32);
  const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(a.v, 32), _mm512_srli_epi64(b.v, 32));
  return {_mm512_mask_blend_epi32(0xAAAA, even, odd)};
}
/// 64-bit products of the even lanes' unsigned values, each in two lanes (low half first).
BRISK_INLINE Ints multiply_even(Ints a, Ints b) { return {_mm512_mul_epu32(a.v, b.v)}; }
/// Lane 2 i takes lane 2 i + 1, and the other way round.
BRISK_INLINE Ints odd_to_even(Ints a) { return {_mm512_shuffle_epi32(a.v, _MM_PERM_DDBB)}; }
BRISK_INLINE Ints even_to_odd(Ints a) { return {_mm512_shuffle_epi32(a.v, _MM_PERM_CCAA)}; }
/// Even lanes of a, odd lanes of b.
BRISK_INLINE Ints interleave(Ints a, Ints b) { return {_mm512_mask_blend_epi32(0xAAAA, a.v, b.v)}; }
BRISK_INLINE Vec to_float(Ints a) { return {_mm512_cvtepi32_ps(a.v)}; }  ///< signed
BRISK_INLINE Ints to_ints(Vec a) { return {_mm512_cvtps_epi32(a.v)}; }   ///< to nearest, ties to even
BRISK_INLINE Ints truncate(Vec a) { return {_mm512_cvttps_epi32(a.v)}; }

// 16-bit elements.
BRISK_INLINE Vec load_f16(const uint16_t* from) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)))};
}
/// To nearest, ties to even.
BRISK_INLINE void store_f16(uint16_t* to, Vec a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
BRISK_INLINE Ints load_halves(const uint16_t* from) {
  return {_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)))};
}
/// The low 16 bits of each lane, which must have no others.
BRISK_INLINE void store_halves(uint16_t* to, Ints a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), _mm512_cvtepi32_epi16(a.v));
}

// Across lanes.
/// The vector's four quarters added: (0 + 2) + (1 + 3).
BRISK_INLINE Quad fold(Vec a) {
  const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  return {_mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1))};
}
BRISK_INLINE void store4(float* to, Quad a) { _mm_storeu_ps(to, a.v); }
BRISK_INLINE void add4(float* to, Quad a) { _mm_storeu_ps(to, _mm_add_ps(_mm_loadu_ps(to), a.v)); }
/// Element i is the sum of the lanes of vector i.
BRISK_INLINE Quad sum4(Vec a, Vec b, Vec c, Vec d) {
  const __m512 ac = _mm512_add_ps(_mm512_unpacklo_ps(a.v, c.v), _mm512_unpackhi_ps(a.v, c.v));
  const __m512 bd = _mm512_add_ps(_mm512_unpacklo_ps(b.v, d.v), _mm512_unpackhi_ps(b.v, d.v));
  return fold({_mm512_add_ps(_mm512_unpacklo_ps(ac, bd), _mm512_unpackhi_ps(ac, bd))});
}

/// Sum of the lanes in double.
BRISK_INLINE double sum_double(Vec a) {
  const __m512d eight =
      _mm512_add_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(a.v)), _mm512_cvtps_pd(_mm512_extractf32x8_ps(a.v, 1)));
  const __m256d four = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/// Rows become columns: r[i] lane j <- r[j] lane i.
BRISK_INLINE void transpose(Vec (&r)[kLanes]) {
  __m512 t[16];
  BRISK_UNROLL for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_ps(r[2 * i].v, r[2 * i + 1].v);
    t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i].v, r[2 * i + 1].v);
  }
  __m512 u[16];
  BRISK_UNROLL for (int i = 0; i < 4; ++i) {
    BRISK_UNROLL for (int half = 0; half < 2; ++half) {
      const __m512d low = _mm512_castps_pd(t[4 * i + half]);
      const __m512d high = _mm512_castps_pd(t[4 * i + 2 + half]);
      u[4 * i + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, high));
      u[4 * i + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, high));
    }
  }
  // u[4 i + c]: quarter q holds column 4 q + c of rows 4 i .. 4 i + 3.
  BRISK_UNROLL for (int c = 0; c < 4; ++c) {
    const __m512 even01 = _mm512_shuffle_f32x4(u[c], u[4 + c], 0x88);
    const __m512 odd01 = _mm512_shuffle_f32x4(u[c], u[4 + c], 0xDD);
    const __m512 even23 = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0x88);
    const __m512 odd23 = _mm512_shuffle_f32x4(u[8 + c], u[12 + c], 0xDD);
    r[c].v = _mm512_shuffle_f32x4(even01, even23, 0x88);
    r[8 + c].v = _mm512_shuffle_f32x4(even01, even23, 0xDD);
    r[4 + c].v = _mm512_shuffle_f32x4(odd01, odd23, 0x88);
    r[12 + c].v = _mm512_shuffle_f32x4(odd01, odd23, 0xDD);
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
