// Reductions of a warp, of a block, of rows and of columns, in an order that sizes alone decide: the same bits each
// run.
//
//   warp_reduce(value, join)            all lanes get the result; join(a, b) has a from the lower lane
//   row_reduce<kThreads>(value, join)   the same for the 32 or 256 threads that share a row
//   finish_columns<Kind>(...)           sums and the like over the rows of [outer, rows, columns]: lanes, then warps,
//   then
//                                       slices of rows, which the last block to arrive joins in their order
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#include "kernels/common/check.h"
#include "kernels/common/columns.h"
#include "kernels/common/cuda.h"
#include "kernels/common/vector.h"

namespace brisk::kernels {

constexpr int kWarpThreads = 32;

struct Add {
  template <class T>
  __device__ __forceinline__ T operator()(T a, T b) const {
    return a + b;
  }
};

/// The larger one; a NaN wins.
struct Larger {
  __device__ __forceinline__ float operator()(float a, float b) const { return a > b || a != a ? a : b; }
};

/// A value and where it was found.
struct Found {
  float value;
  int32_t at;
};

/// The first NaN, else the first of the largest.
struct FirstLargest {
  __device__ __forceinline__ Found operator()(Found a, Found b) const {
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan || b_nan) return a_nan && (!b_nan || a.at < b.at) ? a : b;
    return a.value > b.value || (a.value == b.value && a.at < b.at) ? a : b;
  }
};

/// Count, mean and sum of squared deviations of a set of numbers.
struct Moments {
  float count, mean, squares;
};

/// Two sets as one (Chan, Golub and LeVeque, 1979). One of them may be empty: all zeros.
struct JoinMoments {
  __device__ __forceinline__ Moments operator()(const Moments& a, const Moments& b) const {
    const float count = a.count + b.count, share = count > 0 ? b.count / count : 0, step = b.mean - a.mean;
    return {count, a.mean + step * share, a.squares + (b.squares + step * step * (a.count * share))};
  }
};

template <class T>
__device__ __forceinline__ T shuffle_xor(T value, int offset) {
  return __shfl_xor_sync(0xffffffffu, value, offset);
}
__device__ __forceinline__ Found shuffle_xor(Found f, int offset) {
  return {shuffle_xor(f.value, offset), shuffle_xor(f.at, offset)};
}
__device__ __forceinline__ Moments shuffle_xor(Moments m, int offset) {
  return {shuffle_xor(m.count, offset), shuffle_xor(m.mean, offset), shuffle_xor(m.squares, offset)};
}

/// Among lanes whose numbers are equal modulo `least`, a power of two; `width` lanes apart from the rest.
template <class T, class Join>
__device__ __forceinline__ T warp_reduce(T value, Join join, int least = 1, int width = kWarpThreads) {
  const unsigned lane = threadIdx.x % kWarpThreads;
#pragma unroll
  for (int offset = kWarpThreads / 2; offset > 0; offset /= 2) {
    if (offset < least || offset >= width) continue;
    const T other = shuffle_xor(value, offset);
    value = lane & static_cast<unsigned>(offset) ? join(other, value) : join(value, other);
  }
  return value;
}

/// scratch: shared, one element a warp. All threads of the block call it and get the result.
template <int kThreads, class T, class Join>
__device__ __forceinline__ T block_reduce(T value, Join join, T* scratch) {
  constexpr int kWarps = kThreads / kWarpThreads;
  value = warp_reduce(value, join);
  if (threadIdx.x % kWarpThreads == 0) scratch[threadIdx.x / kWarpThreads] = value;
  __syncthreads();
  value = warp_reduce(scratch[threadIdx.x % kWarps], join, 1, kWarps);
  __syncthreads();
  return value;
}

// ---- rows: blocks of kRowBlock threads, of which kThreads (32 or all) share a row

template <int kThreads, class T, class Join>
__device__ __forceinline__ T row_reduce(T value, Join join) {
  if constexpr (kThreads == kWarpThreads) {
    return warp_reduce(value, join);
  } else {
    BRISK_SHARED(T, scratch, [kThreads / kWarpThreads]);
    return block_reduce<kThreads>(value, join, scratch);
  }
}

template <int kThreads>
__device__ __forceinline__ int64_t row_index() {
  return static_cast<int64_t>(blockIdx.x) * (kRowBlock / kThreads) + threadIdx.x / kThreads;
}

/// Calls f(i) for the first element of each vector of the row that is this thread's.
template <int kThreads, int kWidth, class F>
__device__ __forceinline__ void for_vectors(int64_t size, const F& f) {
  for (int64_t i = static_cast<int64_t>(threadIdx.x % kThreads) * kWidth; i < size; i += kThreads * kWidth) f(i);
}

// ---- host: choice of the vectors and of the threads of a row

