// Sums of many vectors, in orders that depend on their number alone.
#pragma once

#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {

/// A sum that carries along what its roundings lost (Kahan, 1965), so that its error does not grow with the count.
struct RunningSum {
  Vec sum = zero(), lost = zero();
  BRISK_INLINE void add(Vec term) {
    const Vec corrected = term - lost;
    const Vec next = sum + corrected;
    const Vec rounding = (next - sum) - corrected;
    lost = select(is_nan(rounding), zero(), rounding);  // an infinite sum stays infinite
    sum = next;
  }
};

struct TwoSums {
  Vec first, second;
};
/// add(i, sums) for i = 0 .. count - 1, into two pairs of sums by turns.
template <class F>
BRISK_INLINE TwoSums two_sums_of(int64_t count, F add) {
  TwoSums even = {zero(), zero()}, odd = {zero(), zero()};
  int64_t i = 0;
  for (; i + 2 <= count; i += 2) {
    add(i, even);
    add(i + 1, odd);
  }
  if (i < count) add(i, even);
  return {even.first + odd.first, even.second + odd.second};
}

/// Sum of f(0) .. f(count - 1): four running sums, so that additions overlap and errors grow a quarter as fast.
template <class F>
BRISK_INLINE Vec sum_of(int64_t count, F f) {
  Vec part[4] = {zero(), zero(), zero(), zero()};
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    BRISK_UNROLL for (int k = 0; k < 4; ++k) part[k] += f(i + k);
  }
  for (; i < count; ++i) part[0] += f(i);
  return (part[0] + part[2]) + (part[1] + part[3]);
}

}  // namespace brisk::backend::cpu::BRISK_ISA
