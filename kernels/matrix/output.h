// From the sums of a tile to d, by way of shared memory, so that each thread has four neighbours of a row: k's slices
// added in order by the block that comes last, then scale, bias, residual, activation, rounding, statistics.
#pragma once

#include "brisk/kernels/activation.h"
#include "kernels/common/activation.h"
#include "kernels/common/vector.h"
#include "kernels/matrix/tile.h"

namespace brisk::kernels {

struct Output {
  void* d;
  const void* residual;
  const float* bias;
  float* statistics;
  float* partials;     ///< [tiles of all parts, slices, sums of a tile]; null: k is not split
  unsigned* counters;  ///< a tile each; zero before and after
  float alpha;
  int columns;
  int row_tiles, column_tiles;
  int slices;
  Activation activation;
  bool accumulate, low;  ///< low: d and residual are of the operands' type, else f32
  bool quads;            ///< columns are a multiple of four: four go at once
};

/// d's row is the row of the product.
struct SameRow {
  int rows;
  __device__ __forceinline__ int64_t operator()(int row) const { return row; }
};

/// The product's rows are the pixels of an image at (first + i stride): one of the parts which a stride cuts it into.
struct PartRow {
  int rows;
  FastDivide by_image, by_row;
  int height, width;
  int first[2], stride[2];
  __device__ __forceinline__ int64_t operator()(int row) const {
    const int image = by_image.quotient(row), rest = row - image * by_image.divisor;
    const int i = by_row.quotient(rest), j = rest - i * by_row.divisor;
    return (int64_t{image} * height + first[0] + i * stride[0]) * width + first[1] + j * stride[1];
  }
};

/// Sums as floats in shared memory [kM][kN]; groups of eight columns permuted so that four rows lie in different banks.
template <int kN>
__device__ __forceinline__ int staged(int row, int column) {
  return row * kN + (column ^ (row & 3) * 8);
}

/// Adds the slices of a tile into its staged sums: those of four rows and four slices are on their way at once.
template <int kM, int kN, int kThreads>
__device__ __forceinline__ void add_slices(float* sums, const float* partials, int slices) {
  constexpr int kQuads = kN / 4, kRowStep = kThreads / kQuads, kBatch = 4;
  const int local = threadIdx.x % kQuads * 4;
  for (int first = threadIdx.x / kQuads; first < kM; first += kBatch * kRowStep) {
    float4 sum[kBatch];
#pragma unroll
    for (int i = 0; i < kBatch; ++i) sum[i] = float4{0, 0, 0, 0};
    for (int slice = 0; slice < slices; slice += kBatch) {
      float4 part[kBatch][kBatch];
#pragma unroll
      for (int s = 0; s < kBatch; ++s) {
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
          const int at = (first + i * kRowStep) * kN + local;
          const float* tile = partials + int64_t{min(slice + s, slices - 1)} * (kM * kN);
          part[s][i] = __ldcg(reinterpret_cast<const float4*>(tile + at));
        }
      }
#pragma unroll
      for (int s = 0; s < kBatch; ++s) {
        if (slice + s >= slices) break;
#pragma unroll
        for (int i = 0; i < kBatch; ++i) {
          sum[i].x += part[s][i].x;
          sum[i].y += part[s][i].y;
          sum[i].z += part[s][i].z;
          sum[i].w += part[s][i].w;
        }
      }
    }
#pragma unroll
    for (int i = 0; i < kBatch; ++i) {
      *reinterpret_cast<float4*>(sums + staged<kN>(first + i * kRowStep, local)) = sum[i];
    }
  }
}

/// From the staged sums of a slice to those of the whole tile. False: another block comes later and does it.
template <int kM, int kN, int kThreads>
__device__ __forceinline__ bool join_slices(float* sums, const Output& output, int tile) {
  constexpr int kQuads = kN / 4;
  const int local = threadIdx.x % kQuads * 4;
  float* partials = output.partials + int64_t{tile} * output.slices * (kM * kN);
  float* mine = partials + int64_t{blockIdx.y} * (kM * kN);
#pragma unroll 4
  for (int row = threadIdx.x / kQuads; row < kM; row += kThreads / kQuads) {
    store(mine + row * kN + local, load<4>(sums + staged<kN>(row, local)));
  }
  __threadfence();
  __syncthreads();
  auto* last = reinterpret_cast<bool*>(sums);
  if (threadIdx.x == 0) {
    const auto slices = static_cast<unsigned>(output.slices);
    *last = atomicInc(output.counters + tile, slices - 1) == slices - 1;
  }
  __syncthreads();
  const bool all = *last;
  __syncthreads();
  if (!all) return false;
  __threadfence();
  add_slices<kM, kN, kThreads>(sums, partials, output.slices);
  return true;  // a thread goes on with the sums that it has added itself
}