/// Whether rows of `size` elements can be read by 16 bytes. Null pointers, which are not read, can.
template <class... Pointers>
bool whole_vectors(DType dtype, int64_t size, Pointers... pointers) {
  return size % full_width(dtype) == 0 && (aligned(pointers, 16) && ...);
}

/// Calls f(T(), std::integral_constant<int, elements of a vector>()).
template <class F>
void dispatch_vectors(DType dtype, bool vectors, F f) {
  dispatch(dtype, [&](auto element) {
    using T = decltype(element);
    if (vectors) {
      f(element, std::integral_constant<int, static_cast<int>(16 / sizeof(T))>());
    } else {
      f(element, std::integral_constant<int, 1>());
    }
  });
}

/// Calls f(T(), width, threads of a row): a warp where it has at most 8 vectors a lane, else a block.
template <class F>
void dispatch_rows(DType dtype, bool vectors, int64_t size, F f) {
  dispatch_vectors(dtype, vectors, [&](auto element, auto width) {
    if (size <= int64_t{8} * kWarpThreads * decltype(width)::value) {
      f(element, width, std::integral_constant<int, kWarpThreads>());
    } else {
      f(element, width, std::integral_constant<int, kRowBlock>());
    }
  });
}

template <int kThreads>
unsigned row_blocks(int64_t rows, const char* field) {
  return blocks_for(rows, kRowBlock / kThreads, field);
}

// ---- columns: [outer, rows, columns]; a thread has kWidth columns beside each other and strides over rows

constexpr int kColumnWarps = kColumnThreads / kWarpThreads;

/// Partial results go through the workspace, in an order that counters keep; none of both where nothing is needed.
inline void check_workspace(const std::string& launcher, const void* workspace, int64_t bytes, int64_t needed,
                            const int32_t* counters) {
  check_option(bytes >= needed, (launcher + ".workspace_bytes").c_str(), bytes,
               (std::to_string(needed) + " are needed").c_str());
  if (needed > 0) {
    check_pointer(workspace, (launcher + ".workspace").c_str());
    check_pointer(counters, (launcher + ".counters").c_str());
  }
}

inline dim3 column_grid(const Columns& c, const char* field) {
  check_option(c.tiles * c.outer <= INT32_MAX, field, c.columns, "is more than one launch covers");
  return {static_cast<unsigned>(c.tiles * c.outer), static_cast<unsigned>(c.slices)};
}

/// What one thread of a block of columns has: rows first, first + lanes, ... below last, of kWidth columns.
struct ColumnThread {
  int64_t outer, column, first, last;
  int64_t lanes;
};

template <int kWidth>
__device__ __forceinline__ ColumnThread column_thread(const Columns& c) {
  const unsigned across = static_cast<unsigned>(c.across), tile = blockIdx.x % static_cast<unsigned>(c.tiles);
  ColumnThread t;
  t.outer = blockIdx.x / static_cast<unsigned>(c.tiles);
  t.column = (static_cast<int64_t>(tile) * across + threadIdx.x % across) * kWidth;
  t.lanes = kColumnThreads / across;
  t.first = blockIdx.y * c.rows_per_slice + threadIdx.x / across;
  t.last = t.column < c.columns ? min(c.rows, (blockIdx.y + 1) * c.rows_per_slice) : 0;
  return t;
}

/// Calls f(std::integral_constant<int, n>(), row) for n rows, t.lanes apart: kBatch at a time, the rest one by one.
template <int kBatch, class F>
__device__ __forceinline__ void for_rows(const ColumnThread& t, const F& f) {
  int64_t row = t.first;
  for (; row + (kBatch - 1) * t.lanes < t.last; row += kBatch * t.lanes) f(std::integral_constant<int, kBatch>(), row);
  for (; row < t.last; row += t.lanes) f(std::integral_constant<int, 1>(), row);
}

/// Kinds of column results: kFields floats a column, made of a count and fields.
template <int kCount>
struct ColumnSums {
  static constexpr int kFields = kCount;
  static __device__ __forceinline__ void join(float&, float (&a)[kCount], float, const float (&b)[kCount]) {
#pragma unroll
    for (int f = 0; f < kCount; ++f) a[f] += b[f];
  }
};
/// Fields: mean, sum of squared deviations.
struct ColumnMoments {
  static constexpr int kFields = 2;
  static __device__ __forceinline__ void join(float& count, float (&a)[2], float b_count, const float (&b)[2]) {
    const Moments joined = JoinMoments()({count, a[0], a[1]}, {b_count, b[0], b[1]});
    count = joined.count, a[0] = joined.mean, a[1] = joined.squares;
  }
};

/// The result of one column, in the thread that holds it.
template <class Kind>
struct ColumnResult {
  bool here;
  int64_t outer, column;
  float field[Kind::kFields];
};

