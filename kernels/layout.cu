// Elements that move. cast: 8 elements a thread. transpose: tiles of 32 x 32 through shared memory, whose rows are one
// element longer than a tile so that columns lie in different banks; with few rows or columns, straight, one position a
// thread. copy_box: 1 to 16 bytes a thread, as much as lies side by side in both. All outputs are overwritten; that of
// store_gradient is added to where the run says so.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "brisk/kernels/layout.h"
#include "kernels/common/check.h"
#include "kernels/common/cuda.h"
#include "kernels/common/vector.h"

namespace brisk::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kWidth = 8;

template <class T>
constexpr bool kNarrowFloat = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;

// Named, since code for devices cannot call the functions.
template <class T>
constexpr T kLeast = std::numeric_limits<T>::min();
template <class T>
constexpr T kMost = std::numeric_limits<T>::max();

/// Integers keep their low bits. A float is cut towards 0 and limited to the range; NaN becomes 0.
template <class To, class From>
__device__ __forceinline__ To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (kNarrowFloat<From>) {
    return convert<To>(to_float(x));
  } else if constexpr (kNarrowFloat<To>) {
    return from_float<To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<From, float>) {
    constexpr auto low = static_cast<float>(kLeast<To>);
    constexpr auto high = static_cast<float>(kMost<To>);  // rounded up where it must be
    if (x != x) return 0;
    if (x <= low) return kLeast<To>;
    if (x >= high) return kMost<To>;
    return static_cast<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

/// kWidth elements, 16 bytes at a time, or as many as there are.
template <class T>
__device__ __forceinline__ void load_elements(const T* from, T (&to)[kWidth]) {
  constexpr int kStep = sizeof(T) * kWidth < 16 ? kWidth : static_cast<int>(16 / sizeof(T));
#pragma unroll
  for (int i = 0; i < kWidth; i += kStep) {
    const Pack<T, kStep> pack = load<kStep>(from + i);
#pragma unroll
    for (int k = 0; k < kStep; ++k) to[i + k] = pack.element[k];
  }
}

template <class T>
__device__ __forceinline__ void store_elements(T* to, const T (&from)[kWidth]) {
  constexpr int kStep = sizeof(T) * kWidth < 16 ? kWidth : static_cast<int>(16 / sizeof(T));
#pragma unroll
  for (int i = 0; i < kWidth; i += kStep) {
    Pack<T, kStep> pack;
#pragma unroll
    for (int k = 0; k < kStep; ++k) pack.element[k] = from[i + k];
    store(to + i, pack);
  }
}

// resources: cast_kernel: registers <= 48, static shared <= 0 bytes
template <class From, class To>
__global__ void __launch_bounds__(kThreads) cast_kernel(const From* x, To* y, int64_t count, bool vectors) {
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kWidth;
  if (vectors && first + kWidth <= count) {
    From in[kWidth];
    To out[kWidth];
    load_elements(x + first, in);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) out[i] = convert<To>(in[i]);
    return store_elements(y + first, out);
  }
  const int64_t last = count - first < kWidth ? count : first + kWidth;
  for (int64_t i = first; i < last; ++i) y[i] = convert<To>(x[i]);
}

constexpr int kTile = 32, kTileRows = kThreads / kTile;

/// What a tile holds in place of elements that are narrower than a bank.
template <class T>
using Wide = std::conditional_t<kNarrowFloat<T>, float, std::conditional_t<sizeof(T) == 1, int32_t, T>>;

struct Matrices {
  int64_t rows, columns;
  int64_t row_tiles, column_tiles;
};

// resources: transpose_kernel: registers <= 48, static shared <= 8448 bytes
template <class From, class To>
__global__ void __launch_bounds__(kThreads) transpose_kernel(Matrices m, const From* x, To* y) {
  BRISK_SHARED(Wide<To>, tile, [kTile][kTile + 1]);
  const int64_t tiles = m.row_tiles * m.column_tiles;
  const int64_t batch = blockIdx.x / tiles, place = blockIdx.x % tiles;
  const int64_t row = place / m.column_tiles * kTile, column = place % m.column_tiles * kTile;
  const int lane = threadIdx.x % kTile, line = threadIdx.x / kTile;
  x += batch * m.rows * m.columns;
  y += batch * m.rows * m.columns;
#pragma unroll
  for (int i = 0; i < kTile; i += kTileRows) {
    const int64_t r = row + line + i, c = column + lane;
    if (r < m.rows && c < m.columns) tile[line + i][lane] = convert<Wide<To>>(convert<To>(x[r * m.columns + c]));
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kTile; i += kTileRows) {
    const int64_t r = row + lane, c = column + line + i;
    if (r < m.rows && c < m.columns) y[c * m.rows + r] = convert<To>(tile[lane][line + i]);
  }
}

