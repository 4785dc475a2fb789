// Sums, means and extremes over the middle axis of [outer, size, inner], sums over rows, and broadcasting; results are
// overwritten, channel sums added to on demand. With inner = 1 a line belongs to a warp, a block, or several blocks,
// the last of which adds their sums in order; with inner > 1 threads stride along the axis, neighbours beside each
// other.
#include "brisk/kernels/reduce.h"

#include "kernels/common/reduce.h"

namespace brisk::kernels {
namespace {

struct Target {
  void* y;
  DType dtype;
  bool accumulate;
  float scale;

  __device__ __forceinline__ void put(int64_t i, float value) const {
    value *= scale;
    if (dtype == DType::f32) {
      float* const to = static_cast<float*>(y) + i;
      *to = accumulate ? *to + value : value;
    } else if (dtype == DType::f16) {
      static_cast<__half*>(y)[i] = from_float<__half>(value);
    } else {
      static_cast<__nv_bfloat16*>(y)[i] = from_float<__nv_bfloat16>(value);
    }
  }
};

// resources: sum_rows_kernel: registers <= 72, static shared <= 64 bytes
template <class T, int kWidth, int kThreads>
__global__ void __launch_bounds__(kRowBlock)
    sum_rows_kernel(const T* x, Target to, Lines lines, float* partials, int32_t* counters) {
  const int64_t row = row_index<kThreads>();
  if (row >= lines.outer) return;
  const int64_t first = blockIdx.y * lines.per_slice;
  x += row * lines.size + first;
  float sum = 0;
  for_vectors<kThreads, kWidth>(min(lines.per_slice, lines.size - first), [&](int64_t i) {
    float v[kWidth];
    load_floats(x + i, v);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) sum += v[k];
  });
  sum = row_reduce<kThreads>(sum, Add());
  if (lines.slices > 1) {
    BRISK_SHARED(bool, last, [1]);
    if (threadIdx.x == 0) {
      const unsigned slices = static_cast<unsigned>(lines.slices);
      partials[row * slices + blockIdx.y] = sum;
      __threadfence();
      last[0] = atomicInc(reinterpret_cast<unsigned*>(counters) + row, slices - 1) == slices - 1;
    }
    __syncthreads();
    if (!last[0]) return;
    __threadfence();
    sum = 0;
    for (int s = static_cast<int>(threadIdx.x); s < lines.slices; s += kThreads) {
      sum += __ldcg(partials + row * lines.slices + s);
    }
    sum = row_reduce<kThreads>(sum, Add());
  }
  if (threadIdx.x % kThreads == 0) to.put(row, sum);
}

// resources: sum_columns_kernel: registers <= 64, static shared <= 2112 bytes
template <class T, int kWidth>
__global__ void __launch_bounds__(kColumnThreads)
    sum_columns_kernel(const T* x, Columns c, Target to, float* partials, int32_t* counters) {
  const ColumnThread t = column_thread<kWidth>(c);
  x += t.outer * c.rows * c.columns + t.column;
  float value[1][kWidth] = {};
  for_rows<4>(t, [&](auto batch, int64_t row) {
    constexpr int kRows = decltype(batch)::value;
    float v[kRows][kWidth];
#pragma unroll
    for (int k = 0; k < kRows; ++k) load_floats(x + (row + k * t.lanes) * c.columns, v[k]);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      if constexpr (kRows == 4) {
        value[0][i] += (v[0][i] + v[1][i]) + (v[2][i] + v[3][i]);
      } else {
        value[0][i] += v[0][i];
      }
    }
  });
  const auto sum = finish_columns<ColumnSums<1>, kWidth>(c, 0, value, partials, counters);
  if (sum.here) to.put(sum.outer * c.columns + sum.column, sum.field[0]);
}

// resources: max_rows: registers <= 48, static shared <= 64 bytes
template <class T, int kWidth, int kThreads>
__global__ void __launch_bounds__(kRowBlock) max_rows(const T* x, T* y, int32_t* index, int64_t rows, int64_t size) {
  const int64_t row = row_index<kThreads>();
  if (row >= rows) return;
  Found own{-INFINITY, INT32_MAX};
  for_vectors<kThreads, kWidth>(size, [&](int64_t i) {
    float v[kWidth];
    load_floats(x + row * size + i, v);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) own = FirstLargest()(own, {v[k], static_cast<int32_t>(i + k)});
  });
  const Found best = row_reduce<kThreads>(own, FirstLargest());
  if (threadIdx.x % kThreads != 0) return;
  y[row] = from_float<T>(best.value);
  index[row] = best.at;
}

