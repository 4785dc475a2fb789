// A tile of 4 x 4 results stays in registers over the whole inner dimension.
#include "backend/cpu/kernels/matmul.h"

#include <algorithm>

#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

/// Element `at` in all lanes, or a vector of samples.
template <bool kBatched>
BRISK_INLINE Vec element(const float* x, int64_t at) {
  if constexpr (kBatched) {
    return load(x + at * kLanes);
  } else {
    return set1(x[at]);
  }
}

template <bool kA, bool kB, int kRows, int kColumns>
BRISK_INLINE void tile(const Matmul& s, const float* a, const float* b, float* c, int64_t i, int64_t j) {
  Vec sum[kRows][kColumns];
  BRISK_UNROLL for (int r = 0; r < kRows; ++r) { BRISK_UNROLL for (int q = 0; q < kColumns; ++q) sum[r][q] = zero(); }
  for (int64_t k = 0; k < s.k; ++k) {
    Vec right[kColumns];
    BRISK_UNROLL for (int q = 0; q < kColumns; ++q) { right[q] = element<kB>(b, k * s.b_row + (j + q) * s.b_column); }
    BRISK_UNROLL for (int r = 0; r < kRows; ++r) {
      const Vec left = element<kA>(a, (i + r) * s.a_row + k * s.a_column);
      BRISK_UNROLL for (int q = 0; q < kColumns; ++q) sum[r][q] = fma(left, right[q], sum[r][q]);
    }
  }
  BRISK_UNROLL for (int r = 0; r < kRows; ++r) {
    BRISK_UNROLL for (int q = 0; q < kColumns; ++q) {
      const int64_t at = (i + r) * s.p + j + q;
      if constexpr (kA || kB) {
        store(c + at * kLanes, sum[r][q]);
      } else {
        store_first(c + at, sum[r][q], 1);
      }
    }
  }
}

template <bool kA, bool kB, int kRows>
void band(const Matmul& s, const float* a, const float* b, float* c, int64_t i) {
  constexpr int kColumns = kLanes == 16 ? 4 : 2;
  int64_t j = 0;
  for (; j + kColumns <= s.p; j += kColumns) tile<kA, kB, kRows, kColumns>(s, a, b, c, i, j);
  for (; j < s.p; ++j) tile<kA, kB, kRows, 1>(s, a, b, c, i, j);
}

template <bool kA, bool kB>
void multiply(const Matmul& s, const Operands& operands, int64_t first, int64_t last) {
  for (int64_t unit = first; unit < last; ++unit) {
    const int64_t matrix = unit / s.units_per_matrix;
    const float* a = operands.input<float>(0) + (kA ? matrix * s.m * s.k * kLanes : 0);
    const float* b = operands.input<float>(1) + (kB ? matrix * s.k * s.p * kLanes : 0);
    float* c = operands.output<float>(0) + matrix * s.m * s.p * kLanes;
    int64_t i = unit % s.units_per_matrix * s.rows_per_unit;
    const int64_t end = std::min(s.m, i + s.rows_per_unit);
    for (; i + 4 <= end; i += 4) band<kA, kB, 4>(s, a, b, c, i);
    for (; i < end; ++i) band<kA, kB, 1>(s, a, b, c, i);
  }
}

}  // namespace

void matmul(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& s = *static_cast<const Matmul*>(parameters);
  if (s.a_batched) {
    (s.b_batched ? multiply<true, true> : multiply<true, false>)(s, operands, first, last);
  } else {
    (s.b_batched ? multiply<false, true> : multiply<false, false>)(s, operands, first, last);
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
