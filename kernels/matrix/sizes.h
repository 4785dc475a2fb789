// From the options of matrix multiplication and convolution to the sizes of their products, checked.
#pragma once

#include <array>
#include <initializer_list>
#include <numeric>
#include <vector>

#include "brisk/kernels/conv.h"
#include "brisk/kernels/gemm.h"
#include "kernels/matrix/choose.h"

namespace brisk::kernels {

inline constexpr int kPartsInLaunch = 4;  ///< of an input gradient

inline MatrixSizes sizes_of(const GemmOptions& options) {
  const OptionNames names("kernels::gemm");
  const auto extent = [&](int64_t value, const char* option) {
    check_option(value >= 1 && value <= kMaximumExtent, names(option).c_str(), value, "must be 1 to 2^31 - 1025");
  };
  extent(options.m, "m");
  extent(options.n, "n");
  extent(options.k, "k");
  MatrixSizes sizes;
  sizes.dtype = options.dtype;
  sizes.m = options.m;
  sizes.n = options.n;
  sizes.k = options.k;
  sizes.processors = options.processors;
  sizes.split_k = options.split_k;
  sizes.tile = options.tile;
  check_matrix(names, sizes);
  sizes.aligned = unit_of(options.dtype, options.a_transposed ? options.m : options.k) == 16 &&
                  unit_of(options.dtype, options.b_transposed ? options.k : options.n) == 16;
  return sizes;
}

inline int64_t taps(const Conv2dShape& s) { return s.kernel[0] * s.kernel[1]; }
inline int64_t out_pixels(const Conv2dShape& s) { return s.batch * s.out_height() * s.out_width(); }
inline bool is_pointwise(const Conv2dShape& s) {
  const std::array<int64_t, 2> one{1, 1}, zero{0, 0};
  return s.kernel == one && s.stride == one && s.padding == zero;
}

inline void check_shape(const OptionNames& names, const Conv2dShape& s) {
  constexpr int64_t kMost = int64_t{1} << 29;  // coordinates and their sums fit 32 bits
  const auto check = [&](const char* field, int64_t value, int64_t least) {
    check_option(value >= least && value <= kMost, names(field).c_str(), value,
                 least == 0 ? "must be 0 to 2^29" : "must be 1 to 2^29");
  };
  check("shape.batch", s.batch, 1);
  check("shape.channels", s.channels, 1);
  check("shape.out_channels", s.out_channels, 1);
  check_option(s.groups == 1, names("shape.groups").c_str(), s.groups, "must be 1: these kernels have no groups");
  const int64_t in[] = {s.height, s.width};
  const char* const in_names[] = {"shape.height", "shape.width"};
  for (size_t axis = 0; axis < 2; ++axis) {
    check(in_names[axis], in[axis], 1);
    check("shape.kernel", s.kernel[axis], 1);
    check("shape.stride", s.stride[axis], 1);
    check("shape.dilation", s.dilation[axis], 1);
    check("shape.padding", s.padding[axis], 0);
    check(in_names[axis], in[axis] + 2 * s.padding[axis], 1);
    check("shape.dilation", s.dilation[axis] * (s.kernel[axis] - 1), 0);
    check_option(s.out_size(in[axis], axis) >= 1, names(in_names[axis]).c_str(), in[axis],
                 "is smaller than the window");
  }
  const auto product = [&](const char* field, std::initializer_list<int64_t> factors) {
    int64_t value = 1;
    for (const int64_t factor : factors) {
      check_option(value <= kMaximumExtent / factor, names(field).c_str(), factor,
                   "makes a matrix of more than 2^31 - 1025 rows or columns; cut the batch");
      value *= factor;
    }
  };
  product("shape.batch", {s.height, s.width, s.batch});
  product("shape.batch", {s.out_height(), s.out_width(), s.batch});
  product("shape.channels", {s.kernel[0], s.kernel[1], s.channels});
  product("shape.out_channels", {s.kernel[0], s.kernel[1], s.out_channels});
}

/// The sizes of one of the three products; its k and the operands' contiguous channels.
template <class Options>
MatrixSizes matrix_sizes(const OptionNames& names, const Options& o, int64_t m, int64_t n, int64_t k,
                         int64_t parts = 1) {
  MatrixSizes sizes;
  sizes.dtype = o.dtype;
  sizes.m = m;
  sizes.n = n;
  sizes.k = k;
  sizes.parts = parts;
  sizes.processors = o.processors;
  sizes.split_k = o.split_k;
  sizes.tile = o.tile;
  check_matrix(names, sizes);
  return sizes;
}

inline MatrixSizes sizes_of(const Conv2dOptions& o) {
  check_shape(OptionNames("kernels::conv2d"), o.shape);
  MatrixSizes sizes = matrix_sizes(OptionNames("kernels::conv2d"), o, out_pixels(o.shape), o.shape.out_channels,
                                   taps(o.shape) * o.shape.channels);
  sizes.aligned = unit_of(o.dtype, o.shape.channels) == 16;
  return sizes;
}

inline MatrixSizes sizes_of(const Conv2dWeightGradientOptions& o) {
  check_shape(OptionNames("kernels::conv2d_weight_gradient"), o.shape);
  MatrixSizes sizes = matrix_sizes(OptionNames("kernels::conv2d_weight_gradient"), o, o.shape.out_channels,
                                   taps(o.shape) * o.shape.channels, out_pixels(o.shape));
  sizes.aligned = unit_of(o.dtype, o.shape.channels) == 16 && unit_of(o.dtype, o.shape.out_channels) == 16;
  return sizes;
}

/// Input positions first + i stride of one axis, i < count. The taps that reach them are first_tap + a tap_step; tap a
/// of position i is at output position first_output - a output_step + i.
struct AxisPart {
  int64_t first = 0, count = 0;
  int64_t first_tap = 0, taps = 0, tap_step = 1;
  int64_t first_output = 0, output_step = 0;
};

/// Position p is reached from output o by tap t when p = o stride - padding + t dilation.
inline std::vector<AxisPart> parts_of_axis(const Conv2dShape& s, size_t axis) {
  const int64_t in = axis == 0 ? s.height : s.width, stride = s.stride[axis], dilation = s.dilation[axis];
  const int64_t common = std::gcd(stride, dilation);
  std::vector<AxisPart> parts;
  for (int64_t first = 0; first < std::min(stride, in); ++first) {
    AxisPart part;
    part.first = first;
    part.count = ceil_divide(in - first, stride);
    part.tap_step = stride / common;
    part.output_step = dilation / common;
    for (int64_t tap = 0; tap < std::min(part.tap_step, s.kernel[axis]); ++tap) {
      const int64_t distance = first + s.padding[axis] - tap * dilation;
      if (distance % stride != 0) continue;
      part.first_tap = tap;
      part.taps = ceil_divide(s.kernel[axis] - tap, part.tap_step);
      part.first_output = distance / stride;
    }
    parts.push_back(part);
  }
  return parts;
}

/// The largest part's sizes.
inline MatrixSizes sizes_of(const Conv2dInputGradientOptions& o) {
  check_shape(OptionNames("kernels::conv2d_input_gradient"), o.shape);
  const Conv2dShape& s = o.shape;
  int64_t pixels = s.batch, most_taps = 1, parts = 1;
  for (const size_t axis : {0, 1}) {
    const std::vector<AxisPart> of_axis = parts_of_axis(s, axis);
    int64_t most = 1;
    for (const AxisPart& part : of_axis) most = std::max(most, part.taps);
    pixels *= of_axis[0].count;
    most_taps *= most;
    parts *= static_cast<int64_t>(of_axis.size());
  }
  MatrixSizes sizes = matrix_sizes(OptionNames("kernels::conv2d_input_gradient"), o, pixels, s.channels,
                                   most_taps * s.out_channels, std::min<int64_t>(parts, kPartsInLaunch));
  sizes.aligned = unit_of(o.dtype, s.channels) == 16 && unit_of(o.dtype, s.out_channels) == 16;
  return sizes;
}

}  // namespace brisk::kernels
