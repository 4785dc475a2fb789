// AVX2 with FMA: 8 lanes. Included by vector.h only; what each operation means is said in vector_avx512.h.
#pragma once

namespace brisk::backend::cpu::BRISK_ISA {

constexpr int kLanes = 8;
constexpr int kAccumulators = 12;

struct Vec {
  __m256 v;
};
struct Ints {
  __m256i v;
};
struct Mask {
  __m256 v;
};
struct Quad {
  __m128 v;
};

// Memory.
BRISK_INLINE Vec load(const float* from) { return {_mm256_loadu_ps(from)}; }
BRISK_INLINE Vec load(const float* from, Mask mask) { return {_mm256_maskload_ps(from, _mm256_castps_si256(mask.v))}; }
BRISK_INLINE Vec load_whole(const float* from, Mask mask) { return {_mm256_and_ps(mask.v, _mm256_loadu_ps(from))}; }
BRISK_INLINE void store(float* to, Vec a) { _mm256_storeu_ps(to, a.v); }
BRISK_INLINE void store(float* to, Vec a, Mask mask) { _mm256_maskstore_ps(to, _mm256_castps_si256(mask.v), a.v); }
BRISK_INLINE Ints load_ints(const int32_t* from) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from))};
}
BRISK_INLINE void store(int32_t* to, Ints a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), a.v); }
BRISK_INLINE Vec set1(float value) { return {_mm256_set1_ps(value)}; }
template <int kCount>
BRISK_INLINE Vec repeat(const float* from) {
  if constexpr (kCount == 1) return set1(*from);
  if constexpr (kCount == 2) {
    double two = 0;
    __builtin_memcpy(&two, from, sizeof two);
    return {_mm256_castpd_ps(_mm256_set1_pd(two))};
  }
  if constexpr (kCount == 4) return {_mm256_broadcast_ps(reinterpret_cast<const __m128*>(from))};
}
template <int kCount>
BRISK_INLINE void store_low(float* to, Vec a) {
  const __m128 low = _mm256_castps256_ps128(a.v);
  if constexpr (kCount == 1) _mm_store_ss(to, low);
  if constexpr (kCount == 2) _mm_storel_pi(reinterpret_cast<__m64*>(to), low);
  if constexpr (kCount == 4) _mm_storeu_ps(to, low);
}

// Arithmetic.
BRISK_INLINE Vec operator+(Vec a, Vec b) { return {_mm256_add_ps(a.v, b.v)}; }
BRISK_INLINE Vec operator-(Vec a, Vec b) { return {_mm256_sub_ps(a.v, b.v)}; }
BRISK_INLINE Vec operator*(Vec a, Vec b) { return {_mm256_mul_ps(a.v, b.v)}; }
BRISK_INLINE Vec operator/(Vec a, Vec b) { return {_mm256_div_ps(a.v, b.v)}; }
BRISK_INLINE Vec fma(Vec a, Vec b, Vec c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
BRISK_INLINE Vec fnma(Vec a, Vec b, Vec c) { return {_mm256_fnmadd_ps(a.v, b.v, c.v)}; }
BRISK_INLINE Vec max(Vec a, Vec b) { return {_mm256_max_ps(a.v, b.v)}; }
BRISK_INLINE Vec min(Vec a, Vec b) { return {_mm256_min_ps(a.v, b.v)}; }
BRISK_INLINE Vec sqrt(Vec a) { return {_mm256_sqrt_ps(a.v)}; }
BRISK_INLINE Vec round(Vec a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }

// Bits.
BRISK_INLINE Ints bits(Vec a) { return {_mm256_castps_si256(a.v)}; }
BRISK_INLINE Vec from_bits(Ints a) { return {_mm256_castsi256_ps(a.v)}; }
BRISK_INLINE Vec abs(Vec a) { return {_mm256_andnot_ps(_mm256_set1_ps(-0.0f), a.v)}; }
BRISK_INLINE Vec operator-(Vec a) { return {_mm256_xor_ps(_mm256_set1_ps(-0.0f), a.v)}; }

// Comparison.
BRISK_INLINE Mask operator<(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LT_OQ)}; }
BRISK_INLINE Mask operator<=(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_LE_OQ)}; }
BRISK_INLINE Mask operator>(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ)}; }
BRISK_INLINE Mask operator>=(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GE_OQ)}; }
BRISK_INLINE Mask operator==(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_EQ_OQ)}; }
BRISK_INLINE Mask unordered(Vec a, Vec b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_UNORD_Q)}; }
BRISK_INLINE Mask operator==(Ints a, Ints b) { return {_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.v, b.v))}; }
BRISK_INLINE Mask operator>(Ints a, Ints b) { return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(a.v, b.v))}; }

