// Pooling over windows of [batch, height, width, channels]; results are overwritten. A thread makes 16 bytes of
// channels of one pixel: forward from the window's pixels, backward from the windows that hold its pixel, so that each
// sum has one order and nothing is zeroed before. Blocks are (pixels x vectors of an image, images).
#include "brisk/kernels/pool.h"

#include "kernels/common/reduce.h"

namespace brisk::kernels {
namespace {

constexpr int kPoolThreads = 128;

/// One direction of a pooling: sizes of the unpooled and the pooled image.
struct Axis {
  int32_t in, out, kernel, stride, padding;

  /// Inputs of an output's window, padding left out.
  __device__ __forceinline__ int32_t first_in(int32_t o) const { return max(0, o * stride - padding); }
  __device__ __forceinline__ int32_t last_in(int32_t o) const { return min(in, o * stride - padding + kernel); }
  /// Outputs whose windows hold an input.
  __device__ __forceinline__ int32_t first_out(int32_t i) const {
    return max(0, i + padding - kernel + stride) / stride;
  }
  __device__ __forceinline__ int32_t last_out(int32_t i) const { return min(out, (i + padding) / stride + 1); }
};

struct Pooling {
  Axis height, width;
  int64_t batch, channels;
  uint32_t vectors;  ///< of a pixel
  uint32_t items;    ///< vectors of an image of the side that is written
  float share;       ///< 1 / (kernel height x width)
};

/// Calls f(image, row, column, first channel) for the pixels of images of `width` columns that are this thread's.
template <int kWidth, class F>
__device__ __forceinline__ void for_pixel(const Pooling& p, int32_t width, const F& f) {
  const uint32_t item = blockIdx.x * kPoolThreads + threadIdx.x;
  if (item >= p.items) return;
  const uint32_t pixel = item / p.vectors, columns = static_cast<uint32_t>(width);
  const int64_t channel = int64_t{item % p.vectors} * kWidth;
  const int32_t row = static_cast<int32_t>(pixel / columns), column = static_cast<int32_t>(pixel % columns);
  for (int64_t n = blockIdx.y; n < p.batch; n += gridDim.y) f(n, row, column, channel);
}

template <int kWidth>
__device__ __forceinline__ void load_indices(const int32_t* from, int32_t (&to)[kWidth]) {
  constexpr int kStep = kWidth < 4 ? kWidth : 4;
#pragma unroll
  for (int i = 0; i < kWidth; i += kStep) {
    const Pack<int32_t, kStep> pack = load<kStep>(from + i);
#pragma unroll
    for (int k = 0; k < kStep; ++k) to[i + k] = pack.element[k];
  }
}

template <int kWidth>
__device__ __forceinline__ void store_indices(int32_t* to, const int32_t (&from)[kWidth]) {
  constexpr int kStep = kWidth < 4 ? kWidth : 4;
#pragma unroll
  for (int i = 0; i < kWidth; i += kStep) {
    Pack<int32_t, kStep> pack;
#pragma unroll
    for (int k = 0; k < kStep; ++k) pack.element[k] = from[i + k];
    store(to + i, pack);
  }
}

// resources: max_pool: registers <= 64, static shared <= 0 bytes
template <class T, int kWidth>
__global__ void __launch_bounds__(kPoolThreads, 8) max_pool(const T* x, T* y, int32_t* index, Pooling p) {
  for_pixel<kWidth>(p, p.width.out, [&](int64_t n, int32_t row, int32_t column, int64_t channel) {
    const T* image = x + n * p.height.in * p.width.in * p.channels + channel;
    const int32_t first = p.height.first_in(row) * p.width.in + p.width.first_in(column);
    float best[kWidth];
    int32_t at[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) best[i] = -INFINITY, at[i] = first;
    for (int32_t h = p.height.first_in(row); h < p.height.last_in(row); ++h) {
      for (int32_t w = p.width.first_in(column); w < p.width.last_in(column); ++w) {
        const int32_t pixel = h * p.width.in + w;
        float v[kWidth];
        load_floats(image + pixel * p.channels, v);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) {
          if (!(v[i] > best[i] || (v[i] != v[i] && best[i] == best[i]))) continue;  // the first NaN stays
          best[i] = v[i];
          at[i] = pixel;
        }
      }
    }
    const int64_t to = ((n * p.height.out + row) * p.width.out + column) * p.channels + channel;
    store_floats(y + to, best);
    store_indices(index + to, at);
  });
}

// resources: max_pool_gradient: registers <= 64, static shared <= 0 bytes
template <class T, int kWidth>
__global__ void __launch_bounds__(kPoolThreads, 8)
    max_pool_gradient(const T* dy, const int32_t* index, T* dx, Pooling p) {
  for_pixel<kWidth>(p, p.width.in, [&](int64_t n, int32_t row, int32_t column, int64_t channel) {
    const int64_t image = n * p.height.out * p.width.out * p.channels + channel;
    const int32_t own = row * p.width.in + column;
    float sum[kWidth] = {};
    for (int32_t h = p.height.first_out(row); h < p.height.last_out(row); ++h) {
      for (int32_t w = p.width.first_out(column); w < p.width.last_out(column); ++w) {
        const int64_t from = image + (h * p.width.out + w) * p.channels;
        float d[kWidth];
        int32_t at[kWidth];
        load_floats(dy + from, d);
        load_indices(index + from, at);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum[i] += at[i] == own ? d[i] : 0.0f;
      }
    }
    store_floats(dx + ((n * p.height.in + row) * p.width.in + column) * p.channels + channel, sum);
  });
}

// resources: avg_pool: registers <= 64, static shared <= 0 bytes
template <class T, int kWidth, bool kBackward>
__global__ void __launch_bounds__(kPoolThreads, 8) avg_pool(const T* from, T* to, Pooling p) {
  const Axis &height = p.height, &width = p.width;
  const int32_t from_rows = kBackward ? height.out : height.in, from_columns = kBackward ? width.out : width.in;
  const int32_t to_rows = kBackward ? height.in : height.out, to_columns = kBackward ? width.in : width.out;
  for_pixel<kWidth>(p, to_columns, [&](int64_t n, int32_t row, int32_t column, int64_t channel) {
    const T* image = from + n * from_rows * from_columns * p.channels + channel;
    const int32_t first_h = kBackward ? height.first_out(row) : height.first_in(row);
    const int32_t last_h = kBackward ? height.last_out(row) : height.last_in(row);
    const int32_t first_w = kBackward ? width.first_out(column) : width.first_in(column);
    const int32_t last_w = kBackward ? width.last_out(column) : width.last_in(column);
    float sum[kWidth] = {};
    for (int32_t h = first_h; h < last_h; ++h) {
      for (int32_t w = first_w; w < last_w; ++w) {
        float v[kWidth];
        load_floats(image + (h * from_columns + w) * p.channels, v);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) sum[i] += v[i];
      }
    }
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum[i] *= p.share;
    store_floats(to + ((n * to_rows + row) * to_columns + column) * p.channels + channel, sum);
  });
}

