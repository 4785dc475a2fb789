// Philox4x32-10 (core/philox.h says more), one stream position a lane.
#pragma once

#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {

/// counter[0..3] become the four words of the block.
BRISK_INLINE void philox(uint64_t key, Ints (&counter)[4]) {
  const Ints multiplier0 = set1_int(static_cast<int32_t>(0xD2511F53u));
  const Ints multiplier1 = set1_int(static_cast<int32_t>(0xCD9E8D57u));
  auto key0 = static_cast<uint32_t>(key);
  auto key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const Ints high0 = multiply_high(multiplier0, counter[0]);
    const Ints low0 = multiplier0 * counter[0];
    const Ints high1 = multiply_high(multiplier1, counter[2]);
    const Ints low1 = multiplier1 * counter[2];
    counter[0] = high1 ^ counter[1] ^ set1_int(static_cast<int32_t>(key0));
    counter[1] = low1;
    counter[2] = high0 ^ counter[3] ^ set1_int(static_cast<int32_t>(key1));
    counter[3] = low0;
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
}

/// Lanes whose unsigned word is at least `threshold`.
BRISK_INLINE Mask at_least(Ints word, uint32_t threshold) {
  const Ints flip = set1_int(INT32_MIN);
  return ~(set1_int(static_cast<int32_t>(threshold ^ 0x80000000u)) > (word ^ flip));
}

}  // namespace brisk::backend::cpu::BRISK_ISA
