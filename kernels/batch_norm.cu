// Batch normalisation of [rows, channels], channels beside each other (NHWC). Forward: one kernel for the statistics,
// which the last block of each tile of channels joins and writes (mean, inverse deviation, unbiased variance:
// overwritten), one that applies them. Backward: one for the sums of the gradient and of its product with the
// normalised input (dweight and dbias: overwritten or added to; dresidual: overwritten), one for dx (overwritten).
// Inference is the second kernel alone. A thread has 16 bytes of channels and strides over rows; x is read twice in
// each direction, nothing else is kept.
#include "brisk/kernels/batch_norm.h"

#include "kernels/common/activation.h"
#include "kernels/common/reduce.h"

namespace brisk::kernels {
namespace {

/// Activations that a kernel is compiled for; the rest is told apart as it runs.
enum class Ending { none, relu, other };

template <Ending kEnding>
__device__ __forceinline__ float finish(Activation activation, float z) {
  if constexpr (kEnding == Ending::none) return z;
  if constexpr (kEnding == Ending::relu) return activate(Activation::relu, z);
  return activate(activation, z);
}

struct Statistics {
  float epsilon;
  float *mean, *inverse, *unbiased;
};

// resources: batch_norm_statistics: registers <= 80, static shared <= 4160 bytes
template <class T, int kWidth>
__global__ void __launch_bounds__(kColumnThreads)
    batch_norm_statistics(const T* x, Columns c, Statistics to, float* partials, int32_t* counters) {
  const ColumnThread t = column_thread<kWidth>(c);
  float count = 0, value[2][kWidth] = {};  // mean, sum of squared deviations
  for_rows<4>(t, [&](auto batch, int64_t row) {
    constexpr int kRows = decltype(batch)::value;
    float v[kRows][kWidth];
#pragma unroll
    for (int k = 0; k < kRows; ++k) load_floats(x + (row + k * t.lanes) * c.columns + t.column, v[k]);
    const float before = count;
    count += kRows;
    const float share = kRows / count, weight = before * share;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      float mean = v[0][i], squares = 0;
      if constexpr (kRows == 4) {
        mean = 0.25f * ((v[0][i] + v[1][i]) + (v[2][i] + v[3][i]));
#pragma unroll
        for (int k = 0; k < kRows; ++k) squares = fmaf(v[k][i] - mean, v[k][i] - mean, squares);
      }
      const float step = mean - value[0][i];
      value[0][i] = fmaf(step, share, value[0][i]);
      value[1][i] += fmaf(step * step, weight, squares);
    }
  });
  const auto result = finish_columns<ColumnMoments, kWidth>(c, count, value, partials, counters);
  if (!result.here) return;
  const float rows = static_cast<float>(c.rows);
  to.mean[result.column] = result.field[0];
  to.inverse[result.column] = 1 / sqrtf(result.field[1] / rows + to.epsilon);
  to.unbiased[result.column] = result.field[1] / (c.rows > 1 ? rows - 1 : 1.0f);
}

/// What applying needs of each channel; one of inverse and variance.
struct Affine {
  const float *mean, *inverse, *variance, *weight, *bias;
  float epsilon;
};

template <int kWidth>
struct Channels {
  float mean[kWidth], inverse[kWidth], factor[kWidth], bias[kWidth];

  __device__ __forceinline__ Channels(const Affine& a, int64_t first) {
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      mean[i] = a.mean != nullptr ? a.mean[first + i] : 0.0f;
      inverse[i] = a.inverse != nullptr ? a.inverse[first + i] : 1 / sqrtf(a.variance[first + i] + a.epsilon);
      factor[i] = a.weight != nullptr ? inverse[i] * a.weight[first + i] : inverse[i];
      bias[i] = a.bias != nullptr ? a.bias[first + i] : 0.0f;
    }
  }
};