/// The longer side of a matrix whose shorter one is `few` elements: a thread has one position of it.
struct FewLines {
  int64_t batch, many;
  int32_t few;
  bool rows_are_few;
};

// resources: transpose_few_kernel: registers <= 40, static shared <= 0 bytes
template <class From, class To>
__global__ void __launch_bounds__(kThreads) transpose_few_kernel(FewLines f, const From* x, To* y) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  const int64_t batch = index / f.many, at = index % f.many;
  if (batch >= f.batch) return;
  const int64_t apart = f.many, together = f.few, start = batch * apart * together;
  for (int64_t k = 0; k < f.few; ++k) {
    const int64_t along = start + k * apart + at, across = start + at * together + k;
    y[f.rows_are_few ? across : along] = convert<To>(x[f.rows_are_few ? along : across]);
  }
}

constexpr int kBoxDims = 8;

/// In units of 1 to 16 bytes.
struct Box {
  int64_t total;
  int32_t rank;
  int64_t dims[kBoxDims], before[kBoxDims], x_dims[kBoxDims], x_strides[kBoxDims], y_strides[kBoxDims];
  uint4 value;  ///< the element, repeated
};

// resources: copy_box_kernel: registers <= 48, static shared <= 0 bytes
template <class Unit, class Index>
__global__ void __launch_bounds__(kThreads) copy_box_kernel(const __grid_constant__ Box b, const Unit* x, Unit* y) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (index >= b.total) return;
  auto rest = static_cast<Index>(index);
  int64_t from = 0, to = 0;
  bool inside = true;
#pragma unroll 1
  for (int d = b.rank - 1; d >= 0; --d) {
    const Index size = static_cast<Index>(b.dims[d]), outer = rest / size;
    const int64_t at = static_cast<int64_t>(rest - outer * size), source = at - b.before[d];
    inside = inside && source >= 0 && source < b.x_dims[d];
    from += source * b.x_strides[d];
    to += at * b.y_strides[d];
    rest = outer;
  }
  Unit value;
  memcpy(&value, &b.value, sizeof value);
  if (inside) value = x[from];
  y[to] = value;
}

// resources: store_gradient_kernel: registers <= 40, static shared <= 0 bytes
template <class T>
__global__ void __launch_bounds__(kThreads)
    store_gradient_kernel(const T* gradient, float* y, int64_t count, const RunState* run, bool vectors) {
  const bool adds = run != nullptr && run->accumulate != 0;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kWidth;
  if (vectors && first + kWidth <= count) {
    float now[kWidth], sum[kWidth] = {};
    load_floats(gradient + first, now);
    if (adds) load_floats(y + first, sum);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum[i] = adds ? sum[i] + now[i] : now[i];
    return store_floats(y + first, sum);
  }
  const int64_t last = count - first < kWidth ? count : first + kWidth;
  for (int64_t i = first; i < last; ++i) y[i] = adds ? y[i] + to_float(gradient[i]) : to_float(gradient[i]);
}

// ---- launchers

/// Calls f(From(), To()).
template <class F>
void dispatch_pair(DType from, DType to, F f) {
  dispatch_any(from, [&](auto a) { dispatch_any(to, [&](auto b) { f(a, b); }); });
}

void cast_checked(const CastOptions& o, const char* name, CudaStream stream) {
  if (o.count == 0) return;
  check_pointer(o.x, name);
  check_pointer(o.y, name);
  const unsigned blocks = blocks_for(o.count, kThreads * kWidth, name);
  const bool vectors = aligned(o.x, 16) && aligned(o.y, 16);
  dispatch_pair(o.from, o.to, [&](auto from, auto to) {
    using From = decltype(from);
    using To = decltype(to);
    check_launch(name, launch(cast_kernel<From, To>, blocks, kThreads, 0, stream, static_cast<const From*>(o.x),
                              static_cast<To*>(o.y), o.count, vectors));
  });
}

/// What a span of the options says of dimension d, or a default.
int64_t entry(std::span<const int64_t> list, size_t d, int64_t otherwise) { return list.empty() ? otherwise : list[d]; }

void check_list(std::span<const int64_t> list, size_t rank, const char* field) {
  check_option(list.empty() || list.size() == rank, field, list.size(), "entries: must be one a dimension, or none");
}

