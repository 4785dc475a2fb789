// Random words as a pure function of (key, attempt, sample, element): Philox4x32-10, a counter-based generator. Source:
// Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <cstdint>

#include "brisk/kernels/run_state.h"
#include "kernels/common/cuda.h"

namespace brisk::kernels {

struct PhiloxBlock {
  uint32_t word[4];
};

/// The key's low half is the paper's first key word.
__device__ __forceinline__ PhiloxBlock philox(uint64_t key, uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3) {
  uint32_t key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * c0, product1 = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ key0;
    c1 = static_cast<uint32_t>(product1);
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ key1;
    c3 = static_cast<uint32_t>(product0);
    key0 += 0x9E3779B9;  // golden ratio
    key1 += 0xBB67AE85;  // sqrt(3) - 1
  }
  return {{c0, c1, c2, c3}};
}

/// The words of elements 4 quarter .. 4 quarter + 3 of a sample of this micro-batch.
__device__ __forceinline__ PhiloxBlock philox(uint64_t key, const RunState& run, int64_t sample, int64_t quarter) {
  return philox(key, static_cast<uint32_t>(run.attempt), static_cast<uint32_t>(run.attempt >> 32),
                static_cast<uint32_t>(run.first_sample + sample), static_cast<uint32_t>(quarter));
}

/// Where an element stands among those of its sample when channels come first; a sample is images of `positions` x
/// `channels` elements.
__device__ __forceinline__ int64_t channels_first(int64_t element, int64_t channels, int64_t positions) {
  if (positions == 1 || channels == 1) return element;
  const int64_t image = element / (channels * positions), inside = element % (channels * positions);
  return image * channels * positions + inside % channels * positions + inside / channels;
}

/// Element k of a block, k known at run time.
__device__ __forceinline__ uint32_t pick(const PhiloxBlock& block, int64_t k) {
  return k == 0 ? block.word[0] : k == 1 ? block.word[1] : k == 2 ? block.word[2] : block.word[3];
}

}  // namespace brisk::kernels