// resources: batch_norm_apply: registers <= 96, static shared <= 0 bytes
template <class T, int kWidth, Ending kEnding>
__global__ void __launch_bounds__(kColumnThreads)
    batch_norm_apply(const T* x, const T* residual, T* y, Columns c, Affine a, Activation activation) {
  const ColumnThread t = column_thread<kWidth>(c);
  if (t.first >= t.last) return;
  const Channels<kWidth> channel(a, t.column);
  for_rows<2>(t, [&](auto batch, int64_t row) {
    constexpr int kRows = decltype(batch)::value;
    float v[kRows][kWidth], added[kRows][kWidth] = {};
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
      const int64_t at = (row + k * t.lanes) * c.columns + t.column;
      load_floats(x + at, v[k]);
      if (residual != nullptr) load_floats(residual + at, added[k]);
    }
#pragma unroll
    for (int k = 0; k < kRows; ++k) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        float z = fmaf(v[k][i] - channel.mean[i], channel.factor[i], channel.bias[i]);
        if (residual != nullptr) z += added[k][i];
        v[k][i] = finish<kEnding>(activation, z);
      }
      store_floats(y + (row + k * t.lanes) * c.columns + t.column, v[k]);
    }
  });
}

/// The gradient before the activation, from the output where there is one, else from the input computed again.
template <Ending kEnding>
__device__ __forceinline__ float before(Activation activation, bool by_output, float dy, float output, float z) {
  if constexpr (kEnding == Ending::none) return dy;
  if constexpr (kEnding == Ending::relu) return (by_output ? output : z) > 0 ? dy : 0.0f;
  return by_output ? through_output(activation, dy, output) : through_input(activation, dy, z);
}

template <class T>
struct Gradient {
  const T *dy, *x, *output;
  T *dresidual, *dx;
  Affine affine;
  Activation activation;
};

struct ParameterGradients {
  bool accumulate;
  float *dweight, *dbias;
  float* coefficients;  ///< [2, channels]: means of the gradient and of its product with the normalised input
};

/// Loads row's dy, x and output and calls f(i, gradient before the activation, deviation from the mean).
template <int kWidth, Ending kEnding, class T, class F>
__device__ __forceinline__ void each_gradient(const Gradient<T>& g, const Channels<kWidth>& channel, int64_t at,
                                              const F& f) {
  float dy[kWidth], x[kWidth], output[kWidth] = {};
  load_floats(g.dy + at, dy);
  load_floats(g.x + at, x);
  if (kEnding != Ending::none && g.output != nullptr) load_floats(g.output + at, output);
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const float deviation = x[i] - channel.mean[i];
    const float z = fmaf(deviation, channel.factor[i], channel.bias[i]);
    f(i, before<kEnding>(g.activation, g.output != nullptr, dy[i], output[i], z), deviation);
  }
}

// resources: batch_norm_gradient_sums: registers <= 128, static shared <= 4160 bytes
template <class T, int kWidth, Ending kEnding>
__global__ void __launch_bounds__(kColumnThreads)
    batch_norm_gradient_sums(Gradient<T> g, Columns c, ParameterGradients to, float* partials, int32_t* counters) {
  const ColumnThread t = column_thread<kWidth>(c);
  float value[2][kWidth] = {};
  if (t.first < t.last) {
    const Channels<kWidth> channel(g.affine, t.column);
#pragma unroll 2
    for (int64_t row = t.first; row < t.last; row += t.lanes) {
      const int64_t at = row * c.columns + t.column;
      float before_activation[kWidth];
      each_gradient<kWidth, kEnding>(g, channel, at, [&](int i, float d, float deviation) {
        value[0][i] += d;
        value[1][i] = fmaf(d, deviation * channel.inverse[i], value[1][i]);
        before_activation[i] = d;
      });
      if (g.dresidual != nullptr) store_floats(g.dresidual + at, before_activation);
    }
  }
  const auto sum = finish_columns<ColumnSums<2>, kWidth>(c, 0, value, partials, counters);
  if (!sum.here) return;
  const int64_t k = sum.column;
  const float rows = static_cast<float>(c.rows);
  to.coefficients[k] = sum.field[0] / rows;
  to.coefficients[c.columns + k] = sum.field[1] / rows;
  to.dbias[k] = sum.field[0] + (to.accumulate ? to.dbias[k] : 0.0f);
  to.dweight[k] = sum.field[1] + (to.accumulate ? to.dweight[k] : 0.0f);
}

