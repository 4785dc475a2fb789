// Ranges of indices, and the even cutting of work into them.
#pragma once

#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {

/// [first, last).
struct Range {
  int64_t first = 0, last = 0;
  BRISK_INLINE int64_t size() const { return last - first; }
};

/// Piece i of [0, size) cut into `pieces` of even size.
BRISK_INLINE Range piece(int64_t size, int64_t pieces, int64_t i) {
  return {size * i / pieces, size * (i + 1) / pieces};
}

/// Piece i of [0, size) cut into pieces of `length`, the last one shorter.
BRISK_INLINE Range stretch(int64_t size, int64_t length, int64_t i) {
  const int64_t first = i * length, last = first + length;
  return {first, last < size ? last : size};
}

/// Lanes that hold samples in image `image`, when a block of samples has `images_per_block` images.
BRISK_INLINE int64_t valid_count(int64_t samples, int64_t images_per_block, int64_t image) {
  const int64_t left = samples - image / images_per_block * kLanes;
  return left < kLanes ? left : kLanes;
}

}  // namespace brisk::backend::cpu::BRISK_ISA
