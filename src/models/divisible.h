// The rule by which networks with a width multiplier round their channels.
#pragma once

#include <algorithm>
#include <cstdint>

namespace brisk::models {

/// `channels` to the nearest multiple of 8, at least 8, and the next one where that would lose more than a tenth
/// (MobileNet's rule, as in torchvision).
inline int64_t divisible(double channels) {
  constexpr int64_t kDivisor = 8;
  const int64_t nearest = static_cast<int64_t>(channels + kDivisor / 2) / kDivisor * kDivisor;
  const int64_t rounded = std::max(kDivisor, nearest);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + kDivisor : rounded;
}

}  // namespace brisk::models
