// Convolution and its gradients against sums in double over the definition, on all kernels that sizes and types lead
// to.
#include "brisk/kernels/conv.h"

#include <cstring>

#include "support/error_text.h"
#include "tests/kernels/matrix_support.h"

namespace brisk::kernels {
namespace {

using simt::DeviceBuffer;

std::string text(const Conv2dShape& s) {
  const auto pair = [](const std::array<int64_t, 2>& p) { return std::to_string(p[0]) + "," + std::to_string(p[1]); };
  return std::to_string(s.batch) + " x " + std::to_string(s.height) + " x " + std::to_string(s.width) + " x " +
         std::to_string(s.channels) + " to " + std::to_string(s.out_channels) + ", kernel " + pair(s.kernel) +
         " stride " + pair(s.stride) + " padding " + pair(s.padding) + " dilation " + pair(s.dilation);
}

int64_t input_count(const Conv2dShape& s) { return s.batch * s.height * s.width * s.channels; }
int64_t output_count(const Conv2dShape& s) { return s.batch * s.out_height() * s.out_width() * s.out_channels; }
int64_t weight_count(const Conv2dShape& s) { return s.out_channels * s.kernel[0] * s.kernel[1] * s.channels; }

/// Calls f(input index, weight index, output index) for each product of the convolution.
template <class F>
void for_each_product(const Conv2dShape& s, F f) {
  int64_t out = 0;
  for (int64_t n = 0; n < s.batch; ++n)
    for (int64_t i = 0; i < s.out_height(); ++i)
      for (int64_t j = 0; j < s.out_width(); ++j)
        for (int64_t o = 0; o < s.out_channels; ++o, ++out)
          for (int64_t a = 0; a < s.kernel[0]; ++a)
            for (int64_t b = 0; b < s.kernel[1]; ++b) {
              const int64_t h = i * s.stride[0] - s.padding[0] + a * s.dilation[0];
              const int64_t w = j * s.stride[1] - s.padding[1] + b * s.dilation[1];
              if (h < 0 || h >= s.height || w < 0 || w >= s.width) continue;
              for (int64_t c = 0; c < s.channels; ++c) {
                f(static_cast<size_t>(((n * s.height + h) * s.width + w) * s.channels + c),
                  static_cast<size_t>(((o * s.kernel[0] + a) * s.kernel[1] + b) * s.channels + c),
                  static_cast<size_t>(out));
              }
            }
}

template <class Out>
void expect_near(const std::vector<Out>& got, const std::vector<Exact>& want, int64_t terms) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(to_float(got[i]), want[i].value, bound<Out>(want[i], terms + 64)) << i;
}

/// How a launch is to be done.
struct How {
  MatrixTile tile = MatrixTile::automatic;
  int split_k = 0;
};

template <class Options>
void apply(Options& options, const How& how) {
  options.tile = how.tile;
  options.split_k = how.split_k;
}

/// Everything one shape needs, and the three passes on it.
template <class T>
struct Convolution {
  explicit Convolution(const Conv2dShape& of) : shape(of) {
    input = uniform<T>(input_count(shape), 1);
    weights = uniform<T>(weight_count(shape), 2);
    output_gradient = uniform<T>(output_count(shape), 3);
    residual = uniform<T>(std::max(input_count(shape), output_count(shape)), 4);
    bias = uniform<float>(shape.out_channels, 5);
    before = uniform<float>(weight_count(shape), 6);
  }

  /// With bias, residual, relu and statistics.
  std::vector<T> forward(const How& how, bool everything = true) const {
    const DeviceBuffer<T> x(input), w(weights), y(static_cast<size_t>(output_count(shape))), other(residual);
    const DeviceBuffer<float> b(bias);
    Conv2dOptions o{.dtype = dtype_of<T>(), .input = x.data(), .output = y.data(), .shape = shape, .weights = w.data()};
    apply(o, how);
    const int64_t tiles = conv2d_statistics_tiles(o);
    const DeviceBuffer<float> statistics(static_cast<size_t>(tiles * 2 * shape.out_channels));
    if (everything) {
      o.activation = Activation::relu;
      o.bias = b.data();
      o.residual = other.data();
      o.statistics = statistics.data();
    }
    Borrowed borrowed(conv2d_workspace_bytes(o));
    borrowed.lend(o);
    conv2d(o, nullptr);
    const std::vector<T> got = y.download();
    if (everything) {
      const int64_t rows = shape.batch * shape.out_height() * shape.out_width();
      expect_statistics(statistics.download(), got, rows, shape.out_channels, tile_rows(rows, tiles));
    }
    borrowed.expect_counters_zero();
    return got;
  }