// Masks.
BRISK_INLINE Mask operator&(Mask a, Mask b) { return {_mm256_and_ps(a.v, b.v)}; }
BRISK_INLINE Mask operator|(Mask a, Mask b) { return {_mm256_or_ps(a.v, b.v)}; }
BRISK_INLINE Mask operator~(Mask a) { return {_mm256_xor_ps(a.v, _mm256_castsi256_ps(_mm256_set1_epi32(-1)))}; }
BRISK_INLINE uint32_t lane_bits(Mask a) { return static_cast<uint32_t>(_mm256_movemask_ps(a.v)); }
BRISK_INLINE bool any(Mask a) { return _mm256_movemask_ps(a.v) != 0; }
BRISK_INLINE Mask first_lanes_clamped(int count) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return {_mm256_castsi256_ps(_mm256_cmpgt_epi32(_mm256_set1_epi32(count), lane))};
}
BRISK_INLINE Vec select(Mask mask, Vec a, Vec b) { return {_mm256_blendv_ps(b.v, a.v, mask.v)}; }
BRISK_INLINE Ints select(Mask mask, Ints a, Ints b) {
  return {_mm256_blendv_epi8(b.v, a.v, _mm256_castps_si256(mask.v))};
}
BRISK_INLINE Vec keep(Mask mask, Vec a) { return {_mm256_and_ps(mask.v, a.v)}; }

// Integers.
BRISK_INLINE Ints set1_int(int32_t value) { return {_mm256_set1_epi32(value)}; }
BRISK_INLINE Ints lane_numbers() { return {_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)}; }
BRISK_INLINE Ints operator+(Ints a, Ints b) { return {_mm256_add_epi32(a.v, b.v)}; }
BRISK_INLINE Ints operator-(Ints a, Ints b) { return {_mm256_sub_epi32(a.v, b.v)}; }
BRISK_INLINE Ints operator*(Ints a, Ints b) { return {_mm256_mullo_epi32(a.v, b.v)}; }
BRISK_INLINE Ints operator&(Ints a, Ints b) { return {_mm256_and_si256(a.v, b.v)}; }
BRISK_INLINE Ints operator|(Ints a, Ints b) { return {_mm256_or_si256(a.v, b.v)}; }
BRISK_INLINE Ints operator^(Ints a, Ints b) { return {_mm256_xor_si256(a.v, b.v)}; }
template <int kBits>
BRISK_INLINE Ints shift_left(Ints a) {
  return {_mm256_slli_epi32(a.v, kBits)};
}
template <int kBits>
BRISK_INLINE Ints shift_right(Ints a) {
  return {_mm256_srli_epi32(a.v, kBits)};
}
template <int kBits>
BRISK_INLINE Ints shift_right_signed(Ints a) {
  return {_mm256_srai_epi32(a.v, kBits)};
}
BRISK_INLINE Ints multiply_high(Ints a, Ints b) {
  const __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(a.v, b.v), 32);
  const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(a.v, 32), _mm256_srli_epi64(b.v, 32));
  return {_mm256_blend_epi32(even, odd, 0xAA)};
}
BRISK_INLINE Ints multiply_even(Ints a, Ints b) { return {_mm256_mul_epu32(a.v, b.v)}; }
BRISK_INLINE Ints odd_to_even(Ints a) { return {_mm256_shuffle_epi32(a.v, 0xF5)}; }
BRISK_INLINE Ints even_to_odd(Ints a) { return {_mm256_shuffle_epi32(a.v, 0xA0)}; }
BRISK_INLINE Ints interleave(Ints a, Ints b) { return {_mm256_blend_epi32(a.v, b.v, 0xAA)}; }
BRISK_INLINE Vec to_float(Ints a) { return {_mm256_cvtepi32_ps(a.v)}; }
BRISK_INLINE Ints to_ints(Vec a) { return {_mm256_cvtps_epi32(a.v)}; }
BRISK_INLINE Ints truncate(Vec a) { return {_mm256_cvttps_epi32(a.v)}; }