// resources: max_lines: registers <= 48, static shared <= 0 bytes
template <class T>
__global__ void __launch_bounds__(kRowBlock)
    max_lines(const T* x, T* y, int32_t* index, int64_t lines, int64_t size, int64_t inner) {
  const int64_t line = int64_t{blockIdx.x} * kRowBlock + threadIdx.x;
  if (line >= lines) return;
  x += line / inner * size * inner + line % inner;
  Found best{to_float(x[0]), 0};
  for (int64_t k = 1; k < size; ++k) best = FirstLargest()(best, {to_float(x[k * inner]), static_cast<int32_t>(k)});
  y[line] = from_float<T>(best.value);
  index[line] = best.at;
}

// resources: max_gradient: registers <= 48, static shared <= 0 bytes
template <class T>
__global__ void __launch_bounds__(kRowBlock)
    max_gradient(const T* dy, const int32_t* index, T* dx, int64_t count, int64_t size, int64_t inner) {
  const int64_t at = int64_t{blockIdx.x} * kRowBlock + threadIdx.x;
  if (at >= count) return;
  const int64_t line = at / (size * inner) * inner + at % inner;
  dx[at] = index[line] == at / inner % size ? dy[line] : from_float<T>(0);
}

/// Dimensions of y with their strides in x, outermost first; the innermost one in vectors.
template <class Index>
struct Broadcast {
  int rank;
  Index size[Shape::kMaximumRank];
  int64_t stride[Shape::kMaximumRank];
  float factor;
  bool repeats;  ///< one element of x fills a vector
};

// resources: expand_kernel: registers <= 64, static shared <= 0 bytes
template <class T, int kWidth, class Index>
__global__ void __launch_bounds__(kRowBlock) expand_kernel(const T* x, T* y, int64_t vectors, Broadcast<Index> b) {
  const int64_t vector = int64_t{blockIdx.x} * kRowBlock + threadIdx.x;
  if (vector >= vectors) return;
  Index rest = static_cast<Index>(vector);
#pragma unroll
  for (int d = Shape::kMaximumRank - 1; d >= 0; --d) {
    if (d >= b.rank) continue;
    x += static_cast<int64_t>(rest % b.size[d]) * b.stride[d];
    rest /= b.size[d];
  }
  float v[kWidth];
  if (b.repeats) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) v[i] = to_float(x[0]);
  } else {
    load_floats(x, v);
  }
#pragma unroll
  for (int i = 0; i < kWidth; ++i) v[i] *= b.factor;
  store_floats(y + vector * kWidth, v);
}

void check_lines(const std::string& launcher, DType dtype, int64_t outer, int64_t size, int64_t inner, int64_t most) {
  check_float(dtype, (launcher + ".dtype").c_str());
  check_option(outer >= 1, (launcher + ".outer").c_str(), outer, "must be 1 or more");
  check_option(size >= 1 && size <= most, (launcher + ".size").c_str(), size,
               most == INT32_MAX ? "must be from 1 to 2^31 - 1" : "must be 1 or more");
  check_option(inner >= 1, (launcher + ".inner").c_str(), inner, "must be 1 or more");
}

void sum_columns(const std::string& launcher, const char* field, DType dtype, const void* x, int64_t outer,
                 int64_t rows, int64_t columns, const Target& to, void* workspace, int32_t* counters,
                 CudaStream stream) {
  dispatch_vectors(dtype, whole_vectors(dtype, columns, x), [&](auto element, auto width) {
    using T = decltype(element);
    const Columns c = reduced_columns(outer, rows, columns, decltype(width)::value);
    check_launch(launcher.c_str(),
                 launch(sum_columns_kernel<T, decltype(width)::value>, column_grid(c, field), kColumnThreads, 0, stream,
                        static_cast<const T*>(x), c, to, static_cast<float*>(workspace), counters));
  });
}