// resources: batch_norm_gradient_apply: registers <= 128, static shared <= 0 bytes
template <class T, int kWidth, Ending kEnding>
__global__ void __launch_bounds__(kColumnThreads)
    batch_norm_gradient_apply(Gradient<T> g, Columns c, const float* coefficients) {
  const ColumnThread t = column_thread<kWidth>(c);
  if (t.first >= t.last) return;
  const Channels<kWidth> channel(g.affine, t.column);
  float of_mean[kWidth], of_deviation[kWidth];
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const float factor = channel.factor[i];
    of_mean[i] = factor * coefficients[t.column + i];
    of_deviation[i] = factor * channel.inverse[i] * coefficients[c.columns + t.column + i];
  }
  for (int64_t row = t.first; row < t.last; row += t.lanes) {
    const int64_t at = row * c.columns + t.column;
    float dx[kWidth];
    each_gradient<kWidth, kEnding>(g, channel, at, [&](int i, float d, float deviation) {
      dx[i] = fmaf(channel.factor[i], d, -fmaf(of_deviation[i], deviation, of_mean[i]));
    });
    store_floats(g.dx + at, dx);
  }
}

__device__ __forceinline__ bool finite(float x) { return x - x == 0; }

// resources: batch_norm_commit_kernel: registers <= 32, static shared <= 0 bytes
__global__ void __launch_bounds__(256) batch_norm_commit_kernel(BatchNormCommitOptions o, float momentum) {
  const int64_t c = int64_t{blockIdx.x} * 256 + threadIdx.x;
  if (c >= o.channels) return;
  const float mean = o.batch_mean[c], variance = o.batch_variance[c];
  const float old_mean = o.running_mean[c], old_variance = o.running_variance[c];
  // A batch that is not finite would stay in the running statistics for ever, though its update is skipped.
  const bool counts = (o.status == nullptr || o.status->kind == Status::kNone) && finite(mean) && finite(variance);
  o.new_running_mean[c] = counts ? (1 - momentum) * old_mean + momentum * mean : old_mean;
  o.new_running_variance[c] = counts ? (1 - momentum) * old_variance + momentum * variance : old_variance;
}

template <class F>
void dispatch_ending(Activation activation, F f) {
  if (activation == Activation::none) {
    f(std::integral_constant<Ending, Ending::none>());
  } else if (activation == Activation::relu) {
    f(std::integral_constant<Ending, Ending::relu>());
  } else {
    f(std::integral_constant<Ending, Ending::other>());
  }
}

/// Blocks that apply: 8 rows a thread.
Columns applied_columns(int64_t rows, int64_t channels, int64_t width) {
  return make_columns(1, rows, channels, width, 8, INT32_MAX);
}

void check_sizes(const std::string& launcher, int64_t rows, int64_t channels, DType dtype, double epsilon) {
  check_option(rows >= 1, (launcher + ".rows").c_str(), rows, "must be 1 or more");
  check_option(channels >= 1, (launcher + ".channels").c_str(), channels, "must be 1 or more");
  check_float(dtype, (launcher + ".dtype").c_str());
  check_option(epsilon > 0 && epsilon < 1, (launcher + ".epsilon").c_str(), epsilon,
               "must be more than 0 and less than 1");
}

