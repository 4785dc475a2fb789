// The one place where the host chooses a tile and the slices of k, from sizes alone: no device is asked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "brisk/kernels/gemm.h"
#include "brisk/kernels/stream.h"
#include "kernels/common/options.h"

namespace brisk::kernels {

inline constexpr int kChunksAlongK = 4;  ///< 16-byte chunks of a tile's slice of k

inline constexpr int64_t kMaximumExtent = INT32_MAX - 1024;  ///< tiles may reach beyond it by a few hundred
inline constexpr int64_t kMaximumSlices = 64;

struct MatrixSizes {
  bool aligned = true;  ///< all rows begin at multiples of 16 bytes
  DType dtype = DType::f32;
  int64_t k = 0, m = 0, n = 0;
  int64_t parts = 1;  ///< products of these sizes that one launch computes
  int processors = 132;
  int split_k = 0;
  MatrixTile tile = MatrixTile::automatic;
};

struct MatrixChoice {
  MatrixTile tile = MatrixTile::automatic;
  int64_t rows = 0, columns = 0;  ///< of a tile
  int64_t row_tiles = 0, column_tiles = 0, k_tiles = 0;
  int64_t slices = 1;
  int64_t tiles() const { return row_tiles * column_tiles; }
  int64_t workspace_bytes(int64_t parts) const {
    return slices == 1 ? 0 : parts * tiles() * slices * rows * columns * static_cast<int64_t>(sizeof(float));
  }
};

inline int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

inline MatrixChoice with_tile(const MatrixSizes& sizes, MatrixTile tile) {
  MatrixChoice choice;
  choice.tile = tile;
  choice.rows = tile == MatrixTile::m64n64 ? 64 : 128;
  choice.columns = tile == MatrixTile::m128n128 ? 128 : 64;
  choice.row_tiles = ceil_divide(sizes.m, choice.rows);
  choice.column_tiles = ceil_divide(sizes.n, choice.columns);
  choice.k_tiles = ceil_divide(sizes.k, kChunksAlongK * 16 / size_of(sizes.dtype));
  return choice;
}

/// Modelled cycles of a launch. A multiprocessor does about 1024 multiplications a cycle on large tiles, fewer on small
/// ones, which read more shared memory for each; a step of k takes a latency at least; slices are added by one block a
/// tile.
inline int64_t modelled_cycles(const MatrixSizes& sizes, const MatrixChoice& choice) {
  constexpr int64_t kStepLatency = 300, kBlockCycles = 2000, kMeetingCycles = 2000, kBytesPerCycle = 48;
  const int64_t step = choice.rows * choice.columns /
                       (choice.tile == MatrixTile::m128n128  ? 32
                        : choice.tile == MatrixTile::m128n64 ? 28
                                                             : 22);
  const int64_t blocks = choice.tiles() * sizes.parts * choice.slices;
  const int64_t rounds = ceil_divide(blocks, sizes.processors);
  const int64_t steps = ceil_divide(choice.k_tiles, choice.slices);
  const int64_t adding =
      choice.slices == 1 ? 0 : kMeetingCycles + (choice.slices + 1) * choice.rows * choice.columns * 4 / kBytesPerCycle;
  return steps * std::max(rounds * step, kStepLatency) + ceil_divide(rounds, 2) * kBlockCycles + adding;
}

/// Without empty slices, so that what is asked for is what runs.
inline int64_t even_slices(int64_t k_tiles, int64_t slices) {
  return ceil_divide(k_tiles, ceil_divide(k_tiles, std::min(slices, k_tiles)));
}

inline MatrixChoice choose(const MatrixSizes& sizes) {
  constexpr MatrixTile kTiles[] = {MatrixTile::m128n128, MatrixTile::m128n64, MatrixTile::m64n64};
  constexpr int64_t kCounters = kCounterBytes / static_cast<int64_t>(sizeof(int32_t));
  const MatrixTile fixed = sizes.dtype == DType::f32 ? MatrixTile::m128n64
                           : !sizes.aligned          ? MatrixTile::m64n64
                                                     : sizes.tile;
  MatrixChoice best;
  int64_t best_cycles = INT64_MAX;
  for (const MatrixTile tile : kTiles) {
    if (fixed != MatrixTile::automatic && tile != fixed) continue;
    MatrixChoice choice = with_tile(sizes, tile);
    const int64_t most = sizes.split_k != 0 ? sizes.split_k
                         : choice.tiles() * sizes.parts <= kCounters
                             ? std::clamp<int64_t>(choice.k_tiles / 4, 1, kMaximumSlices)
                             : 1;
    for (int64_t slices = sizes.split_k != 0 ? most : 1; slices <= most; ++slices) {
      choice.slices = even_slices(choice.k_tiles, slices);
      const int64_t cycles = modelled_cycles(sizes, choice);
      if (cycles < best_cycles) best = choice, best_cycles = cycles;
    }
  }
  return best;
}

/// Widest loads of rows of `columns` elements, in bytes.
inline int unit_of(DType dtype, int64_t columns) {
  const int64_t bytes = columns * (dtype == DType::f32 ? 4 : 2);
  return bytes % 16 == 0 ? 16 : bytes % 4 == 0 ? 4 : 2;
}

/// "kernels::gemm" + ".m"
class OptionNames {
 public:
  explicit OptionNames(const char* launcher) : launcher_(launcher) {}
  std::string operator()(const char* option) const { return std::string(launcher_) + "." + option; }
  const char* launcher() const { return launcher_; }

 private:
  const char* launcher_;
};

inline void check_matrix(const OptionNames& names, const MatrixSizes& sizes) {
  check_float(sizes.dtype, names("dtype").c_str());
  check_option(sizes.processors >= 1, names("processors").c_str(), sizes.processors, "must be 1 or more");
  check_option(sizes.split_k >= 0 && sizes.split_k <= kMaximumSlices, names("split_k").c_str(), sizes.split_k,
               "must be 0 (chosen by the sizes) to 64");
}

}  // namespace brisk::kernels