// 16-bit elements.
BRISK_INLINE Vec load_f16(const uint16_t* from) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))};
}
/// To nearest, ties to even.
BRISK_INLINE void store_f16(uint16_t* to, Vec a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm256_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
BRISK_INLINE Ints load_halves(const uint16_t* from) {
  return {_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)))};
}
/// The low 16 bits of each lane, which must have no others.
BRISK_INLINE void store_halves(uint16_t* to, Ints a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to),
                   _mm_packus_epi32(_mm256_castsi256_si128(a.v), _mm256_extracti128_si256(a.v, 1)));
}

// Across lanes.
BRISK_INLINE Quad fold(Vec a) { return {_mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1))}; }
BRISK_INLINE void store4(float* to, Quad a) { _mm_storeu_ps(to, a.v); }
BRISK_INLINE void add4(float* to, Quad a) { _mm_storeu_ps(to, _mm_add_ps(_mm_loadu_ps(to), a.v)); }
BRISK_INLINE Quad sum4(Vec a, Vec b, Vec c, Vec d) {
  const __m256 ac = _mm256_add_ps(_mm256_unpacklo_ps(a.v, c.v), _mm256_unpackhi_ps(a.v, c.v));
  const __m256 bd = _mm256_add_ps(_mm256_unpacklo_ps(b.v, d.v), _mm256_unpackhi_ps(b.v, d.v));
  return fold({_mm256_add_ps(_mm256_unpacklo_ps(ac, bd), _mm256_unpackhi_ps(ac, bd))});
}

BRISK_INLINE double sum_double(Vec a) {
  const __m256d four =
      _mm256_add_pd(_mm256_cvtps_pd(_mm256_castps256_ps128(a.v)), _mm256_cvtps_pd(_mm256_extractf128_ps(a.v, 1)));
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

BRISK_INLINE void transpose(Vec (&r)[kLanes]) {
  __m256 t[8];
  BRISK_UNROLL for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i].v, r[2 * i + 1].v);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i].v, r[2 * i + 1].v);
  }
  __m256 u[8];
  BRISK_UNROLL for (int i = 0; i < 2; ++i) {
    BRISK_UNROLL for (int half = 0; half < 2; ++half) {
      const __m256d low = _mm256_castps_pd(t[4 * i + half]);
      const __m256d high = _mm256_castps_pd(t[4 * i + 2 + half]);
      u[4 * i + 2 * half] = _mm256_castpd_ps(_mm256_unpacklo_pd(low, high));
      u[4 * i + 2 * half + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(low, high));
    }
  }
  // u[4 i + c]: half q holds column 4 q + c of rows 4 i .. 4 i + 3.
  BRISK_UNROLL for (int c = 0; c < 4; ++c) {
    r[c].v = _mm256_permute2f128_ps(u[c], u[4 + c], 0x20);
    r[4 + c].v = _mm256_permute2f128_ps(u[c], u[4 + c], 0x31);
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
