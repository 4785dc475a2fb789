// Philox4x32-10, a counter-based random generator: a pure function of (key, counter), so streams need no state.
// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string_view>

namespace brisk {

using PhiloxBlock = std::array<uint32_t, 4>;

/// Four independent 32-bit words for each counter. The key's low half is the paper's first key word.
constexpr PhiloxBlock philox(uint64_t key, PhiloxBlock counter) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;  // golden ratio
  constexpr uint32_t kWeyl1 = 0xBB67AE85;  // sqrt(3) - 1
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key0, static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key1, static_cast<uint32_t>(product0)};
    key0 += kWeyl0;
    key1 += kWeyl1;
  }
  return counter;
}

/// The counter of training's streams: element / 4 of one sample of the global window of one attempt. The words of the
/// block belong to elements 4 q .. 4 q + 3.
constexpr PhiloxBlock philox_counter(uint64_t attempt, uint32_t sample, uint32_t element_quarter) {
  return {static_cast<uint32_t>(attempt), static_cast<uint32_t>(attempt >> 32), sample, element_quarter};
}

/// A bijection of 64-bit words that spreads each bit over all (the finalizer of splitmix64).
constexpr uint64_t spread(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

/// The same on every machine and for ever: FNV-1a of the bytes, then spread.
constexpr uint64_t hash_name(std::string_view name) {
  uint64_t hash = 0xCBF29CE484222325;
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  return spread(hash);
}

/// The key of a stream: neither seeds nor names that are close give keys that are.
constexpr uint64_t mix(uint64_t seed, uint64_t hash) { return spread(spread(seed + 0x9E3779B97F4A7C15) ^ hash); }

/// [0, 1) in steps of 2^-24.
constexpr float uniform(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24f; }

/// word < bernoulli_threshold(p) with probability p, exact to 2^-32; p in [0, 1].
constexpr uint64_t bernoulli_threshold(double p) { return static_cast<uint64_t>(p * 0x1p32); }
constexpr bool bernoulli(uint32_t word, double p) { return word < bernoulli_threshold(p); }

/// Two independent standard normal values from two words (Box and Muller, 1958), computed in double.
inline std::array<float, 2> normal(uint32_t word0, uint32_t word1) {
  const double radius = std::sqrt(-2.0 * std::log((word0 + 0.5) * 0x1p-32));
  const double angle = 6.283185307179586 * (word1 * 0x1p-32);
  return {static_cast<float>(radius * std::cos(angle)), static_cast<float>(radius * std::sin(angle))};
}

}  // namespace brisk