/// The element, repeated to 16 bytes.
uint4 repeated(double value, DType dtype) {
  unsigned char bytes[16];
  dispatch_any(dtype, [&](auto element) {
    using T = decltype(element);
    if constexpr (kNarrowFloat<T>) {
      element = from_float<T>(static_cast<float>(value));
    } else {
      element = static_cast<T>(value);
    }
    for (size_t i = 0; i < sizeof bytes; i += sizeof element) std::memcpy(bytes + i, &element, sizeof element);
  });
  uint4 words;
  std::memcpy(&words, bytes, sizeof words);
  return words;
}

/// Adds dimension `size`, `before`, ... to the box inside of those that it has, merging where it lies side by side.
void add_dimension(Box& b, int64_t size, int64_t before, int64_t x_size, int64_t x_stride, int64_t y_stride) {
  const int last = b.rank - 1;
  if (b.rank > 0 && before == 0 && x_size == size && b.x_strides[last] == x_stride * size &&
      b.y_strides[last] == y_stride * size) {
    b.dims[last] *= size;
    b.before[last] *= size;
    b.x_dims[last] *= size;
  } else {
    b.dims[b.rank] = size;
    b.before[b.rank] = before;
    b.x_dims[b.rank] = x_size;
    ++b.rank;
  }
  b.x_strides[b.rank - 1] = x_stride;
  b.y_strides[b.rank - 1] = y_stride;
}

Box make_box(const CopyBoxOptions& o) {
  const size_t rank = o.dims.size();
  check_option(rank >= 1 && rank <= kBoxDims, "kernels::copy_box.dims", rank, "entries: must be 1 to 8");
  check_list(o.before, rank, "kernels::copy_box.before");
  check_list(o.x_dims, rank, "kernels::copy_box.x_dims");
  check_list(o.x_strides, rank, "kernels::copy_box.x_strides");
  check_list(o.y_strides, rank, "kernels::copy_box.y_strides");
  std::array<int64_t, kBoxDims> x_strides{}, y_strides{};
  int64_t x_stride = 1, total = 1;
  for (size_t d = rank; d-- > 0;) {
    check_option(o.dims[d] >= 0, "kernels::copy_box.dims", o.dims[d], "must be 0 or more");
    const int64_t x_size = entry(o.x_dims, d, o.dims[d]);
    check_option(x_size >= 0, "kernels::copy_box.x_dims", x_size, "must be 0 or more");
    x_strides[d] = entry(o.x_strides, d, x_stride);
    y_strides[d] = entry(o.y_strides, d, total);
    x_stride *= x_size;
    total *= o.dims[d];
  }
  Box b{};
  b.total = total;
  b.value = repeated(o.value, o.dtype);
  for (size_t d = 0; d < rank; ++d) {
    add_dimension(b, o.dims[d], entry(o.before, d, 0), entry(o.x_dims, d, o.dims[d]), x_strides[d], y_strides[d]);
  }
  return b;
}

/// The most elements, at most `most`, that all rows of the box consist of and all places are multiples of.
int64_t side_by_side(const Box& b, int64_t most, int64_t bytes, const void* x, const void* y) {
  const int last = b.rank - 1;
  if (b.x_strides[last] != 1 || b.y_strides[last] != 1) return 1;
  for (int64_t n = most; n > 1; n /= 2) {
    bool fits = b.dims[last] % n == 0 && b.before[last] % n == 0 && b.x_dims[last] % n == 0 &&
                aligned(x, static_cast<uintptr_t>(n * bytes)) && aligned(y, static_cast<uintptr_t>(n * bytes));
    for (int d = 0; d < last; ++d) fits = fits && b.x_strides[d] % n == 0 && b.y_strides[d] % n == 0;
    if (fits) return n;
  }
  return 1;
}

template <class Unit>
void launch_box(const Box& b, const void* x, void* y, const char* name, CudaStream stream) {
  const unsigned blocks = blocks_for(b.total, kThreads, name);
  const auto* from = static_cast<const Unit*>(x);
  auto* to = static_cast<Unit*>(y);
  check_launch(name, b.total <= std::numeric_limits<int32_t>::max()
                         ? launch(copy_box_kernel<Unit, uint32_t>, blocks, kThreads, 0, stream, b, from, to)
                         : launch(copy_box_kernel<Unit, int64_t>, blocks, kThreads, 0, stream, b, from, to));
}

