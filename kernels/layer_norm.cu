// Layer normalisation of [rows, size]. A row belongs to a warp or, when long, to a block, which reads it twice: for its
// mean and its sum of squared deviations (joined vector by vector, so nothing overflows or cancels), and to write y.
// The gradient reads dy and x twice for dx in the same way; dweight and dbias are sums over rows, column by column. All
// results are overwritten; dweight and dbias are added to on demand.
#include "brisk/kernels/layer_norm.h"

#include "kernels/common/reduce.h"

namespace brisk::kernels {
namespace {

/// Sum in a tree: exact for equal numbers, so that a constant row has its constant as mean.
template <int kWidth>
__device__ __forceinline__ float tree_sum(const float (&v)[kWidth]) {
  float sum[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) sum[i] = v[i];
#pragma unroll
  for (int half = kWidth / 2; half > 0; half /= 2) {
#pragma unroll
    for (int i = 0; i < half; ++i) sum[i] += sum[i + half];
  }
  return sum[0];
}

template <int kWidth>
__device__ __forceinline__ Moments moments_of(const float (&v)[kWidth]) {
  Moments m{kWidth, tree_sum(v) * (1.0f / kWidth), 0};
#pragma unroll
  for (int i = 0; i < kWidth; ++i) m.squares = fmaf(v[i] - m.mean, v[i] - m.mean, m.squares);
  return m;
}

/// kWidth parameters from `at`, or the value that stands for them.
template <int kWidth>
__device__ __forceinline__ void load_parameters(const float* from, int64_t at, float otherwise, float (&to)[kWidth]) {
#pragma unroll
  for (int i = 0; i < kWidth; ++i) to[i] = from != nullptr ? from[at + i] : otherwise;
}

struct Forward {
  const float *weight, *bias;
  float *mean, *inverse;
  int64_t rows, size;
  float epsilon;
};

// resources: layer_norm_kernel: registers <= 64, static shared <= 128 bytes
template <class T, int kWidth, int kThreads>
__global__ void __launch_bounds__(kRowBlock) layer_norm_kernel(const T* x, T* y, Forward o) {
  const int64_t row = row_index<kThreads>();
  if (row >= o.rows) return;
  x += row * o.size;
  y += row * o.size;
  const float first = to_float(x[0]);  // deviations from it lose nothing, however far from zero the row is
  Moments own{0, 0, 0};
  for_vectors<kThreads, kWidth>(o.size, [&](int64_t i) {
    float v[kWidth];
    load_floats(x + i, v);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) v[k] -= first;
    own = JoinMoments()(own, moments_of(v));
  });
  const Moments m = row_reduce<kThreads>(own, JoinMoments());
  const float inverse = 1 / sqrtf(m.squares / static_cast<float>(o.size) + o.epsilon);
  if (threadIdx.x % kThreads == 0) {
    o.mean[row] = first + m.mean;
    o.inverse[row] = inverse;
  }
  for_vectors<kThreads, kWidth>(o.size, [&](int64_t i) {
    float v[kWidth], weight[kWidth], bias[kWidth];
    load_floats(x + i, v);
    load_parameters(o.weight, i, 1, weight);
    load_parameters(o.bias, i, 0, bias);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) v[k] = fmaf((v[k] - first - m.mean) * inverse, weight[k], bias[k]);
    store_floats(y + i, v);
  });
}

struct Backward {
  const float *weight, *mean, *inverse;
  int64_t rows, size;
};

// resources: layer_norm_gradient_kernel: registers <= 80, static shared <= 128 bytes
template <class T, int kWidth, int kThreads>
__global__ void __launch_bounds__(kRowBlock) layer_norm_gradient_kernel(const T* dy, const T* x, T* dx, Backward o) {
  const int64_t row = row_index<kThreads>();
  if (row >= o.rows) return;
  dy += row * o.size;
  x += row * o.size;
  dx += row * o.size;
  const float mean = o.mean[row], inverse = o.inverse[row];
  const auto each = [&](int64_t i, const auto& f) {
    float d[kWidth], v[kWidth], weight[kWidth];
    load_floats(dy + i, d);
    load_floats(x + i, v);
    load_parameters(o.weight, i, 1, weight);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) f(k, d[k] * weight[k], (v[k] - mean) * inverse);
  };
  float sum = 0, product = 0;
  for_vectors<kThreads, kWidth>(o.size, [&](int64_t i) {
    each(i, [&](int, float d, float normalised) {
      sum += d;
      product = fmaf(d, normalised, product);
    });
  });
  const float size = static_cast<float>(o.size);
  sum = row_reduce<kThreads>(sum, Add()) / size;
  product = row_reduce<kThreads>(product, Add()) / size;
  for_vectors<kThreads, kWidth>(o.size, [&](int64_t i) {
    float result[kWidth];
    each(i, [&](int k, float d, float normalised) { result[k] = inverse * (d - sum - normalised * product); });
    store_floats(dx + i, result);
  });
}