void reduce(const std::string& launcher, const ReduceOptions& o, double scale, CudaStream stream) {
  check_lines(launcher, o.dtype, o.outer, o.size, o.inner, INT64_MAX);
  check_float(o.output_dtype, (launcher + ".output_dtype").c_str());
  check_pointer(o.x, (launcher + ".x").c_str());
  check_pointer(o.y, (launcher + ".y").c_str());
  check_workspace(launcher, o.workspace, o.workspace_bytes, reduce_workspace_bytes(o), o.counters);
  const Target to{o.y, o.output_dtype, false, static_cast<float>(scale)};
  if (o.inner > 1) {
    sum_columns(launcher, (launcher + ".outer").c_str(), o.dtype, o.x, o.outer, o.size, o.inner, to, o.workspace,
                o.counters, stream);
    return;
  }
  dispatch_rows(o.dtype, whole_vectors(o.dtype, o.size, o.x), o.size, [&](auto element, auto width, auto threads) {
    using T = decltype(element);
    constexpr int kThreads = decltype(threads)::value;
    Lines lines{o.outer, o.size, o.size, 1};
    if (kThreads == kRowBlock) lines = cut_lines(o.outer, o.size, decltype(width)::value);
    const dim3 grid(row_blocks<kThreads>(o.outer, (launcher + ".outer").c_str()), static_cast<unsigned>(lines.slices));
    check_launch(launcher.c_str(),
                 launch(sum_rows_kernel<T, decltype(width)::value, kThreads>, grid, kRowBlock, 0, stream,
                        static_cast<const T*>(o.x), to, lines, static_cast<float*>(o.workspace), o.counters));
  });
}

/// y's dimensions as few as they can be, the innermost one in vectors of `width` when that is possible.
struct Collapsed {
  int rank = 0;
  int64_t size[Shape::kMaximumRank] = {};
  int64_t stride[Shape::kMaximumRank] = {};
};

Collapsed collapse(const ExpandOptions& o) {
  Collapsed c;
  for (int i = 0; i < o.shape.rank(); ++i) {
    const int64_t size = o.shape[i], stride = o.strides[static_cast<size_t>(i)];
    if (size == 1) continue;
    if (c.rank > 0 && c.stride[c.rank - 1] == stride * size) {
      c.size[c.rank - 1] *= size;
      c.stride[c.rank - 1] = stride;
    } else {
      c.size[c.rank] = size;
      c.stride[c.rank++] = stride;
    }
  }
  if (c.rank == 0) c.size[c.rank++] = 1;
  return c;
}

bool expands_by_vectors(const ExpandOptions& o, const Collapsed& c) {
  const int64_t last = c.stride[c.rank - 1];
  if (last != 0 && last != 1) return false;
  if (!whole_vectors(o.dtype, c.size[c.rank - 1], o.y)) return false;
  if (last == 0) return true;
  if (!aligned(o.x, 16)) return false;
  return std::all_of(c.stride, c.stride + c.rank - 1, [&](int64_t s) { return s % full_width(o.dtype) == 0; });
}

template <class T, int kWidth, class Index>
void launch_expand(const ExpandOptions& o, const Collapsed& c, int64_t vectors, CudaStream stream) {
  Broadcast<Index> b{};
  b.rank = c.rank;
  b.factor = static_cast<float>(o.factor);
  b.repeats = c.stride[c.rank - 1] == 0;
  for (int i = 0; i < c.rank; ++i) {
    const bool innermost = i == c.rank - 1;
    b.size[i] = static_cast<Index>(innermost ? c.size[i] / kWidth : c.size[i]);
    b.stride[i] = innermost ? c.stride[i] * kWidth : c.stride[i];
  }
  check_launch("kernels::expand",
               launch(expand_kernel<T, kWidth, Index>, blocks_for(vectors, kRowBlock, "kernels::expand.shape"),
                      kRowBlock, 0, stream, static_cast<const T*>(o.x), static_cast<T*>(o.y), vectors, b));
}

}  // namespace

void reduce_sum(const ReduceOptions& options, CudaStream stream) { reduce("kernels::reduce_sum", options, 1, stream); }

void reduce_mean(const ReduceOptions& options, CudaStream stream) {
  reduce("kernels::reduce_mean", options, 1 / static_cast<double>(options.size), stream);
}

