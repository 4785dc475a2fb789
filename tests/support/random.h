// Numbers for tests: the same on every machine, unlike the distributions of the standard library.
#pragma once

#include <cstdint>

namespace brisk::test {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9E3779B97F4A7C15 + 1) {}
  uint64_t word() {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    const uint64_t x = (state_ ^ (state_ >> 31)) * 0xBF58476D1CE4E5B9;
    return x ^ (x >> 29);
  }
  /// A float in [low, high).
  double uniform(double low, double high) {
    return static_cast<float>(low + (high - low) * static_cast<double>(word() >> 40) / 16777216.0);
  }
  /// 0 .. count - 1.
  int64_t below(int64_t count) { return static_cast<int64_t>(word() >> 16) % count; }

 private:
  uint64_t state_;
};

}  // namespace brisk::test
