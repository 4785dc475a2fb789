// Softmax and its logarithm over the middle axis of [outer, size, inner], and their gradients; results are overwritten,
// also in place. With inner = 1 a line belongs to a warp or a block, which reads it twice: for its maximum and sum, and
// to write; with inner > 1 to a thread, neighbours reading beside each other.
#include "brisk/kernels/softmax.h"

#include "kernels/common/softmax.h"

namespace brisk::kernels {
namespace {

__device__ __forceinline__ float written(bool logarithm, float x, const Exponentials& e) {
  return logarithm ? (x - e.largest) - logf(e.sum) : expf(x - e.largest) / e.sum;
}

// resources: softmax_rows: registers <= 48, static shared <= 64 bytes
template <class T, int kWidth, int kThreads>
__global__ void __launch_bounds__(kRowBlock)
    softmax_rows(const T* x, T* y, int64_t rows, int64_t size, bool logarithm) {
  const int64_t row = row_index<kThreads>();
  if (row >= rows) return;
  x += row * size;
  y += row * size;
  Exponentials own = no_exponentials();
  for_vectors<kThreads, kWidth>(size, [&](int64_t i) {
    float v[kWidth];
    load_floats(x + i, v);
    take(own, v);
  });
  const Exponentials e = row_reduce<kThreads>(own, JoinExponentials());
  for_vectors<kThreads, kWidth>(size, [&](int64_t i) {
    float v[kWidth];
    load_floats(x + i, v);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) v[k] = written(logarithm, v[k], e);
    store_floats(y + i, v);
  });
}

// resources: softmax_lines: registers <= 56, static shared <= 0 bytes
template <class T>
__global__ void __launch_bounds__(kRowBlock)
    softmax_lines(const T* x, T* y, int64_t lines, int64_t size, int64_t inner, bool logarithm) {
  const int64_t line = int64_t{blockIdx.x} * kRowBlock + threadIdx.x;
  if (line >= lines) return;
  const int64_t start = line / inner * size * inner + line % inner;
  Exponentials e = no_exponentials();
  for (int64_t k = 0; k < size; ++k) {
    const float v[1] = {to_float(x[start + k * inner])};
    take(e, v);
  }
  for (int64_t k = 0; k < size; ++k) {
    const int64_t at = start + k * inner;
    y[at] = from_float<T>(written(logarithm, to_float(x[at]), e));
  }
}

/// What the gradient sums over a line, and the gradient of an element.
__device__ __forceinline__ float summed(bool logarithm, float dy, float y) { return logarithm ? dy : dy * y; }
__device__ __forceinline__ float gradient(bool logarithm, float dy, float y, float sum) {
  return logarithm ? dy - expf(y) * sum : y * (dy - sum);
}

// resources: softmax_gradient_rows: registers <= 72, static shared <= 32 bytes
template <class T, int kWidth, int kThreads>
__global__ void __launch_bounds__(kRowBlock)
    softmax_gradient_rows(const T* dy, const T* y, T* dx, int64_t rows, int64_t size, bool logarithm) {
  const int64_t row = row_index<kThreads>();
  if (row >= rows) return;
  dy += row * size;
  y += row * size;
  dx += row * size;
  float sum = 0;
  for_vectors<kThreads, kWidth>(size, [&](int64_t i) {
    float d[kWidth], v[kWidth];
    load_floats(dy + i, d);
    load_floats(y + i, v);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) sum += summed(logarithm, d[k], v[k]);
  });
  sum = row_reduce<kThreads>(sum, Add());
  for_vectors<kThreads, kWidth>(size, [&](int64_t i) {
    float d[kWidth], v[kWidth];
    load_floats(dy + i, d);
    load_floats(y + i, v);
#pragma unroll
    for (int k = 0; k < kWidth; ++k) d[k] = gradient(logarithm, d[k], v[k], sum);
    store_floats(dx + i, d);
  });
}

// resources: softmax_gradient_lines: registers <= 48, static shared <= 0 bytes
template <class T>
__global__ void __launch_bounds__(kRowBlock)
    softmax_gradient_lines(const T* dy, const T* y, T* dx, int64_t lines, int64_t size, int64_t inner, bool logarithm) {
  const int64_t line = int64_t{blockIdx.x} * kRowBlock + threadIdx.x;
  if (line >= lines) return;
  const int64_t start = line / inner * size * inner + line % inner;
  float sum = 0;
  for (int64_t k = 0; k < size; ++k) {
    const int64_t at = start + k * inner;
    sum += summed(logarithm, to_float(dy[at]), to_float(y[at]));
  }
  for (int64_t k = 0; k < size; ++k) {
    const int64_t at = start + k * inner;
    dx[at] = from_float<T>(gradient(logarithm, to_float(dy[at]), to_float(y[at]), sum));
  }
}

