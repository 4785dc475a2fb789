// Tiles of operands in shared memory. A row of a tile is either a slice of 64 bytes along k ("along k": 4 chunks of 16
// bytes), or the tile's whole extent at one k. Chunks are permuted in their row (XOR with the row), so that the eight
// rows which ldmatrix reads at once, and the eight chunks which eight threads write, lie in different banks.
#pragma once

#include <cstdint>

#include "kernels/common/async_copy.h"
#include "kernels/common/cuda.h"
#include "kernels/common/vector.h"
#include "kernels/matrix/choose.h"

namespace brisk::kernels {

inline constexpr int kStages = 4;  ///< tiles in shared memory: three under way while one is multiplied
template <class T>
inline constexpr int kChunk = 16 / static_cast<int>(sizeof(T));  ///< elements
template <class T>
inline constexpr int kTileK = kChunksAlongK* kChunk<T>;  ///< extent of a tile along k

/// Index of a chunk in a tile whose rows have `kChunks` chunks.
template <int kChunks>
__device__ __forceinline__ int swizzle(int row, int chunk) {
  static_assert(kChunks == 4 || kChunks % 8 == 0, "rows of 4 chunks lie two in a line of banks");
  return row * kChunks + (kChunks == 4 ? chunk ^ (row >> 1 & 3) : chunk ^ (row & 7));
}

/// The chunks of a tile that one thread copies: rows first_row(), first_row() + kRowStep, ..., all at chunk().
template <class T, int kExtent, int kThreads, bool kAlongK>
struct Share {
  static constexpr int kRowChunks = kAlongK ? kChunksAlongK : kExtent / kChunk<T>;
  static constexpr int kRows = kAlongK ? kExtent : kTileK<T>;
  static constexpr int kRowStep = kThreads / kRowChunks;
  static constexpr int kCount = kRows / kRowStep;
  static_assert(kThreads % kRowChunks == 0 && kRows % kRowStep == 0, "the chunks do not divide among the threads");

  static __device__ __forceinline__ int first_row() { return static_cast<int>(threadIdx.x) / kRowChunks; }
  static __device__ __forceinline__ int element() { return static_cast<int>(threadIdx.x) % kRowChunks * kChunk<T>; }
  /// Where the thread's chunk j goes.
  static __device__ __forceinline__ T* place(T* tile, int j) {
    return tile + swizzle<kRowChunks>(first_row() + j * kRowStep, element() / kChunk<T>) * kChunk<T>;
  }
};

/// Copies a chunk. at(e) is the address of its element e, or null where that is zero. `unit` is how many bytes lie
/// together and are aligned, the same for all chunks of an operand: 16, 4, or 2. kAligned: it is 16. `any` is some
/// global address.
template <bool kAligned, class T, class At>
__device__ __forceinline__ void copy_chunk(T* to, int unit, const T* any, At at) {
  if (kAligned || unit == 16) {
    const T* from = at(0);
    async_copy<16>(to, from != nullptr ? from : any, from != nullptr ? 16 : 0);
  } else if (sizeof(T) == 4 || unit == 4) {
    constexpr int kWord = 4 / static_cast<int>(sizeof(T));
#pragma unroll
    for (int e = 0; e < kChunk<T>; e += kWord) {
      const T* from = at(e);
      async_copy<4>(to + e, from != nullptr ? from : any, from != nullptr ? 4 : 0);
    }
  } else {
    Pack<T, kChunk<T>> chunk;
#pragma unroll
    for (int e = 0; e < kChunk<T>; ++e) {
      const T* from = at(e);
      chunk.element[e] = from != nullptr ? *from : from_float<T>(0);
    }
    store(to, chunk);
  }
}

/// Division by a number known when launching, exact for 0 <= n < 2^31 (Granlund and Montgomery, 1994).
struct FastDivide {
  FastDivide() = default;
  explicit FastDivide(int64_t by) : divisor(static_cast<int32_t>(by)) {
    while ((int64_t{1} << shift) < by) ++shift;
    multiplier = static_cast<uint32_t>(((uint64_t{1} << (31 + shift)) + static_cast<uint64_t>(by) - 1) /
                                       static_cast<uint64_t>(by));
  }
  __device__ __forceinline__ int quotient(int n) const {
    return static_cast<int>(__umulhi(static_cast<uint32_t>(n) << 1, multiplier) >> shift);
  }

  int32_t divisor = 1;
  uint32_t multiplier = 1u << 31;
  int32_t shift = 0;
};

}  // namespace brisk::kernels
