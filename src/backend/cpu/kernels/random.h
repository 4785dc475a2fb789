// Philox4x32-10 (core/philox.h says more), one stream position a lane.
#pragma once

#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {

/// One round on the values in the even lanes of counter[0..3]; the odd lanes hold whatever products leave there.
BRISK_INLINE void philox_round(Ints multiplier0, Ints multiplier1, Ints key0, Ints key1, Ints (&counter)[4]) {
  const Ints product0 = multiply_even(multiplier0, counter[0]);
  const Ints product1 = multiply_even(multiplier1, counter[2]);
  counter[0] = odd_to_even(product1) ^ counter[1] ^ key0;
  counter[1] = product1;
  counter[2] = odd_to_even(product0) ^ counter[3] ^ key1;
  counter[3] = product0;
}

/// counter[0..3] become the four words of the block. Products are 64 bits wide, so even and odd lanes go apart.
BRISK_INLINE void philox(uint64_t key, Ints (&counter)[4]) {
  const Ints multiplier0 = set1_int(static_cast<int32_t>(0xD2511F53u));
  const Ints multiplier1 = set1_int(static_cast<int32_t>(0xCD9E8D57u));
  const Ints step0 = set1_int(static_cast<int32_t>(0x9E3779B9u));
  const Ints step1 = set1_int(static_cast<int32_t>(0xBB67AE85u));
  Ints key0 = set1_int(static_cast<int32_t>(key));
  Ints key1 = set1_int(static_cast<int32_t>(key >> 32));
  Ints odd[4];
  BRISK_UNROLL for (int i = 0; i < 4; ++i) odd[i] = odd_to_even(counter[i]);
  for (int round = 0; round < 10; ++round) {
    philox_round(multiplier0, multiplier1, key0, key1, counter);
    philox_round(multiplier0, multiplier1, key0, key1, odd);
    key0 = key0 + step0;
    key1 = key1 + step1;
  }
  BRISK_UNROLL for (int i = 0; i < 4; ++i) counter[i] = interleave(counter[i], even_to_odd(odd[i]));
}

/// Lanes whose unsigned word is at least `threshold`.
BRISK_INLINE Mask at_least(Ints word, uint32_t threshold) {
  const Ints flip = set1_int(INT32_MIN);
  return ~(set1_int(static_cast<int32_t>(threshold ^ 0x80000000u)) > (word ^ flip));
}

}  // namespace brisk::backend::cpu::BRISK_ISA
