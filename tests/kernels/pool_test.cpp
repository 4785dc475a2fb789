// Pooling on the device against its definition in double.
#include "brisk/kernels/pool.h"

#include <limits>

#include "kernels/values.h"
#include "support/error_text.h"

namespace brisk::kernels {
namespace {

using simt::DeviceBuffer;
using test::Values;

struct Case {
  int64_t batch, height, width, channels;
  int64_t kernel[2], stride[2], padding[2];
  DType dtype = DType::f32;
  size_t skew = 0;

  int64_t out(int i) const { return ((i == 0 ? height : width) + 2 * padding[i] - kernel[i]) / stride[i] + 1; }
  size_t inputs() const { return static_cast<size_t>(batch * height * width * channels); }
  size_t outputs() const { return static_cast<size_t>(batch * out(0) * out(1) * channels); }
  std::string text() const {
    return std::to_string(height) + " x " + std::to_string(width) + " x " + std::to_string(channels) + " kernel " +
           std::to_string(kernel[0]) + " " + std::to_string(kernel[1]) + " " + name(dtype);
  }
  /// Calls f(output, image, input pixel, channel) for each element of each window.
  template <class F>
  void each(F f) const {
    for (int64_t n = 0; n < batch; ++n)
      for (int64_t i = 0; i < out(0); ++i)
        for (int64_t j = 0; j < out(1); ++j)
          for (int64_t a = 0; a < kernel[0]; ++a)
            for (int64_t b = 0; b < kernel[1]; ++b) {
              const int64_t h = i * stride[0] - padding[0] + a, w = j * stride[1] - padding[1] + b;
              if (h < 0 || h >= height || w < 0 || w >= width) continue;
              for (int64_t c = 0; c < channels; ++c) {
                f(static_cast<size_t>(((n * out(0) + i) * out(1) + j) * channels + c), n, h * width + w, c);
              }
            }
  }
  size_t input(int64_t n, int64_t pixel, int64_t c) const {
    return static_cast<size_t>((n * height * width + pixel) * channels + c);
  }
  template <class Options>
  Options options() const {
    Options o;
    o.dtype = dtype;
    o.shape = {.batch = batch,
               .channels = channels,
               .height = height,
               .kernel = {kernel[0], kernel[1]},
               .padding = {padding[0], padding[1]},
               .stride = {stride[0], stride[1]},
               .width = width};
    return o;
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : test::kFloatTypes) {
    all.push_back({2, 4, 6, 8, {2, 2}, {2, 2}, {0, 0}, dtype});
    all.push_back({3, 7, 5, 3, {3, 3}, {2, 2}, {1, 1}, dtype});
    all.push_back({1, 9, 9, 16, {3, 3}, {1, 1}, {1, 1}, dtype});
    all.push_back({1, 8, 11, 24, {5, 2}, {3, 1}, {2, 1}, dtype});
    all.push_back({2, 5, 5, 20, {2, 3}, {3, 2}, {0, 0}, dtype});  // pixels that no window holds
    all.push_back({1, 6, 6, 8, {2, 2}, {2, 2}, {0, 0}, dtype, 1});
    all.push_back({1, 1, 1, 1, {1, 1}, {1, 1}, {0, 0}, dtype});
  }
  return all;
}

struct Maximum {
  std::vector<double> value;
  std::vector<int32_t> index;
};

Maximum forward(const Case& c, const Values& x) {
  const Values y(c.dtype, c.outputs(), c.skew);
  DeviceBuffer<int32_t> index(c.outputs());
  auto o = c.options<MaxPool2dOptions>();
  o.x = x.data(), o.y = y.data(), o.index = index.data();
  max_pool2d(o, nullptr);
  return {y.get(), index.download()};
}

std::vector<double> backward(const Case& c, const Values& dy, const std::vector<int32_t>& indices) {
  const Values dx(c.dtype, c.inputs(), c.skew);
  const DeviceBuffer<int32_t> index(indices);
  auto o = c.options<MaxPool2dGradientOptions>();
  o.dx = dx.data(), o.dy = dy.data(), o.index = index.data();
  max_pool2d_gradient(o, nullptr);
  return dx.get();
}

TEST(KernelMaxPool, AgreesWithItsDefinition) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    // Few different numbers: ties are usual.
    std::vector<double> numbers = test::random_numbers(c.inputs(), 1, -3, 3);
    for (double& n : numbers) n = std::round(n * 2) / 2;
    const Values x(c.dtype, numbers, c.skew);
    Maximum want{std::vector<double>(c.outputs()), std::vector<int32_t>(c.outputs(), -1)};
    c.each([&](size_t y, int64_t n, int64_t pixel, int64_t channel) {
      const double value = x.given()[c.input(n, pixel, channel)];
      if (want.index[y] >= 0 && value <= want.value[y]) return;
      want.value[y] = value;
      want.index[y] = static_cast<int32_t>(pixel);
    });
    simt::for_each_schedule(
        [&] {
          const Maximum got = forward(c, x);
          EXPECT_EQ(got.value, want.value);
          EXPECT_EQ(got.index, want.index);
        },
        3);
    const Values dy(c.dtype, test::random_numbers(c.outputs(), 2), c.skew);
    std::vector<double> dx(c.inputs());
    const auto per_image = static_cast<size_t>(c.out(0) * c.out(1) * c.channels);
    for (size_t y = 0; y < c.outputs(); ++y) {
      const auto n = static_cast<int64_t>(y / per_image);
      dx[c.input(n, want.index[y], static_cast<int64_t>(y) % c.channels)] += dy.given()[y];
    }
    const auto got =
        test::same_under_schedules([&]() -> std::vector<std::vector<double>> { return {backward(c, dy, want.index)}; });
    test::expect_near("dx", c.dtype, got[0], dx, 4e-6);
  }
}