Axis checked_axis(const std::string& launcher, const Pool2dShape& shape, size_t axis) {
  const auto field = [&](const char* what) { return launcher + ".shape." + what + (axis == 0 ? "[0]" : "[1]"); };
  const int64_t size = axis == 0 ? shape.height : shape.width;
  const int64_t kernel = shape.kernel[axis], stride = shape.stride[axis], padding = shape.padding[axis];
  const int64_t most = 1 << 28;
  check_option(size >= 1 && size <= most, (launcher + (axis == 0 ? ".shape.height" : ".shape.width")).c_str(), size,
               "must be from 1 to 2^28");
  check_option(kernel >= 1 && kernel <= most, field("kernel").c_str(), kernel, "must be from 1 to 2^28");
  check_option(stride >= 1 && stride <= most, field("stride").c_str(), stride, "must be from 1 to 2^28");
  check_option(padding >= 0 && padding <= kernel / 2, field("padding").c_str(), padding,
               "must be from 0 to half of the kernel");
  check_option(kernel <= size + 2 * padding, field("kernel").c_str(), kernel,
               "must not be larger than the padded image");
  const int64_t out = (size + 2 * padding - kernel) / stride + 1;
  return {static_cast<int32_t>(size), static_cast<int32_t>(out), static_cast<int32_t>(kernel),
          static_cast<int32_t>(stride), static_cast<int32_t>(padding)};
}