void check_lines(const std::string& launcher, DType dtype, int64_t outer, int64_t size, int64_t inner) {
  check_float(dtype, (launcher + ".dtype").c_str());
  check_option(outer >= 1, (launcher + ".outer").c_str(), outer, "must be 1 or more");
  check_option(size >= 1, (launcher + ".size").c_str(), size, "must be 1 or more");
  check_option(inner >= 1, (launcher + ".inner").c_str(), inner, "must be 1 or more");
}

void forward(const std::string& launcher, const SoftmaxOptions& o, bool logarithm, CudaStream stream) {
  check_lines(launcher, o.dtype, o.outer, o.size, o.inner);
  check_pointer(o.x, (launcher + ".x").c_str());
  check_pointer(o.y, (launcher + ".y").c_str());
  const std::string outer = launcher + ".outer";
  if (o.inner > 1) {
    dispatch(o.dtype, [&](auto element) {
      using T = decltype(element);
      check_launch(launcher.c_str(), launch(softmax_lines<T>, blocks_for(o.outer * o.inner, kRowBlock, outer.c_str()),
                                            kRowBlock, 0, stream, static_cast<const T*>(o.x), static_cast<T*>(o.y),
                                            o.outer * o.inner, o.size, o.inner, logarithm));
    });
    return;
  }
  dispatch_rows(o.dtype, whole_vectors(o.dtype, o.size, o.x, o.y), o.size, [&](auto element, auto width, auto threads) {
    using T = decltype(element);
    constexpr int kThreads = decltype(threads)::value;
    check_launch(
        launcher.c_str(),
        launch(softmax_rows<T, decltype(width)::value, kThreads>, row_blocks<kThreads>(o.outer, outer.c_str()),
               kRowBlock, 0, stream, static_cast<const T*>(o.x), static_cast<T*>(o.y), o.outer, o.size, logarithm));
  });
}

void backward(const std::string& launcher, const SoftmaxGradientOptions& o, bool logarithm, CudaStream stream) {
  check_lines(launcher, o.dtype, o.outer, o.size, o.inner);
  check_pointer(o.dy, (launcher + ".dy").c_str());
  check_pointer(o.y, (launcher + ".y").c_str());
  check_pointer(o.dx, (launcher + ".dx").c_str());
  const std::string outer = launcher + ".outer";
  if (o.inner > 1) {
    dispatch(o.dtype, [&](auto element) {
      using T = decltype(element);
      check_launch(launcher.c_str(),
                   launch(softmax_gradient_lines<T>, blocks_for(o.outer * o.inner, kRowBlock, outer.c_str()), kRowBlock,
                          0, stream, static_cast<const T*>(o.dy), static_cast<const T*>(o.y), static_cast<T*>(o.dx),
                          o.outer * o.inner, o.size, o.inner, logarithm));
    });
    return;
  }
  const bool vectors = whole_vectors(o.dtype, o.size, o.dy, o.y, o.dx);
  dispatch_rows(o.dtype, vectors, o.size, [&](auto element, auto width, auto threads) {
    using T = decltype(element);
    constexpr int kThreads = decltype(threads)::value;
    check_launch(launcher.c_str(),
                 launch(softmax_gradient_rows<T, decltype(width)::value, kThreads>,
                        row_blocks<kThreads>(o.outer, outer.c_str()), kRowBlock, 0, stream, static_cast<const T*>(o.dy),
                        static_cast<const T*>(o.y), static_cast<T*>(o.dx), o.outer, o.size, logarithm));
  });
}

}  // namespace

void softmax(const SoftmaxOptions& options, CudaStream stream) { forward("kernels::softmax", options, false, stream); }
void log_softmax(const SoftmaxOptions& options, CudaStream stream) {
  forward("kernels::log_softmax", options, true, stream);
}
void softmax_gradient(const SoftmaxGradientOptions& options, CudaStream stream) {
  backward("kernels::softmax_gradient", options, false, stream);
}
void log_softmax_gradient(const SoftmaxGradientOptions& options, CudaStream stream) {
  backward("kernels::log_softmax_gradient", options, true, stream);
}

}  // namespace brisk::kernels