void reduce_max(const ReduceMaxOptions& o, CudaStream stream) {
  const char* const launcher = "kernels::reduce_max";
  const char* const outer = "kernels::reduce_max.outer";
  check_lines(launcher, o.dtype, o.outer, o.size, o.inner, INT32_MAX);
  check_pointer(o.x, "kernels::reduce_max.x");
  check_pointer(o.y, "kernels::reduce_max.y");
  check_pointer(o.index, "kernels::reduce_max.index");
  if (o.inner > 1) {
    dispatch(o.dtype, [&](auto element) {
      using T = decltype(element);
      check_launch(launcher, launch(max_lines<T>, blocks_for(o.outer * o.inner, kRowBlock, outer), kRowBlock, 0, stream,
                                    static_cast<const T*>(o.x), static_cast<T*>(o.y), o.index, o.outer * o.inner,
                                    o.size, o.inner));
    });
    return;
  }
  dispatch_rows(o.dtype, whole_vectors(o.dtype, o.size, o.x), o.size, [&](auto element, auto width, auto threads) {
    using T = decltype(element);
    constexpr int kThreads = decltype(threads)::value;
    check_launch(launcher,
                 launch(max_rows<T, decltype(width)::value, kThreads>, row_blocks<kThreads>(o.outer, outer), kRowBlock,
                        0, stream, static_cast<const T*>(o.x), static_cast<T*>(o.y), o.index, o.outer, o.size));
  });
}

void reduce_max_gradient(const ReduceMaxGradientOptions& o, CudaStream stream) {
  const char* const launcher = "kernels::reduce_max_gradient";
  check_lines(launcher, o.dtype, o.outer, o.size, o.inner, INT32_MAX);
  check_pointer(o.dy, "kernels::reduce_max_gradient.dy");
  check_pointer(o.index, "kernels::reduce_max_gradient.index");
  check_pointer(o.dx, "kernels::reduce_max_gradient.dx");
  const int64_t count = o.outer * o.size * o.inner;
  dispatch(o.dtype, [&](auto element) {
    using T = decltype(element);
    check_launch(launcher, launch(max_gradient<T>, blocks_for(count, kRowBlock, "kernels::reduce_max_gradient.outer"),
                                  kRowBlock, 0, stream, static_cast<const T*>(o.dy), o.index, static_cast<T*>(o.dx),
                                  count, o.size, o.inner));
  });
}

void channel_sum(const ChannelSumOptions& o, CudaStream stream) {
  const char* const launcher = "kernels::channel_sum";
  check_float(o.dtype, "kernels::channel_sum.dtype");
  check_option(o.rows >= 1, "kernels::channel_sum.rows", o.rows, "must be 1 or more");
  check_option(o.channels >= 1, "kernels::channel_sum.channels", o.channels, "must be 1 or more");
  check_pointer(o.x, "kernels::channel_sum.x");
  check_pointer(o.y, "kernels::channel_sum.y");
  check_workspace(launcher, o.workspace, o.workspace_bytes, channel_sum_workspace_bytes(o), o.counters);
  sum_columns(launcher, "kernels::channel_sum.channels", o.dtype, o.x, 1, o.rows, o.channels,
              {o.y, DType::f32, o.accumulate, 1}, o.workspace, o.counters, stream);
}

void expand(const ExpandOptions& o, CudaStream stream) {
  check_float(o.dtype, "kernels::expand.dtype");
  check_pointer(o.x, "kernels::expand.x");
  check_pointer(o.y, "kernels::expand.y");
  for (int i = 0; i < o.shape.rank(); ++i) {
    check_option(o.shape[i] >= 1, "kernels::expand.shape", o.shape[i], "must have 1 or more of everything");
    check_option(o.strides[static_cast<size_t>(i)] >= 0, "kernels::expand.strides", o.strides[static_cast<size_t>(i)],
                 "must be 0 or more");
  }
  const Collapsed c = collapse(o);
  dispatch_vectors(o.dtype, expands_by_vectors(o, c), [&](auto element, auto width) {
    using T = decltype(element);
    constexpr int kWidth = decltype(width)::value;
    const int64_t vectors = o.shape.count() / kWidth;
    if (vectors <= UINT32_MAX) {
      launch_expand<T, kWidth, uint32_t>(o, c, vectors, stream);
    } else {
      launch_expand<T, kWidth, int64_t>(o, c, vectors, stream);
    }
  });
}

}  // namespace brisk::kernels
