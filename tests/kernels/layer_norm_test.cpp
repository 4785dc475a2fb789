// Layer normalisation on the device against its definition in double.
#include "brisk/kernels/layer_norm.h"

#include <optional>

#include "kernels/values.h"
#include "support/error_text.h"

namespace brisk::kernels {
namespace {

using simt::DeviceBuffer;
using test::Values;

struct Case {
  size_t rows, size;
  DType dtype;
  bool affine = true;
  size_t skew = 0;
  std::string text() const {
    return std::to_string(rows) + " x " + std::to_string(size) + " " + name(dtype) + (affine ? "" : " plain") +
           (skew > 0 ? " skewed" : "");
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : test::kFloatTypes) {
    all.push_back({1, 1, dtype});
    all.push_back({3, 5, dtype});
    all.push_back({9, 64, dtype, false});
    all.push_back({2, 1280, dtype});
    all.push_back({3, 331, dtype});   // a block a row, without vectors
    all.push_back({2, 4104, dtype});  // a block a row, by vectors
    all.push_back({17, 48, dtype, true, 1});
    all.push_back({1100, 16, dtype});  // slices of rows for the parameters
  }
  return all;
}

struct Layer {
  Case c;
  size_t count;
  Values x, dy, y, dx;
  std::vector<float> weight_values, bias_values;
  DeviceBuffer<float> weight, bias, mean, inverse, dweight, dbias;
  DeviceBuffer<int32_t> counters = test::counters();
  std::optional<DeviceBuffer<unsigned char>> workspace;

  explicit Layer(const Case& made)
      : c(made),
        count(c.rows * c.size),
        x(c.dtype, test::random_numbers(count, 1, -1, 3), c.skew),
        dy(c.dtype, test::random_numbers(count, 2), c.skew),
        y(c.dtype, count, c.skew),
        dx(c.dtype, count, c.skew),
        weight_values(test::floats(test::random_numbers(c.size, 3, 0.5, 2))),
        bias_values(test::floats(test::random_numbers(c.size, 4))),
        weight(weight_values),
        bias(bias_values),
        mean(c.rows),
        inverse(c.rows),
        dweight(std::vector<float>(c.size, 10)),
        dbias(std::vector<float>(c.size, 20)) {
    if (c.affine) return;
    weight_values.assign(c.size, 1);
    bias_values.assign(c.size, 0);
  }

  void forward() {
    layer_norm({.bias = c.affine ? bias.data() : nullptr,
                .dtype = c.dtype,
                .inverse_deviation = inverse.data(),
                .mean = mean.data(),
                .rows = static_cast<int64_t>(c.rows),
                .size = static_cast<int64_t>(c.size),
                .weight = c.affine ? weight.data() : nullptr,
                .x = x.data(),
                .y = y.data()},
               nullptr);
  }
  void backward(bool accumulate) {
    LayerNormGradientOptions o{.accumulate = accumulate,
                               .counters = counters.data(),
                               .dbias = c.affine ? dbias.data() : nullptr,
                               .dtype = c.dtype,
                               .dweight = c.affine ? dweight.data() : nullptr,
                               .dx = dx.data(),
                               .dy = dy.data(),
                               .inverse_deviation = inverse.data(),
                               .mean = mean.data(),
                               .rows = static_cast<int64_t>(c.rows),
                               .size = static_cast<int64_t>(c.size),
                               .weight = c.affine ? weight.data() : nullptr,
                               .x = x.data()};
    o.workspace_bytes = layer_norm_gradient_workspace_bytes(o);
    if (o.workspace_bytes > 0) o.workspace = workspace.emplace(static_cast<size_t>(o.workspace_bytes)).data();
    layer_norm_gradient(o, nullptr);
  }
};

/// Mean and inverse deviation of each row.
struct Rows {
  std::vector<double> mean, inverse;
  Rows(const std::vector<double>& x, const Case& c) : mean(c.rows), inverse(c.rows) {
    const auto n = static_cast<double>(c.size);
    for (size_t r = 0; r < c.rows; ++r) {
      double squares = 0;
      for (size_t i = 0; i < c.size; ++i) mean[r] += x[r * c.size + i] / n;
      for (size_t i = 0; i < c.size; ++i) squares += std::pow(x[r * c.size + i] - mean[r], 2);
      inverse[r] = 1 / std::sqrt(squares / n + 1e-5);
    }
  }
};

TEST(KernelLayerNorm, AgreesWithItsDefinition) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    const auto got = test::same_under_schedules([&]() -> std::vector<std::vector<double>> {
      Layer layer(c);
      layer.forward();
      return {layer.y.get(), test::doubles(layer.mean), test::doubles(layer.inverse)};
    });
    const Layer in(c);
    const Rows rows(in.x.given(), c);
    std::vector<double> y(in.count);
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t r = i / c.size, k = i % c.size;
      y[i] = (in.x.given()[i] - rows.mean[r]) * rows.inverse[r] * static_cast<double>(in.weight_values[k]) +
             static_cast<double>(in.bias_values[k]);
    }
    test::expect_near("mean", DType::f32, got[1], rows.mean, 2e-6);
    test::expect_near("inverse deviation", DType::f32, got[2], rows.inverse,
                      [&](size_t i) { return 4e-6 * rows.inverse[i]; });
    test::expect_near("y", c.dtype, got[0], y, 2e-5);
  }
}