void apply(const char* launcher, DType dtype, const void* x, const void* residual, void* y, int64_t rows,
           int64_t channels, const Affine& affine, Activation activation, CudaStream stream) {
  dispatch_vectors(dtype, whole_vectors(dtype, channels, x, residual, y), [&](auto element, auto width) {
    using T = decltype(element);
    constexpr int kWidth = decltype(width)::value;
    const Columns c = applied_columns(rows, channels, kWidth);
    dispatch_ending(activation, [&](auto ending) {
      check_launch(launcher, launch(batch_norm_apply<T, kWidth, decltype(ending)::value>,
                                    column_grid(c, "kernels::batch_norm.channels"), kColumnThreads, 0, stream,
                                    static_cast<const T*>(x), static_cast<const T*>(residual), static_cast<T*>(y), c,
                                    affine, activation));
    });
  });
}

}  // namespace

void batch_norm(const BatchNormOptions& o, CudaStream stream) {
  const char* const launcher = "kernels::batch_norm";
  check_sizes(launcher, o.rows, o.channels, o.dtype, o.epsilon);
  check_pointer(o.x, "kernels::batch_norm.x");
  check_pointer(o.y, "kernels::batch_norm.y");
  check_pointer(o.mean, "kernels::batch_norm.mean");
  check_pointer(o.inverse_deviation, "kernels::batch_norm.inverse_deviation");
  check_pointer(o.unbiased_variance, "kernels::batch_norm.unbiased_variance");
  check_workspace(launcher, o.workspace, o.workspace_bytes, batch_norm_workspace_bytes(o), o.counters);
  const Statistics statistics{static_cast<float>(o.epsilon), o.mean, o.inverse_deviation, o.unbiased_variance};
  dispatch_vectors(o.dtype, whole_vectors(o.dtype, o.channels, o.x), [&](auto element, auto width) {
    using T = decltype(element);
    constexpr int kWidth = decltype(width)::value;
    const Columns c = reduced_columns(1, o.rows, o.channels, kWidth);
    check_launch(launcher, launch(batch_norm_statistics<T, kWidth>, column_grid(c, "kernels::batch_norm.channels"),
                                  kColumnThreads, 0, stream, static_cast<const T*>(o.x), c, statistics,
                                  static_cast<float*>(o.workspace), o.counters));
  });
  apply(launcher, o.dtype, o.x, o.residual, o.y, o.rows, o.channels,
        {o.mean, o.inverse_deviation, nullptr, o.weight, o.bias, 0}, o.activation, stream);
}

void batch_norm_inference(const BatchNormInferenceOptions& o, CudaStream stream) {
  const char* const launcher = "kernels::batch_norm_inference";
  check_sizes(launcher, o.rows, o.channels, o.dtype, o.epsilon);
  check_pointer(o.x, "kernels::batch_norm_inference.x");
  check_pointer(o.y, "kernels::batch_norm_inference.y");
  check_pointer(o.variance, "kernels::batch_norm_inference.variance");
  apply(launcher, o.dtype, o.x, o.residual, o.y, o.rows, o.channels,
        {o.mean, nullptr, o.variance, o.weight, o.bias, static_cast<float>(o.epsilon)}, o.activation, stream);
}