  std::vector<T> input_gradient(const How& how, bool add_residual = true) const {
    const DeviceBuffer<T> w(weights), dy(output_gradient), dx(input.size()), other(residual);
    Conv2dInputGradientOptions o{.dtype = dtype_of<T>(),
                                 .input_gradient = dx.data(),
                                 .output_gradient = dy.data(),
                                 .shape = shape,
                                 .weights = w.data()};
    if (add_residual) o.residual = other.data();
    apply(o, how);
    Borrowed borrowed(conv2d_input_gradient_workspace_bytes(o));
    borrowed.lend(o);
    conv2d_input_gradient(o, nullptr);
    borrowed.expect_counters_zero();
    return dx.download();
  }

  std::vector<float> weight_gradient(const How& how, bool accumulate, float alpha = 1) const {
    const DeviceBuffer<T> x(input), dy(output_gradient);
    DeviceBuffer<float> dw(before.size());
    if (accumulate) dw.upload(before);
    Conv2dWeightGradientOptions o{.accumulate = accumulate,
                                  .alpha = alpha,
                                  .dtype = dtype_of<T>(),
                                  .input = x.data(),
                                  .output_gradient = dy.data(),
                                  .shape = shape,
                                  .weight_gradient = dw.data()};
    apply(o, how);
    Borrowed borrowed(conv2d_weight_gradient_workspace_bytes(o));
    borrowed.lend(o);
    conv2d_weight_gradient(o, nullptr);
    borrowed.expect_counters_zero();
    return dw.download();
  }

  void expect_forward(const How& how) const {
    std::vector<Exact> y(static_cast<size_t>(output_count(shape)));
    for_each_product(
        shape, [&](size_t in, size_t w, size_t out) { y[out].add_product(to_float(input[in]), to_float(weights[w])); });
    for (size_t i = 0; i < y.size(); ++i) {
      y[i].add(bias[i % bias.size()]);
      y[i].add(to_float(residual[i]));
      y[i].value = activated(Activation::relu, y[i].value);
    }
    expect_near(forward(how), y, shape.kernel[0] * shape.kernel[1] * shape.channels);
  }

  void expect_input_gradient(const How& how) const {
    std::vector<Exact> dx(input.size());
    for_each_product(shape, [&](size_t in, size_t w, size_t out) {
      dx[in].add_product(to_float(output_gradient[out]), to_float(weights[w]));
    });
    for (size_t i = 0; i < dx.size(); ++i) dx[i].add(to_float(residual[i]));
    expect_near(input_gradient(how), dx, shape.kernel[0] * shape.kernel[1] * shape.out_channels);
  }

  void expect_weight_gradient(const How& how, bool accumulate) const {
    std::vector<Exact> dw(weights.size());
    for_each_product(shape, [&](size_t in, size_t w, size_t out) {
      dw[w].add_product(to_float(output_gradient[out]), to_float(input[in]));
    });
    for (size_t i = 0; i < dw.size(); ++i) {
      dw[i].scale(0.5);
      if (accumulate) dw[i].add(before[i]);
    }
    expect_near(weight_gradient(how, accumulate, 0.5f), dw, shape.batch * shape.out_height() * shape.out_width());
  }

  void expect_all(const How& how = {}) const {
    SCOPED_TRACE(text(shape) + " " + name(dtype_of<T>()) + " tile " + std::to_string(static_cast<int>(how.tile)) +
                 " split " + std::to_string(how.split_k));
    expect_forward(how);
    expect_input_gradient(how);
    expect_weight_gradient(how, how.split_k % 2 == 1);
  }