/// Joins what the threads of a block have (count: rows of this thread), then what the blocks of all slices have. Called
/// by all threads. partials: slices x kFields x outer x columns floats, counters: one a block of a slice; both unused
/// with one slice.
template <class Kind, int kWidth>
__device__ __forceinline__ ColumnResult<Kind> finish_columns(const Columns& c, float count,
                                                             float (&value)[Kind::kFields][kWidth], float* partials,
                                                             int32_t* counters) {
  constexpr int kFields = Kind::kFields;
  BRISK_SHARED(float, part, [kColumnWarps][kFields][kMostColumns<kWidth>]);
  BRISK_SHARED(float, counts, [kColumnWarps]);
  BRISK_SHARED(bool, last, [1]);
  const unsigned lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
#pragma unroll
  for (int offset = kWarpThreads / 2; offset > 0; offset /= 2) {
    if (offset < c.across) break;
    const float other_count = shuffle_xor(count, offset);
    float joined_count = count;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      float a[kFields], b[kFields];
#pragma unroll
      for (int f = 0; f < kFields; ++f) a[f] = value[f][i], b[f] = shuffle_xor(value[f][i], offset);
      const bool upper = lane & static_cast<unsigned>(offset);
      joined_count = upper ? other_count : count;
      if (upper) {
        Kind::join(joined_count, b, count, a);
      } else {
        Kind::join(joined_count, a, other_count, b);
      }
#pragma unroll
      for (int f = 0; f < kFields; ++f) value[f][i] = upper ? b[f] : a[f];
    }
    count = joined_count;
  }
  if (lane < static_cast<unsigned>(c.across)) {
#pragma unroll
    for (int f = 0; f < kFields; ++f) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) part[warp][f][lane * kWidth + i] = value[f][i];
    }
    if (lane == 0) counts[warp] = count;
  }
  __syncthreads();

  ColumnResult<Kind> result;
  const int tile_columns = c.across * kWidth, mine = static_cast<int>(threadIdx.x);
  result.outer = blockIdx.x / static_cast<unsigned>(c.tiles);
  const int64_t tile_first = static_cast<int64_t>(blockIdx.x % static_cast<unsigned>(c.tiles)) * tile_columns;
  result.column = tile_first + mine;
  result.here = mine < tile_columns && result.column < c.columns;
  if (result.here) {
    float total = counts[0];
#pragma unroll
    for (int f = 0; f < kFields; ++f) result.field[f] = part[0][f][mine];
    for (int w = 1; w < kColumnWarps; ++w) {
      float next[kFields];
#pragma unroll
      for (int f = 0; f < kFields; ++f) next[f] = part[w][f][mine];
      Kind::join(total, result.field, counts[w], next);
    }
  }
  if (c.slices == 1) return result;

  const int64_t plane = c.outer * c.columns;
  if (result.here) {
    float* to = partials + blockIdx.y * kFields * plane + result.outer * c.columns + result.column;
#pragma unroll
    for (int f = 0; f < kFields; ++f) to[f * plane] = result.field[f];
    __threadfence();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned slices = static_cast<unsigned>(c.slices);
    last[0] = atomicInc(reinterpret_cast<unsigned*>(counters) + blockIdx.x, slices - 1) == slices - 1;
  }
  __syncthreads();
  if (!last[0]) {
    result.here = false;
    return result;
  }
  __threadfence();

  // Each group of threads joins a stretch of the slices; then the first threads join the groups.
  const int groups = min(kColumnThreads / tile_columns, kColumnWarps);
  const int stretch = (c.slices + groups - 1) / groups, group = mine / tile_columns, own = mine % tile_columns;
  if (group < groups && tile_first + own < c.columns) {
    float total = 0, field[kFields] = {};
    for (int s = group * stretch; s < min(c.slices, (group + 1) * stretch); ++s) {
      const float* from = partials + s * kFields * plane + result.outer * c.columns + tile_first + own;
      float next[kFields];
#pragma unroll
      for (int f = 0; f < kFields; ++f) next[f] = __ldcg(from + f * plane);
      Kind::join(total, field, static_cast<float>(min(c.rows - s * c.rows_per_slice, c.rows_per_slice)), next);
    }
#pragma unroll
    for (int f = 0; f < kFields; ++f) part[group][f][own] = field[f];
    if (own == 0) counts[group] = total;
  }
  __syncthreads();
  if (result.here) {
    float total = counts[0];
#pragma unroll
    for (int f = 0; f < kFields; ++f) result.field[f] = part[0][f][mine];
    for (int g = 1; g < groups; ++g) {
      float next[kFields];
#pragma unroll
      for (int f = 0; f < kFields; ++f) next[f] = part[g][f][mine];
      Kind::join(total, result.field, counts[g], next);
    }
  }
  return result;
}

}  // namespace brisk::kernels
