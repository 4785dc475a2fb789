// The kernel body of all matrix kernels: one tile of d = A B. Tiles of A and B go through kStages buffers in shared
// memory by asynchronous copies; fragments of the next step are read while the tensor cores work on this one's. Blocks
// are numbered so that those that run together share rows and columns in the L2 cache.
//   block (x, y, z): tile x, slice y of k, part z
#pragma once

#include "kernels/matrix/output.h"
#include "kernels/matrix/tile.h"

namespace brisk::kernels {

struct TilePosition {
  int row, column;  ///< in tiles
};

/// Columns first within bands of eight rows of tiles.
__device__ __forceinline__ TilePosition tile_position(int index, int row_tiles, int column_tiles) {
  constexpr int kBand = 8;
  const int band = index / (kBand * column_tiles), rest = index - band * kBand * column_tiles;
  const int rows = min(kBand, row_tiles - band * kBand);
  return {band * kBand + rest % rows, rest / rows};
}

template <class Math>
inline constexpr int kStageElements = (Math::kM + Math::kN) * kTileK<typename Math::T>;
template <class Math>
inline constexpr int kPipelineBytes = kStages* kStageElements<Math>* static_cast<int>(sizeof(typename Math::T));
/// Dynamic shared memory of a block: the sums lie where the operands were.
template <class Math>
inline constexpr int kSharedBytes =
    kPipelineBytes<Math> > Math::kM* Math::kN * 4 ? kPipelineBytes<Math> : Math::kM* Math::kN * 4;

/// Adds the products of tiles [first, last) of k.
template <class Math, class A, class B>
__device__ __forceinline__ void main_loop(Math& math, const A& a, const B& b, typename Math::T* shared, int first,
                                          int last) {
  using T = typename Math::T;
  constexpr int kA = Math::kM * kTileK<T>;
  const auto stage = [&](int index) { return shared + index * kStageElements<Math>; };
  const auto copy = [&](int to, int tile) {
    if (tile < last) {
      a.copy(stage(to), tile * kTileK<T>);
      b.copy(stage(to) + kA, tile * kTileK<T>);
    }
    async_copy_commit();  // an empty group too: the waits count groups
  };
  const auto fetch = [&](int buffer, int from, int step) { math.fetch(buffer, stage(from), stage(from) + kA, step); };
  const auto next = [](int index) { return index + 1 == kStages ? 0 : index + 1; };
  const auto arrive = [] {  // the oldest tile under way is there, and nobody reads the one before it
    async_copy_wait<kStages - 2>();
    __syncthreads();
  };

#pragma unroll
  for (int s = 0; s < kStages - 1; ++s) copy(s, first + s);
  int read = 0, write = kStages - 1;
  if constexpr (Math::kBuffers == 1) {
    for (int tile = first; tile < last; ++tile) {
      arrive();
      copy(write, tile + kStages - 1);
      write = next(write);
#pragma unroll
      for (int step = 0; step < Math::kSteps; ++step) {
        fetch(0, read, step);
        math.multiply(0);
      }
      read = next(read);
    }
  } else {
    static_assert(Math::kSteps % 2 == 0, "the buffers alternate over the end of a tile");
    arrive();
    fetch(0, read, 0);
    for (int tile = first; tile < last; ++tile) {
#pragma unroll
      for (int step = 0; step < Math::kSteps; ++step) {
        if (step == Math::kSteps - 1) {
          arrive();
          read = next(read);
        }
        fetch((step + 1) % 2, read, (step + 1) % Math::kSteps);  // behind the last tile: read, but not multiplied
        if (step == 0) {
          copy(write, tile + kStages - 1);
          write = next(write);
        }
        math.multiply(step % 2);
      }
    }
  }
  __syncthreads();
}

/// What a block needs besides its operands. k_tiles: of the whole sum; part: index of the first tile's partial sums.
template <class Math, class A, class B, class Row>
__device__ __forceinline__ void matrix_tile(const typename A::Parameters& a, const typename B::Parameters& b,
                                            const Output& output, const Row& row_of, int k_tiles) {
  using T = typename Math::T;
  BRISK_DYNAMIC_SHARED(T, shared);
  const TilePosition at = tile_position(blockIdx.x, output.row_tiles, output.column_tiles);
  if (at.row * Math::kM >= row_of.rows) return;  // a part with fewer rows than the largest
  const int slice = (k_tiles + output.slices - 1) / output.slices;
  const int first = min(slice * static_cast<int>(blockIdx.y), k_tiles), last = min(first + slice, k_tiles);
  Math math;
  main_loop(math, A(a, at.row * Math::kM), B(b, at.column * Math::kN), shared, first, last);
  auto* sums = reinterpret_cast<float*>(shared);
  math.spill([&](int row, int column, auto... sum) {
    const Pack<float, sizeof...(sum)> pack = {{sum...}};
    store(sums + staged<Math::kN>(row, column), pack);
  });
  __syncthreads();
  if (output.slices > 1) {
    const int tile = blockIdx.z * gridDim.x + blockIdx.x;
    if (!join_slices<Math::kM, Math::kN, Math::kThreads>(sums, output, tile)) return;
  }
  write_tile<T, Math::kM, Math::kN, Math::kThreads>(sums, output, row_of, at.row, at.column * Math::kN);
}

}  // namespace brisk::kernels