Pooling checked_pooling(const std::string& launcher, const Pool2dShape& shape, DType dtype) {
  Pooling p{};
  check_option(shape.batch >= 1, (launcher + ".shape.batch").c_str(), shape.batch, "must be 1 or more");
  check_option(shape.channels >= 1, (launcher + ".shape.channels").c_str(), shape.channels, "must be 1 or more");
  check_float(dtype, (launcher + ".dtype").c_str());
  p.height = checked_axis(launcher, shape, 0);
  p.width = checked_axis(launcher, shape, 1);
  const auto fits = [&](int64_t rows, int64_t columns) { return rows <= INT32_MAX / columns / shape.channels; };
  check_option(fits(p.height.in, p.width.in) && fits(p.height.out, p.width.out), (launcher + ".shape.channels").c_str(),
               shape.channels, "makes an image of more than 2^31 - 1 elements");
  p.batch = shape.batch;
  p.channels = shape.channels;
  p.share = static_cast<float>(1.0 / static_cast<double>(shape.kernel[0] * shape.kernel[1]));
  return p;
}

/// Calls f(T(), width, grid) with the pooling's vectors set; backward: the unpooled side is written.
template <class F>
void dispatch_pooling(DType dtype, bool vectors, bool backward, Pooling& p, F f) {
  dispatch_vectors(dtype, vectors, [&](auto element, auto width) {
    const int64_t pixels = backward ? int64_t{p.height.in} * p.width.in : int64_t{p.height.out} * p.width.out;
    p.vectors = static_cast<uint32_t>(p.channels / decltype(width)::value);
    p.items = static_cast<uint32_t>(pixels * p.vectors);
    f(element, width,
      dim3((p.items + kPoolThreads - 1) / kPoolThreads, static_cast<unsigned>(std::min<int64_t>(p.batch, 65535))));
  });
}

template <bool kBackward, class Options>
void average(const std::string& launcher, const Options& o, const void* from, void* to, CudaStream stream) {
  Pooling p = checked_pooling(launcher, o.shape, o.dtype);
  dispatch_pooling(o.dtype, whole_vectors(o.dtype, o.shape.channels, from, to), kBackward, p,
                   [&](auto element, auto width, dim3 grid) {
                     using T = decltype(element);
                     check_launch(launcher.c_str(),
                                  launch(avg_pool<T, decltype(width)::value, kBackward>, grid, kPoolThreads, 0, stream,
                                         static_cast<const T*>(from), static_cast<T*>(to), p));
                   });
}

}  // namespace

void max_pool2d(const MaxPool2dOptions& o, CudaStream stream) {
  const char* const launcher = "kernels::max_pool2d";
  Pooling p = checked_pooling(launcher, o.shape, o.dtype);
  check_pointer(o.x, "kernels::max_pool2d.x");
  check_pointer(o.y, "kernels::max_pool2d.y");
  check_pointer(o.index, "kernels::max_pool2d.index");
  dispatch_pooling(o.dtype, whole_vectors(o.dtype, o.shape.channels, o.x, o.y, o.index), false, p,
                   [&](auto element, auto width, dim3 grid) {
                     using T = decltype(element);
                     check_launch(launcher, launch(max_pool<T, decltype(width)::value>, grid, kPoolThreads, 0, stream,
                                                   static_cast<const T*>(o.x), static_cast<T*>(o.y), o.index, p));
                   });
}

void max_pool2d_gradient(const MaxPool2dGradientOptions& o, CudaStream stream) {
  const char* const launcher = "kernels::max_pool2d_gradient";
  Pooling p = checked_pooling(launcher, o.shape, o.dtype);
  check_pointer(o.dy, "kernels::max_pool2d_gradient.dy");
  check_pointer(o.index, "kernels::max_pool2d_gradient.index");
  check_pointer(o.dx, "kernels::max_pool2d_gradient.dx");
  dispatch_pooling(o.dtype, whole_vectors(o.dtype, o.shape.channels, o.dy, o.dx, o.index), true, p,
                   [&](auto element, auto width, dim3 grid) {
                     using T = decltype(element);
                     check_launch(launcher,
                                  launch(max_pool_gradient<T, decltype(width)::value>, grid, kPoolThreads, 0, stream,
                                         static_cast<const T*>(o.dy), o.index, static_cast<T*>(o.dx), p));
                   });
}

void avg_pool2d(const AvgPool2dOptions& o, CudaStream stream) {
  check_pointer(o.x, "kernels::avg_pool2d.x");
  check_pointer(o.y, "kernels::avg_pool2d.y");
  average<false>("kernels::avg_pool2d", o, o.x, o.y, stream);
}

void avg_pool2d_gradient(const AvgPool2dGradientOptions& o, CudaStream stream) {
  check_pointer(o.dy, "kernels::avg_pool2d_gradient.dy");
  check_pointer(o.dx, "kernels::avg_pool2d_gradient.dx");
  average<true>("kernels::avg_pool2d_gradient", o, o.dy, o.dx, stream);
}

}  // namespace brisk::kernels