// resources: layer_norm_parameter_gradients: registers <= 80, static shared <= 4160 bytes
template <class T, int kWidth>
__global__ void __launch_bounds__(kColumnThreads)
    layer_norm_parameter_gradients(const T* dy, const T* x, Columns c, Backward o, bool accumulate, float* dweight,
                                   float* dbias, float* partials, int32_t* counters) {
  const ColumnThread t = column_thread<kWidth>(c);
  float value[2][kWidth] = {};
#pragma unroll 2
  for (int64_t row = t.first; row < t.last; row += t.lanes) {
    const float mean = o.mean[row], inverse = o.inverse[row];
    float d[kWidth], v[kWidth];
    load_floats(dy + row * c.columns + t.column, d);
    load_floats(x + row * c.columns + t.column, v);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      value[0][i] += d[i];
      value[1][i] = fmaf(d[i], (v[i] - mean) * inverse, value[1][i]);
    }
  }
  const auto sum = finish_columns<ColumnSums<2>, kWidth>(c, 0, value, partials, counters);
  if (!sum.here) return;
  dbias[sum.column] = sum.field[0] + (accumulate ? dbias[sum.column] : 0.0f);
  dweight[sum.column] = sum.field[1] + (accumulate ? dweight[sum.column] : 0.0f);
}

void check_sizes(const std::string& launcher, int64_t rows, int64_t size, DType dtype) {
  check_option(rows >= 1, (launcher + ".rows").c_str(), rows, "must be 1 or more");
  check_option(size >= 1, (launcher + ".size").c_str(), size, "must be 1 or more");
  check_float(dtype, (launcher + ".dtype").c_str());
}

}  // namespace

void layer_norm(const LayerNormOptions& o, CudaStream stream) {
  const char* const launcher = "kernels::layer_norm";
  check_sizes(launcher, o.rows, o.size, o.dtype);
  check_option(o.epsilon > 0 && o.epsilon < 1, "kernels::layer_norm.epsilon", o.epsilon,
               "must be more than 0 and less than 1");
  check_pointer(o.x, "kernels::layer_norm.x");
  check_pointer(o.y, "kernels::layer_norm.y");
  check_pointer(o.mean, "kernels::layer_norm.mean");
  check_pointer(o.inverse_deviation, "kernels::layer_norm.inverse_deviation");
  const Forward f{o.weight, o.bias, o.mean, o.inverse_deviation, o.rows, o.size, static_cast<float>(o.epsilon)};
  dispatch_rows(o.dtype, whole_vectors(o.dtype, o.size, o.x, o.y), o.size, [&](auto element, auto width, auto threads) {
    using T = decltype(element);
    constexpr int kThreads = decltype(threads)::value;
    check_launch(launcher, launch(layer_norm_kernel<T, decltype(width)::value, kThreads>,
                                  row_blocks<kThreads>(o.rows, "kernels::layer_norm.rows"), kRowBlock, 0, stream,
                                  static_cast<const T*>(o.x), static_cast<T*>(o.y), f));
  });
}

void layer_norm_gradient(const LayerNormGradientOptions& o, CudaStream stream) {
  const char* const launcher = "kernels::layer_norm_gradient";
  const char* const rows_field = "kernels::layer_norm_gradient.rows";
  check_sizes(launcher, o.rows, o.size, o.dtype);
  check_pointer(o.dy, "kernels::layer_norm_gradient.dy");
  check_pointer(o.x, "kernels::layer_norm_gradient.x");
  check_pointer(o.mean, "kernels::layer_norm_gradient.mean");
  check_pointer(o.inverse_deviation, "kernels::layer_norm_gradient.inverse_deviation");
  check_option((o.dweight == nullptr) == (o.dbias == nullptr), "kernels::layer_norm_gradient.dbias",
               o.dbias == nullptr ? 0 : 1, "is written together with dweight: give both or none");
  const Backward b{o.weight, o.mean, o.inverse_deviation, o.rows, o.size};
  if (o.dweight != nullptr) {
    check_workspace(launcher, o.workspace, o.workspace_bytes, layer_norm_gradient_workspace_bytes(o), o.counters);
    dispatch_vectors(o.dtype, whole_vectors(o.dtype, o.size, o.dy, o.x), [&](auto element, auto width) {
      using T = decltype(element);
      const Columns c = reduced_columns(1, o.rows, o.size, decltype(width)::value);
      check_launch(launcher, launch(layer_norm_parameter_gradients<T, decltype(width)::value>,
                                    column_grid(c, "kernels::layer_norm_gradient.size"), kColumnThreads, 0, stream,
                                    static_cast<const T*>(o.dy), static_cast<const T*>(o.x), c, b, o.accumulate,
                                    o.dweight, o.dbias, static_cast<float*>(o.workspace), o.counters));
    });
  }
  if (o.dx == nullptr) return;
  const bool vectors = whole_vectors(o.dtype, o.size, o.dy, o.x, o.dx);
  dispatch_rows(o.dtype, vectors, o.size, [&](auto element, auto width, auto threads) {
    using T = decltype(element);
    constexpr int kThreads = decltype(threads)::value;
    check_launch(launcher, launch(layer_norm_gradient_kernel<T, decltype(width)::value, kThreads>,
                                  row_blocks<kThreads>(o.rows, rows_field), kRowBlock, 0, stream,
                                  static_cast<const T*>(o.dy), static_cast<const T*>(o.x), static_cast<T*>(o.dx), b));
  });
}

}  // namespace brisk::kernels
