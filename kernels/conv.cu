// Convolution of images [batch, height, width, channels] and its two gradients, as matrix multiplication whose operands
// are gathered from the images while they are copied (implicit GEMM):
//   conv2d                  output [pixels, out channels] = windows [pixels, taps x channels] * weights^T; overwritten
//   conv2d_input_gradient   input pixels take their gradient from the output pixels whose windows see them. A stride
//   cuts
//                           the image into stride height x stride width parts whose pixels are seen by the same taps:
//                           each part is a convolution of stride 1 with some of the taps; overwritten
//   conv2d_weight_gradient  [out channels, taps x channels] = output gradient^T * windows, summed over pixels;
//   overwritten or
//                           added to
// Channels that are no multiple of 16 bytes are gathered by words or elements. A 1 x 1 window is a plain matrix.
#include "brisk/kernels/conv.h"

#include <vector>

#include "kernels/matrix/launcher.h"
#include "kernels/matrix/sizes.h"
#include "kernels/matrix/windows.h"

namespace brisk::kernels {
namespace {

// resources: conv2d_kernel 128x128: registers <= 168, static shared <= 0 bytes
// resources: conv2d_kernel 128x64: registers <= 192, static shared <= 0 bytes
// resources: conv2d_kernel 64x64: registers <= 128, static shared <= 0 bytes
// resources: conv2d_kernel f32: registers <= 255, static shared <= 0 bytes
template <class Math, class A, class B>
__global__ void __launch_bounds__(Math::kThreads, 256 / Math::kThreads)
    conv2d_kernel(const __grid_constant__ typename A::Parameters a, const __grid_constant__ typename B::Parameters b,
                  const __grid_constant__ Output output, const __grid_constant__ SameRow rows, int k_tiles) {
  matrix_tile<Math, A, B>(a, b, output, rows, k_tiles);
}

template <class T>
struct Part {
  Windows<T> a;
  Taps<T> b;
  PartRow rows;
  int k_tiles;
};
template <class T>
struct Parts {
  Part<T> part[kPartsInLaunch];
};

// resources: conv2d_input_gradient_kernel 128x128: registers <= 176, static shared <= 0 bytes
// resources: conv2d_input_gradient_kernel 128x64: registers <= 200, static shared <= 0 bytes
// resources: conv2d_input_gradient_kernel 64x64: registers <= 152, static shared <= 0 bytes
// resources: conv2d_input_gradient_kernel f32: registers <= 216, static shared <= 0 bytes
template <class Math, class A, class B>
__global__ void __launch_bounds__(Math::kThreads, 256 / Math::kThreads)
    conv2d_input_gradient_kernel(const __grid_constant__ Parts<typename Math::T> parts,
                                 const __grid_constant__ Output output) {
  const Part<typename Math::T>& part = parts.part[blockIdx.z];
  matrix_tile<Math, A, B>(part.a, part.b, output, part.rows, part.k_tiles);
}

// resources: conv2d_weight_gradient_kernel 128x128: registers <= 255, static shared <= 0 bytes
// resources: conv2d_weight_gradient_kernel 128x64: registers <= 184, static shared <= 0 bytes
// resources: conv2d_weight_gradient_kernel 64x64: registers <= 144, static shared <= 0 bytes
// resources: conv2d_weight_gradient_kernel f32: registers <= 168, static shared <= 0 bytes
template <class Math, class A, class B>
__global__ void __launch_bounds__(Math::kThreads, 256 / Math::kThreads)
    conv2d_weight_gradient_kernel(const __grid_constant__ typename A::Parameters a,
                                  const __grid_constant__ typename B::Parameters b,
                                  const __grid_constant__ Output output, const __grid_constant__ SameRow rows,
                                  int k_tiles) {
  matrix_tile<Math, A, B>(a, b, output, rows, k_tiles);
}

const OptionNames kForward("kernels::conv2d");
const OptionNames kInputGradient("kernels::conv2d_input_gradient");
const OptionNames kWeightGradient("kernels::conv2d_weight_gradient");

template <class T>
Windows<T> input_windows(const Conv2dShape& s, const void* input, DType dtype) {
  Windows<T> w{};
  w.data = static_cast<const T*>(input);
  w.channels = static_cast<int>(s.channels);
  w.height = static_cast<int>(s.height);
  w.width = static_cast<int>(s.width);
  w.pixels = static_cast<int>(out_pixels(s));
  w.elements = static_cast<int>(taps(s) * s.channels);
  w.by_image = FastDivide(s.out_height() * s.out_width());
  w.by_row = FastDivide(s.out_width());
  w.by_tap = FastDivide(s.channels);
  w.by_tap_row = FastDivide(s.kernel[1]);
  for (size_t axis = 0; axis < 2; ++axis) {
    w.pixel_step[axis] = static_cast<int>(s.stride[axis]);
    w.first[axis] = -static_cast<int>(s.padding[axis]);
    w.tap_step[axis] = static_cast<int>(s.dilation[axis]);
  }
  w.unit = unit_of(dtype, s.channels);
  return w;
}

template <class T>
Part<T> input_gradient_part(const Conv2dInputGradientOptions& o, const AxisPart& h, const AxisPart& w) {
  const Conv2dShape& s = o.shape;
  const int64_t pixels = h.count * w.count, elements = h.taps * w.taps * s.out_channels;
  const FastDivide by_image(pixels), by_row(w.count), by_tap(s.out_channels), by_tap_row(std::max<int64_t>(w.taps, 1));
  const auto number = [](int64_t value) { return static_cast<int>(value); };
  Part<T> part{};
  part.a = {static_cast<const T*>(o.output_gradient),
            number(s.out_channels),
            number(s.out_height()),
            number(s.out_width()),
            number(s.batch * pixels),
            number(elements),
            by_image,
            by_row,
            by_tap,
            by_tap_row,
            {1, 1},
            {number(h.first_output), number(w.first_output)},
            {-number(h.output_step), -number(w.output_step)},
            unit_of(o.dtype, s.out_channels)};
  part.b = {static_cast<const T*>(o.weights),
            number(s.channels),
            number(taps(s)),
            number(elements),
            by_tap,
            by_tap_row,
            number(h.first_tap * s.kernel[1] + w.first_tap),
            {number(h.tap_step * s.kernel[1]), number(w.tap_step)},
            unit_of(o.dtype, s.channels)};
  part.rows = {number(s.batch * pixels),
               by_image,
               by_row,
               number(s.height),
               number(s.width),
               {number(h.first), number(w.first)},
               {number(s.stride[0]), number(s.stride[1])}};
  part.k_tiles = number(ceil_divide(elements, kTileK<T>));
  return part;
}

/// What a 1 x 1 window makes of the options: the same product as gemm's. m, n, k as the sizes say.
template <class Options>
GemmOptions as_gemm(const Options& o, const MatrixSizes& sizes) {
  GemmOptions gemm;
  gemm.counters = o.counters;
  gemm.dtype = gemm.d_dtype = o.dtype;
  gemm.k = sizes.k;
  gemm.m = sizes.m;
  gemm.n = sizes.n;
  gemm.processors = o.processors;
  gemm.split_k = o.split_k;
  gemm.tile = o.tile;
  gemm.workspace = o.workspace;
  gemm.workspace_bytes = o.workspace_bytes;
  return gemm;
}

}  // namespace

void conv2d(const Conv2dOptions& o, CudaStream stream) {
  const MatrixSizes sizes = sizes_of(o);
  check_data(kForward, "input", o.input);
  check_data(kForward, "weights", o.weights);
  check_data(kForward, "output", o.output);
  if (o.residual != nullptr) check_data(kForward, "residual", o.residual);
  MatrixChoice choice = choose(sizes);
  check_workspace(kForward, sizes, choice, o.workspace, o.workspace_bytes, o.counters);
  if (is_pointwise(o.shape)) {
    GemmOptions product = as_gemm(o, sizes);
    product.a = o.input;
    product.activation = o.activation;
    product.b = o.weights;
    product.b_transposed = true;
    product.bias = o.bias;
    product.d = o.output;
    product.residual = o.residual;
    product.statistics = o.statistics;
    gemm(product, stream);
    return;
  }
  Output output = output_of(choice, o.shape.out_channels, o.workspace, o.counters);
  output.d = o.output;
  output.residual = o.residual;
  output.bias = o.bias;
  output.statistics = o.statistics;
  output.activation = o.activation;
  output.low = o.dtype != DType::f32;
  const dim3 grid = grid_of(kForward, choice, 1);
  dispatch_math<true, true, 32>(o.dtype, choice.tile, sizes.aligned, [&](auto math, auto aligned) {
    using Math = typename decltype(math)::type;
    using T = typename Math::T;
    using A = WindowRows<T, Math::kM, Math::kThreads, aligned()>;
    using B = MatrixOperand<T, Math::kN, Math::kThreads, true, aligned()>;
    const typename B::Parameters b{static_cast<const T*>(o.weights), output.columns, static_cast<int>(sizes.k),
                                   unit_of(o.dtype, sizes.k)};
    check_launch(kForward.launcher(), launch(conv2d_kernel<Math, A, B>, grid, Math::kThreads, kSharedBytes<Math>,
                                             stream, input_windows<T>(o.shape, o.input, o.dtype), b, output,
                                             SameRow{static_cast<int>(sizes.m)}, static_cast<int>(choice.k_tiles)));
  });
}

void conv2d_input_gradient(const Conv2dInputGradientOptions& o, CudaStream stream) {
  const MatrixSizes sizes = sizes_of(o);
  check_data(kInputGradient, "output_gradient", o.output_gradient);
  check_data(kInputGradient, "weights", o.weights);
  check_data(kInputGradient, "input_gradient", o.input_gradient);
  if (o.residual != nullptr) check_data(kInputGradient, "residual", o.residual);
  MatrixChoice choice = choose(sizes);
  check_workspace(kInputGradient, sizes, choice, o.workspace, o.workspace_bytes, o.counters);
  if (is_pointwise(o.shape)) {
    GemmOptions product = as_gemm(o, sizes);
    product.a = o.output_gradient;
    product.b = o.weights;
    product.d = o.input_gradient;
    product.residual = o.residual;
    gemm(product, stream);
    return;
  }
  Output output = output_of(choice, o.shape.channels, o.workspace, o.counters);
  output.d = o.input_gradient;
  output.residual = o.residual;
  output.low = o.dtype != DType::f32;
  dispatch_math<true, false, 32>(o.dtype, choice.tile, sizes.aligned, [&](auto math, auto aligned) {
    using Math = typename decltype(math)::type;
    using T = typename Math::T;
    using A = WindowRows<T, Math::kM, Math::kThreads, aligned()>;
    using B = TapRows<T, Math::kN, Math::kThreads, aligned()>;
    Parts<T> parts{};
    int64_t count = 0;
    const auto flush = [&] {
      if (count == 0) return;
      check_launch(kInputGradient.launcher(),
                   launch(conv2d_input_gradient_kernel<Math, A, B>, grid_of(kInputGradient, choice, count),
                          Math::kThreads, kSharedBytes<Math>, stream, parts, output));
      count = 0;
    };
    for (const AxisPart& h : parts_of_axis(o.shape, 0)) {
      for (const AxisPart& w : parts_of_axis(o.shape, 1)) {
        parts.part[count++] = input_gradient_part<T>(o, h, w);
        if (count == kPartsInLaunch) flush();
      }
    }
    flush();
  });
}

void conv2d_weight_gradient(const Conv2dWeightGradientOptions& o, CudaStream stream) {
  const MatrixSizes sizes = sizes_of(o);
  check_data(kWeightGradient, "input", o.input);
  check_data(kWeightGradient, "output_gradient", o.output_gradient);
  check_data(kWeightGradient, "weight_gradient", o.weight_gradient);
  MatrixChoice choice = choose(sizes);
  check_workspace(kWeightGradient, sizes, choice, o.workspace, o.workspace_bytes, o.counters);
  if (is_pointwise(o.shape)) {
    GemmOptions product = as_gemm(o, sizes);
    product.a = o.output_gradient;
    product.a_transposed = true;
    product.accumulate = o.accumulate;
    product.alpha = o.alpha;
    product.b = o.input;
    product.d = o.weight_gradient;
    product.d_dtype = DType::f32;
    gemm(product, stream);
    return;
  }
  Output output = output_of(choice, sizes.n, o.workspace, o.counters);
  output.d = o.weight_gradient;
  output.alpha = o.alpha;
  output.accumulate = o.accumulate;
  const dim3 grid = grid_of(kWeightGradient, choice, 1);
  dispatch_math<false, false, 64>(o.dtype, choice.tile, sizes.aligned, [&](auto math, auto aligned) {
    using Math = typename decltype(math)::type;
    using T = typename Math::T;
    using A = MatrixOperand<T, Math::kM, Math::kThreads, false, aligned()>;
    using B = WindowColumns<T, Math::kN, Math::kThreads, aligned()>;
    const typename A::Parameters a{static_cast<const T*>(o.output_gradient), static_cast<int>(sizes.k),
                                   static_cast<int>(sizes.m), unit_of(o.dtype, sizes.m)};
    check_launch(kWeightGradient.launcher(),
                 launch(conv2d_weight_gradient_kernel<Math, A, B>, grid, Math::kThreads, kSharedBytes<Math>, stream, a,
                        input_windows<T>(o.shape, o.input, o.dtype), output, SameRow{static_cast<int>(sizes.m)},
                        static_cast<int>(choice.k_tiles)));
  });
}

}  // namespace brisk::kernels