TEST(KernelAvgPool, AgreesWithItsDefinition) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    const Values x(c.dtype, test::random_numbers(c.inputs(), 1), c.skew);
    const Values dy(c.dtype, test::random_numbers(c.outputs(), 2), c.skew);
    const auto got = test::same_under_schedules([&]() -> std::vector<std::vector<double>> {
      const Values y(c.dtype, c.outputs(), c.skew), dx(c.dtype, c.inputs(), c.skew);
      auto o = c.options<AvgPool2dOptions>();
      o.x = x.data(), o.y = y.data();
      avg_pool2d(o, nullptr);
      auto g = c.options<AvgPool2dGradientOptions>();
      g.dy = dy.data(), g.dx = dx.data();
      avg_pool2d_gradient(g, nullptr);
      return {y.get(), dx.get()};
    });
    const double share = 1.0 / static_cast<double>(c.kernel[0] * c.kernel[1]);
    std::vector<double> y(c.outputs()), dx(c.inputs());
    c.each([&](size_t out, int64_t n, int64_t pixel, int64_t channel) {
      const size_t in = c.input(n, pixel, channel);
      y[out] += share * x.given()[in];
      dx[in] += share * dy.given()[out];
    });
    test::expect_near("y", c.dtype, got[0], y, 4e-6);
    test::expect_near("dx", c.dtype, got[1], dx, 4e-6);
  }
}

/// NU08: padding never wins, and windows of padding alone are refused.
TEST(KernelMaxPool, NU08) {
  const Case c{1, 2, 2, 1, {2, 2}, {2, 2}, {1, 1}};
  EXPECT_EQ(forward(c, Values(DType::f32, {-1, -2, -3, -4})).value, (std::vector<double>{-1, -2, -3, -4}));
  const Case wide{1, 2, 2, 1, {2, 2}, {2, 2}, {2, 1}};
  const Values x(DType::f32, {-1, -2, -3, -4});
  EXPECT_EQ(test::error_text([&] { forward(wide, x); }),
            "Error [option] kernels::max_pool2d.shape.padding[0] = 2: must be from 0 to half of the kernel");
}

/// NU09: NaN wins, the index is always one of the window's, a tie goes to the first.
TEST(KernelMaxPool, NU09) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = HUGE_VAL;
  for (const DType dtype : test::kFloatTypes) {
    const Case c{4, 1, 2, 1, {1, 2}, {1, 2}, {0, 0}, dtype};
    const Maximum got = forward(c, Values(dtype, {nan, 1, nan, nan, -inf, -inf, 3, 3}));
    EXPECT_TRUE(std::isnan(got.value[0]) && std::isnan(got.value[1]));
    EXPECT_EQ(got.value[2], -inf);
    EXPECT_EQ(got.value[3], 3);
    EXPECT_EQ(got.index, (std::vector<int32_t>{0, 0, 0, 0}));
    EXPECT_EQ(backward(c, Values(dtype, {1, 1, 1, 1}), got.index), (std::vector<double>{1, 0, 1, 0, 1, 0, 1, 0}));
    const Maximum late = forward(c, Values(dtype, {1, nan, 2, 1, 1, 2, -inf, nan}));
    EXPECT_EQ(late.index, (std::vector<int32_t>{1, 0, 1, 1}));
  }
}

TEST(KernelMaxPool, ManyImagesShareBlocks) {
  const Case c{65537, 2, 2, 1, {2, 2}, {2, 2}, {0, 0}};
  std::vector<double> numbers(c.inputs());
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
  const Maximum got = forward(c, Values(DType::f32, numbers));
  for (size_t n = 0; n < got.value.size(); n += 4096) EXPECT_EQ(got.value[n], static_cast<double>(4 * n + 3));
  EXPECT_EQ(got.value.back(), 4 * 65536 + 3);
}

}  // namespace
}  // namespace brisk::kernels
