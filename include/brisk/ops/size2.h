// brisk/ops/size2.h: a height and a width.
#pragma once

#include <cstdint>

namespace brisk {

/// Height and width: from one number for both (`.kernel = 3`) or from two (`.kernel = {3, 5}`).
struct Size2 {
  constexpr Size2(int64_t both) : height(both), width(both) {}  // NOLINT: a number is a square
  constexpr Size2(int64_t h, int64_t w) : height(h), width(w) {}
  friend constexpr bool operator==(const Size2&, const Size2&) = default;
  int64_t height = 0;
  int64_t width = 0;
};

}  // namespace brisk