/// Elements at + 0 to at + count - 1 of d's type; the others are zero.
template <class T>
__device__ __forceinline__ void read_four(float (&to)[4], const void* from, int64_t at, int count, bool low,
                                          bool quads) {
  const auto read = [&](auto* elements) {
    if (quads) {
      load_floats(elements + at, to);
      return;
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) to[e] = e < count ? to_float(elements[at + e]) : 0;
  };
  if (low) {
    read(static_cast<const T*>(from));
  } else {
    read(static_cast<const float*>(from));
  }
}

/// Writes them, and leaves in x what was written, after rounding.
template <class T>
__device__ __forceinline__ void write_four(float (&x)[4], T* to, int count, bool quads) {
  Pack<T, 4> four;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    four.element[e] = from_float<T>(x[e]);
    x[e] = to_float(four.element[e]);
  }
  if (quads) {
    store(to, four);
    return;
  }
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    if (e < count) to[e] = four.element[e];
  }
}

/// What the thread's four columns sum up to, for the statistics.
struct ColumnSums {
  float sum[4] = {}, square[4] = {};
};

/// Adds the threads' sums, in order, and writes those of the row tile. `scratch`: shared memory that nobody reads.
template <int kN, int kThreads>
__device__ __forceinline__ void write_statistics(const ColumnSums& mine, const Output& output, int row_tile, int n0,
                                                 float* scratch) {
  constexpr int kQuads = kN / 4, kRowStep = kThreads / kQuads;
  const int quad = threadIdx.x % kQuads, first = threadIdx.x / kQuads;
#pragma unroll
  for (int e = 0; e < 4; ++e) {
    scratch[(first * 2) * kN + quad * 4 + e] = mine.sum[e];
    scratch[(first * 2 + 1) * kN + quad * 4 + e] = mine.square[e];
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 2 * kN; i += kThreads) {
    const int column = n0 + i % kN;
    if (column >= output.columns) continue;
    float total = 0;
    for (int part = 0; part < kRowStep; ++part) total += scratch[part * 2 * kN + i];
    output.statistics[(int64_t{row_tile} * 2 + i / kN) * output.columns + column] = total;
  }
}

/// Writes a tile of d from its staged sums.
template <class T, int kM, int kN, int kThreads, class Row>
__device__ __forceinline__ void write_tile(float* sums, const Output& output, const Row& row_of, int row_tile, int n0) {
  constexpr int kQuads = kN / 4;
  const int local = threadIdx.x % kQuads * 4, column = n0 + local, count = output.columns - column;
  ColumnSums totals;
  float bias[4] = {};
  if (output.bias != nullptr) {
#pragma unroll
    for (int e = 0; e < 4; ++e) bias[e] = e < count ? output.bias[column + e] : 0;
  }
  const int rows = row_of.rows - row_tile * kM;
#pragma unroll 4
  for (int row = threadIdx.x / kQuads; row < kM; row += kThreads / kQuads) {
    if (row >= rows || count <= 0) break;
    const int64_t at = row_of(row_tile * kM + row) * output.columns + column;
    const Pack<float, 4> sum = load<4>(sums + staged<kN>(row, local));
    float x[4], other[4];
#pragma unroll
    for (int e = 0; e < 4; ++e) x[e] = output.alpha * sum.element[e] + bias[e];
    if (output.residual != nullptr) {
      read_four<T>(other, output.residual, at, count, output.low, output.quads);
#pragma unroll
      for (int e = 0; e < 4; ++e) x[e] += other[e];
    }
    if (output.accumulate) {
      read_four<float>(other, output.d, at, count, false, output.quads);
#pragma unroll
      for (int e = 0; e < 4; ++e) x[e] += other[e];
    }
    if (output.activation != Activation::none) {
#pragma unroll
      for (int e = 0; e < 4; ++e) x[e] = activate(output.activation, x[e]);
    }
    if (output.low) {
      write_four(x, static_cast<T*>(output.d) + at, count, output.quads);
    } else {
      write_four(x, static_cast<float*>(output.d) + at, count, output.quads);
    }
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      totals.sum[e] += x[e];
      totals.square[e] += x[e] * x[e];
    }
  }
  if (output.statistics == nullptr) return;
  __syncthreads();
  write_statistics<kN, kThreads>(totals, output, row_tile, n0, sums);
}

}  // namespace brisk::kernels
