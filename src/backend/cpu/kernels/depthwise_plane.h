// What the depthwise kernels share: constants for kernel and stride, rows that end in zeros.
#pragma once

#include <type_traits>

#include "backend/cpu/kernels/depthwise.h"
#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {

/// Pixel `column` of a row of `width`: kEdge: zeros where the row has none, without a branch.
template <bool kEdge>
BRISK_INLINE Vec load_pixel(const float* row, int64_t column, int64_t width) {
  alignas(64) static constexpr float kNothing[kLanes] = {};
  if constexpr (kEdge) {
    return load(static_cast<uint64_t>(column) < static_cast<uint64_t>(width) ? row + column * kLanes : kNothing);
  } else {
    return load(row + column * kLanes);
  }
}

template <int kValue>
using Constant = std::integral_constant<int, kValue>;

/// Calls body with kernel and stride as constants.
template <class Body>
BRISK_INLINE void with_kernel(const Depthwise& p, const Body& body) {
  if (p.kernel == 3) {
    p.stride == 1 ? body(Constant<3>(), Constant<1>()) : body(Constant<3>(), Constant<2>());
  } else {
    p.stride == 1 ? body(Constant<5>(), Constant<1>()) : body(Constant<5>(), Constant<2>());
  }
}

/// Covers [0, size) with tiles: as many as fit of the widest kind that does, the last one overlapping its neighbour
/// (which computes the same), since a narrow tile is slower than a few pixels computed twice. Calls tile(width, first).
template <int kWidest, class Tile>
BRISK_INLINE void for_tiles(int64_t size, const Tile& tile) {
  if (size >= kWidest) {
    for (int64_t first = 0; first + kWidest <= size; first += kWidest) tile(Constant<kWidest>(), first);
    if (size % kWidest != 0) tile(Constant<kWidest>(), size - kWidest);
  } else if constexpr (kWidest > 1) {
    for_tiles<kWidest / 2>(size, tile);
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