  Conv2dShape shape;
  std::vector<T> input, weights, output_gradient, residual;
  std::vector<float> bias, before;
};

void expect_all_types(const Conv2dShape& shape, const How& how = {}) {
  Convolution<float>(shape).expect_all(how);
  Convolution<__half>(shape).expect_all(how);
  Convolution<__nv_bfloat16>(shape).expect_all(how);
}

/// Shapes that no two quantities share: an exchanged height and width, or pair, is found.
const Conv2dShape kOdd{.batch = 2,
                       .channels = 8,
                       .dilation = {1, 2},
                       .height = 11,
                       .kernel = {3, 2},
                       .out_channels = 16,
                       .padding = {2, 1},
                       .stride = {2, 3},
                       .width = 13};

TEST(Conv2d, KernelsOfEverySizeAndFewChannels) {
  const int64_t cases[][3] = {{1, 1, 10},  {1, 20, 5},  {3, 8, 7},   {8, 3, 3},
                              {20, 50, 5}, {50, 10, 3}, {20, 10, 1}, {2, 6, 3}};
  for (const auto& [channels, out_channels, kernel] : cases) {
    expect_all_types({.batch = 2,
                      .channels = channels,
                      .height = 12,
                      .kernel = {kernel, kernel},
                      .out_channels = out_channels,
                      .padding = {kernel / 2, kernel / 2},
                      .width = 11});
  }
}

TEST(Conv2d, AlignedChannelsOnEveryTile) {
  const Conv2dShape shape{
      .batch = 3, .channels = 24, .height = 9, .kernel = {3, 3}, .out_channels = 72, .padding = {1, 1}, .width = 7};
  for (const MatrixTile tile : {MatrixTile::m128n128, MatrixTile::m128n64, MatrixTile::m64n64}) {
    Convolution<__half>(shape).expect_all({tile, 1});
    Convolution<__nv_bfloat16>(shape).expect_all({tile, 4});
  }
}

TEST(Conv2d, StridePaddingAndDilationDifferByAxis) {
  expect_all_types(kOdd);
  Conv2dShape s = kOdd;
  s.channels = 5, s.out_channels = 7;
  expect_all_types(s);
  s.stride = {4, 4}, s.dilation = {2, 6};  // a common divisor; more than one launch of parts; parts without taps
  expect_all_types(s);
  s.channels = 16, s.out_channels = 8, s.dilation = {3, 4};
  expect_all_types(s);
}

TEST(Conv2d, StrideLargerThanTheWindowLeavesZeros) {
  const Conv2dShape s{.batch = 1, .channels = 8, .height = 8, .out_channels = 8, .stride = {2, 2}, .width = 6};
  const Convolution<__half> convolution(s);
  convolution.expect_all({MatrixTile::automatic, 2});
  const std::vector<__half> dx = convolution.input_gradient({}, false);
  for (int64_t i = 0; i < input_count(s); ++i) {
    const int64_t pixel = i / s.channels;
    const bool seen = pixel / s.width % 2 == 0 && pixel % s.width % 2 == 0;
    EXPECT_EQ(to_float(dx[static_cast<size_t>(i)]) != 0, seen);
  }
}

TEST(Conv2d, WindowsAsLargeAsThePaddedImage) {
  expect_all_types(
      {.batch = 3, .channels = 3, .height = 4, .kernel = {6, 5}, .out_channels = 9, .padding = {1, 0}, .width = 5});
  expect_all_types({.batch = 1, .channels = 1, .height = 1, .out_channels = 1, .width = 1});
  expect_all_types(
      {.batch = 2, .channels = 8, .height = 3, .kernel = {1, 1}, .out_channels = 8, .padding = {2, 2}, .width = 2});
}

TEST(Conv2d, PointwiseIsAMatrixProduct) {
  const Conv2dShape s{.batch = 2, .channels = 32, .height = 5, .out_channels = 40, .width = 6};
  expect_all_types(s);
  Convolution<__half>(s).expect_all({MatrixTile::m64n64, 3});
}

TEST(Conv2d, EveryScheduleGivesTheSameBits) {
  for (const int64_t channels : {3, 16}) {
    Conv2dShape s = kOdd;
    s.channels = channels;
    const Convolution<__half> convolution(s);
    const How split{MatrixTile::automatic, 3};
    const std::vector<__half> y = convolution.forward(split), dx = convolution.input_gradient(split);
    const std::vector<float> dw = convolution.weight_gradient(split, true);
    const auto same = [](const auto& a, const auto& b) {
      return std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
    };
    simt::for_each_schedule(
        [&] {
          convolution.expect_all(split);
          EXPECT_TRUE(same(convolution.forward(split), y));
          EXPECT_TRUE(same(convolution.input_gradient(split), dx));
          EXPECT_TRUE(same(convolution.weight_gradient(split, true), dw));
        },
        5);
  }
}

#if defined(BRISK_SIMT)  // a device does not count them
TEST(Conv2d, NoBankConflicts) {
  const auto before = simt::stats();
  Convolution<__half>(
      {.batch = 2, .channels = 64, .height = 8, .kernel = {3, 3}, .out_channels = 64, .padding = {1, 1}, .width = 8})
      .expect_all();
  EXPECT_GT(simt::stats().ldmatrix_phases, before.ldmatrix_phases);
  EXPECT_EQ(simt::stats().ldmatrix_conflicts, before.ldmatrix_conflicts);
}
#endif

TEST(Conv2d, ResidualMayBeTheOutput) {
  const Convolution<__half> convolution(kOdd);
  const std::vector<__half> apart = convolution.input_gradient({});
  const DeviceBuffer<__half> w(convolution.weights), dy(convolution.output_gradient);
  DeviceBuffer<__half> dx(convolution.input.size());
  dx.upload({convolution.residual.begin(), convolution.residual.begin() + input_count(kOdd)});
  conv2d_input_gradient({.dtype = DType::f16,
                         .input_gradient = dx.data(),
                         .output_gradient = dy.data(),
                         .residual = dx.data(),
                         .shape = kOdd,
                         .weights = w.data()},
                        nullptr);
  const std::vector<__half> got = dx.download();
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(to_float(got[i]), to_float(apart[i]));
}

TEST(Conv2d, RefusesWhatItCannotDo) {
  const DeviceBuffer<float> memory(4096);
  const auto refusal = [&](auto change) {
    Conv2dOptions o{.input = memory.data(), .output = memory.data() + 2048, .weights = memory.data() + 1024};
    o.shape = {.batch = 1, .channels = 2, .height = 4, .kernel = {3, 3}, .out_channels = 2, .width = 4};
    change(o);
    return test::error_text([&] { conv2d(o, nullptr); });
  };
  EXPECT_EQ(refusal([](Conv2dOptions& o) { o.shape.channels = 0; }),
            "Error [option] kernels::conv2d.shape.channels = 0: must be 1 to 2^29");
  EXPECT_EQ(refusal([](Conv2dOptions& o) { o.shape.groups = 2; }),
            "Error [option] kernels::conv2d.shape.groups = 2: must be 1: these kernels have no groups");
  EXPECT_EQ(refusal([](Conv2dOptions& o) { o.shape.height = 2; }),
            "Error [option] kernels::conv2d.shape.height = 2: is smaller than the window");
  EXPECT_EQ(refusal([](Conv2dOptions& o) { o.shape.padding[1] = -1; }),
            "Error [option] kernels::conv2d.shape.padding = -1: must be 0 to 2^29");
  EXPECT_EQ(refusal([](Conv2dOptions& o) { o.shape.batch = 1 << 28; }),
            "Error [option] kernels::conv2d.shape.batch = 268435456: makes a matrix of more than 2^31 - 1025 rows or "
            "columns; "
            "cut the batch");
  EXPECT_EQ(refusal([](Conv2dOptions& o) { o.dtype = DType::u8; }),
            "Error [option] kernels::conv2d.dtype = u8: must be f32, f16 or bf16");
  EXPECT_EQ(refusal([](Conv2dOptions& o) { o.weights = nullptr; }),
            "Error [option] kernels::conv2d.weights = null: must be a device pointer");
  EXPECT_EQ(refusal([](Conv2dOptions& o) { o.split_k = -1; }),
            "Error [option] kernels::conv2d.split_k = -1: must be 0 (chosen by the sizes) to 64");
  EXPECT_EQ(test::error_text([&] { conv2d_input_gradient({}, nullptr); }),
            "Error [option] kernels::conv2d_input_gradient.shape.batch = 0: must be 1 to 2^29");
  EXPECT_EQ(test::error_text([&] { conv2d_weight_gradient({}, nullptr); }),
            "Error [option] kernels::conv2d_weight_gradient.shape.batch = 0: must be 1 to 2^29");
}

}  // namespace
}  // namespace brisk::kernels