TEST(KernelLayerNorm, GradientAgreesWithItsDefinition) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    const bool accumulate = c.size == 5;
    const auto got = test::same_under_schedules([&]() -> std::vector<std::vector<double>> {
      Layer layer(c);
      layer.forward();
      layer.backward(accumulate);
      return {layer.dx.get(), test::doubles(layer.dweight), test::doubles(layer.dbias)};
    });
    const Layer in(c);
    const Rows rows(in.x.given(), c);
    const auto n = static_cast<double>(c.size);
    std::vector<double> dx(in.count), dweight(c.size, accumulate || !c.affine ? 10 : 0),
        dbias(c.size, accumulate || !c.affine ? 20 : 0);
    for (size_t r = 0; r < c.rows; ++r) {
      double sum = 0, product = 0;
      const auto normalised = [&](size_t k) { return (in.x.given()[r * c.size + k] - rows.mean[r]) * rows.inverse[r]; };
      const auto d = [&](size_t k) { return in.dy.given()[r * c.size + k] * static_cast<double>(in.weight_values[k]); };
      for (size_t k = 0; k < c.size; ++k) {
        sum += d(k) / n;
        product += d(k) * normalised(k) / n;
        if (!c.affine) continue;
        dweight[k] += in.dy.given()[r * c.size + k] * normalised(k);
        dbias[k] += in.dy.given()[r * c.size + k];
      }
      for (size_t k = 0; k < c.size; ++k) {
        dx[r * c.size + k] = rows.inverse[r] * (d(k) - sum - normalised(k) * product);
      }
    }
    test::expect_near("dx", c.dtype, got[0], dx, [&](size_t i) { return 1e-5 * (rows.inverse[i / c.size] + 1); });
    const double sums = 2e-6 * (static_cast<double>(c.rows) + 20);
    test::expect_near("dweight", DType::f32, got[1], dweight, sums);
    test::expect_near("dbias", DType::f32, got[2], dbias, sums);
  }
}

/// NU12: fp16 rows whose squares add up to more than fp16 holds; a constant row gives the bias exactly.
TEST(KernelLayerNorm, NU12) {
  std::vector<double> numbers(2 * 1280, 0.3);
  for (size_t i = 0; i < 1280; ++i) numbers[i] = i % 2 == 0 ? 200 : -200;
  const std::vector<float> bias_values = test::floats(test::random_numbers(1280, 1));
  for (const DType dtype : {DType::f16, DType::f32}) {
    for (const size_t skew : {size_t{0}, size_t{1}}) {
      const Values x(dtype, numbers, skew), y(dtype, numbers.size(), skew);
      const DeviceBuffer<float> bias(bias_values), none(std::vector<float>(1280, 0));
      DeviceBuffer<float> mean(2), inverse(2);
      LayerNormOptions o{.dtype = dtype,
                         .inverse_deviation = inverse.data(),
                         .mean = mean.data(),
                         .rows = 2,
                         .size = 1280,
                         .x = x.data(),
                         .y = y.data()};
      layer_norm(o, nullptr);
      const std::vector<double> plain = y.get();
      for (size_t i = 0; i < 1280; ++i) EXPECT_NEAR(plain[i], i % 2 == 0 ? 1 : -1, 1e-3);
      o.bias = bias.data();
      layer_norm(o, nullptr);
      const std::vector<double> shifted = y.get();
      for (size_t i = 0; i < 1280; ++i) {
        EXPECT_EQ(shifted[1280 + i], test::rounded(dtype, static_cast<double>(bias_values[i]))) << i;
      }
    }
  }
}

TEST(KernelLayerNorm, RefusesWhatItCannotDo) {
  const Values x(DType::f32, std::vector<double>(8));
  DeviceBuffer<float> f(8);
  EXPECT_EQ(test::error_text([&] { layer_norm({.rows = 1, .size = 0}, nullptr); }),
            "Error [option] kernels::layer_norm.size = 0: must be 1 or more");
  EXPECT_NE(test::error_text([&] {
              layer_norm_gradient({.dweight = f.data(),
                                   .dy = x.data(),
                                   .inverse_deviation = f.data(),
                                   .mean = f.data(),
                                   .rows = 1,
                                   .size = 8,
                                   .x = x.data()},
                                  nullptr);
            }).find("kernels::layer_norm_gradient.dbias"),
            std::string::npos);
}

}  // namespace
}  // namespace brisk::kernels