void batch_norm_gradient(const BatchNormGradientOptions& o, CudaStream stream) {
  const char* const launcher = "kernels::batch_norm_gradient";
  check_sizes(launcher, o.rows, o.channels, o.dtype, 0.5);
  check_pointer(o.dy, "kernels::batch_norm_gradient.dy");
  check_pointer(o.x, "kernels::batch_norm_gradient.x");
  check_pointer(o.dx, "kernels::batch_norm_gradient.dx");
  check_pointer(o.dweight, "kernels::batch_norm_gradient.dweight");
  check_pointer(o.dbias, "kernels::batch_norm_gradient.dbias");
  check_pointer(o.mean, "kernels::batch_norm_gradient.mean");
  check_pointer(o.inverse_deviation, "kernels::batch_norm_gradient.inverse_deviation");
  const bool from_input = o.activation == Activation::relu || o.activation == Activation::silu;
  const bool from_output = o.activation != Activation::silu;
  check_option(o.activation == Activation::none || (o.output != nullptr ? from_output : from_input),
               "kernels::batch_norm_gradient.activation", static_cast<int>(o.activation),
               o.output != nullptr ? "silu's derivative is taken at its input: leave output null"
                                   : "sigmoid and tanh need the output");
  const bool sliced = partial_floats(o.dtype, 1, o.rows, o.channels, 2) > 0;
  check_workspace(launcher, o.workspace, o.workspace_bytes, batch_norm_gradient_workspace_bytes(o),
                  sliced ? o.counters : reinterpret_cast<const int32_t*>(o.workspace));
  float* const coefficients = static_cast<float*>(o.workspace);
  const ParameterGradients to{o.accumulate, o.dweight, o.dbias, coefficients};
  const bool vectors = whole_vectors(o.dtype, o.channels, o.dy, o.x, o.output, o.dresidual, o.dx);
  dispatch_vectors(o.dtype, vectors, [&](auto element, auto width) {
    using T = decltype(element);
    constexpr int kWidth = decltype(width)::value;
    Gradient<T> g{static_cast<const T*>(o.dy),
                  static_cast<const T*>(o.x),
                  static_cast<const T*>(o.output),
                  static_cast<T*>(o.dresidual),
                  static_cast<T*>(o.dx),
                  {o.mean, o.inverse_deviation, nullptr, o.weight, o.bias, 0},
                  o.activation};
    const Columns sums = reduced_columns(1, o.rows, o.channels, kWidth);
    const Columns applied = applied_columns(o.rows, o.channels, kWidth);
    const char* const field = "kernels::batch_norm_gradient.channels";
    const auto apply = [&](auto ending) {
      check_launch(launcher, launch(batch_norm_gradient_apply<T, kWidth, decltype(ending)::value>,
                                    column_grid(applied, field), kColumnThreads, 0, stream, g, applied, coefficients));
    };
    dispatch_ending(o.activation, [&](auto ending) {
      check_launch(launcher,
                   launch(batch_norm_gradient_sums<T, kWidth, decltype(ending)::value>, column_grid(sums, field),
                          kColumnThreads, 0, stream, g, sums, to, coefficients + 2 * o.channels, o.counters));
      if (o.dresidual == nullptr) apply(ending);
    });
    if (o.dresidual == nullptr) return;
    g.dy = g.dresidual;  // it has the way back through the activation behind it
    apply(std::integral_constant<Ending, Ending::none>());
  });
}

void batch_norm_commit(const BatchNormCommitOptions& o, CudaStream stream) {
  check_option(o.channels >= 1, "kernels::batch_norm_commit.channels", o.channels, "must be 1 or more");
  check_option(o.momentum >= 0 && o.momentum <= 1, "kernels::batch_norm_commit.momentum", o.momentum,
               "must be from 0 to 1");
  check_pointer(o.batch_mean, "kernels::batch_norm_commit.batch_mean");
  check_pointer(o.batch_variance, "kernels::batch_norm_commit.batch_variance");
  check_pointer(o.running_mean, "kernels::batch_norm_commit.running_mean");
  check_pointer(o.running_variance, "kernels::batch_norm_commit.running_variance");
  check_pointer(o.new_running_mean, "kernels::batch_norm_commit.new_running_mean");
  check_pointer(o.new_running_variance, "kernels::batch_norm_commit.new_running_variance");
  check_launch("kernels::batch_norm_commit",
               launch(batch_norm_commit_kernel, blocks_for(o.channels, 256, "kernels::batch_norm_commit.channels"), 256,
                      0, stream, o, static_cast<float>(o.momentum)));
}

}  // namespace brisk::kernels