void copy_box_checked(Box b, int64_t bytes, const void* x, void* y, const char* name, CudaStream stream) {
  const int last = b.rank - 1;
  const int64_t n = side_by_side(b, 16 / bytes, bytes, x, y);
  b.total /= n;
  b.dims[last] /= n;
  b.before[last] /= n;
  b.x_dims[last] /= n;
  for (int d = 0; d < last; ++d) b.x_strides[d] /= n, b.y_strides[d] /= n;
  switch (n * bytes) {
    case 16:
      return launch_box<uint4>(b, x, y, name, stream);
    case 8:
      return launch_box<uint2>(b, x, y, name, stream);
    case 4:
      return launch_box<uint32_t>(b, x, y, name, stream);
    case 2:
      return launch_box<uint16_t>(b, x, y, name, stream);
    default:
      return launch_box<uint8_t>(b, x, y, name, stream);
  }
}

}  // namespace

void cast(const CastOptions& options, CudaStream stream) {
  check_option(options.count >= 0, "kernels::cast.count", options.count, "must be 0 or more");
  cast_checked(options, "kernels::cast", stream);
}

void transpose(const TransposeOptions& options, CudaStream stream) {
  const char* const name = "kernels::transpose";
  check_option(options.batch >= 0, "kernels::transpose.batch", options.batch, "must be 0 or more");
  check_option(options.rows >= 0, "kernels::transpose.rows", options.rows, "must be 0 or more");
  check_option(options.columns >= 0, "kernels::transpose.columns", options.columns, "must be 0 or more");
  const int64_t rows = options.rows, columns = options.columns, few = std::min(rows, columns);
  if (few <= 1) {
    return cast_checked({options.batch * rows * columns, options.from, options.to, options.x, options.y}, name, stream);
  }
  if (options.batch == 0) return;
  check_pointer(options.x, "kernels::transpose.x");
  check_pointer(options.y, "kernels::transpose.y");
  constexpr int64_t kFew = 8;
  const Matrices m{rows, columns, (rows + kTile - 1) / kTile, (columns + kTile - 1) / kTile};
  const FewLines f{options.batch, std::max(rows, columns), static_cast<int32_t>(std::min(few, kFew)), rows <= columns};
  const unsigned blocks = few <= kFew ? blocks_for(f.batch * f.many, kThreads, name)
                                      : blocks_for(options.batch * m.row_tiles * m.column_tiles, 1, name);
  dispatch_pair(options.from, options.to, [&](auto from, auto to) {
    using From = decltype(from);
    using To = decltype(to);
    const auto* x = static_cast<const From*>(options.x);
    auto* y = static_cast<To*>(options.y);
    check_launch(name, few <= kFew ? launch(transpose_few_kernel<From, To>, blocks, kThreads, 0, stream, f, x, y)
                                   : launch(transpose_kernel<From, To>, blocks, kThreads, 0, stream, m, x, y));
  });
}

void copy_box(const CopyBoxOptions& options, CudaStream stream) {
  const Box b = make_box(options);
  if (b.total == 0) return;
  check_pointer(options.x, "kernels::copy_box.x");
  check_pointer(options.y, "kernels::copy_box.y");
  copy_box_checked(b, size_of(options.dtype), options.x, options.y, "kernels::copy_box", stream);
}

// A box of which nothing comes from an input.
void fill(const FillOptions& options, CudaStream stream) {
  check_option(options.count >= 0, "kernels::fill.count", options.count, "must be 0 or more");
  if (options.count == 0) return;
  check_pointer(options.y, "kernels::fill.y");
  Box b{};
  b.total = options.count;
  b.value = repeated(options.value, options.dtype);
  add_dimension(b, options.count, 0, 0, 1, 1);
  copy_box_checked(b, size_of(options.dtype), nullptr, options.y, "kernels::fill", stream);
}

void store_gradient(const StoreGradientOptions& options, CudaStream stream) {
  const char* const name = "kernels::store_gradient";
  check_option(options.count >= 0, "kernels::store_gradient.count", options.count, "must be 0 or more");
  check_float(options.from, "kernels::store_gradient.from");
  if (options.count == 0) return;
  check_pointer(options.gradient, "kernels::store_gradient.gradient");
  check_pointer(options.output, "kernels::store_gradient.output");
  const unsigned blocks = blocks_for(options.count, kThreads * kWidth, name);
  const bool vectors = aligned(options.gradient, 16) && aligned(options.output, 16);
  dispatch(options.from, [&](auto element) {
    using T = decltype(element);
    check_launch(name,
                 launch(store_gradient_kernel<T>, blocks, kThreads, 0, stream, static_cast<const T*>(options.gradient),
                        options.output, options.count, options.run, vectors));
  });
}

}  // namespace brisk::kernels
