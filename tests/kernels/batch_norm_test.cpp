// Batch normalisation on the device against its definition in double.
#include "brisk/kernels/batch_norm.h"

#include <limits>
#include <optional>

#include "kernels/values.h"
#include "support/error_text.h"

namespace brisk::kernels {
namespace {

using simt::DeviceBuffer;
using test::Values;

double activated(Activation activation, double x) {
  switch (activation) {
    case Activation::relu:
      return std::isnan(x) || x > 0 ? x : 0;
    case Activation::sigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::silu:
      return x / (1 + std::exp(-x));
    case Activation::tanh:
      return std::tanh(x);
    default:
      return x;
  }
}

double slope(Activation activation, double x) {
  const double s = 1 / (1 + std::exp(-x));
  switch (activation) {
    case Activation::relu:
      return x > 0 ? 1 : 0;
    case Activation::sigmoid:
      return s * (1 - s);
    case Activation::silu:
      return s * (1 + x * (1 - s));
    case Activation::tanh:
      return 1 - std::tanh(x) * std::tanh(x);
    default:
      return 1;
  }
}

/// The definition, over [rows, channels].
struct Reference {
  size_t rows, channels;
  std::vector<double> mean, inverse, unbiased, z, y;

  Reference(const std::vector<double>& x, size_t channel_count, const std::vector<float>& weight,
            const std::vector<float>& bias, const std::vector<double>& residual, double epsilon, Activation activation)
      : rows(x.size() / channel_count),
        channels(channel_count),
        mean(channels),
        inverse(channels),
        unbiased(channels),
        z(x.size()),
        y(x.size()) {
    for (size_t c = 0; c < channels; ++c) {
      const auto n = static_cast<double>(rows);
      double squares = 0;
      for (size_t r = 0; r < rows; ++r) mean[c] += x[r * channels + c] / n;
      for (size_t r = 0; r < rows; ++r) squares += std::pow(x[r * channels + c] - mean[c], 2);
      inverse[c] = 1 / std::sqrt(squares / n + epsilon);
      unbiased[c] = rows > 1 ? squares / (n - 1) : squares;
      for (size_t i = c; i < x.size(); i += channels) {
        z[i] = (x[i] - mean[c]) * inverse[c] * static_cast<double>(weight[c]) + static_cast<double>(bias[c]);
        if (!residual.empty()) z[i] += residual[i];
        y[i] = activated(activation, z[i]);
      }
    }
  }
};

struct Case {
  size_t rows, channels;
  DType dtype;
  Activation activation = Activation::none;
  bool residual = false;
  size_t skew = 0;
  std::string text() const {
    return std::to_string(rows) + " x " + std::to_string(channels) + " " + name(dtype) + " activation " +
           std::to_string(static_cast<int>(activation)) + (residual ? " residual" : "") + (skew > 0 ? " skewed" : "");
  }
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : test::kFloatTypes) {
    for (const auto& [rows, channels] : {std::pair<size_t, size_t>{1, 1}, {2, 8}, {7, 3}, {33, 72}, {130, 20}}) {
      all.push_back({rows, channels, dtype});
    }
    all.push_back({5003, 16, dtype, Activation::relu});  // slices of rows
    all.push_back({1300, 5, dtype, Activation::silu});   // slices without vectors
    all.push_back({65, 64, dtype, Activation::relu, true});
    all.push_back({19, 24, dtype, Activation::tanh, true});
    all.push_back({31, 16, dtype, Activation::sigmoid});
    all.push_back({31, 16, dtype, Activation::relu, true, 1});
  }
  return all;
}

/// One case's inputs and all buffers of forward and backward.
struct Layer {
  Case c;
  size_t count;
  Values x, residual, y, dy, dx, dresidual;
  std::vector<float> weight_values, bias_values;
  DeviceBuffer<float> weight, bias, mean, inverse, unbiased, dweight, dbias;
  DeviceBuffer<int32_t> counters = test::counters();
  std::optional<DeviceBuffer<unsigned char>> workspace;

  explicit Layer(const Case& made)
      : c(made),
        count(c.rows * c.channels),
        x(c.dtype, test::random_numbers(count, 1, -3, 5), c.skew),
        residual(c.dtype, test::random_numbers(count, 2), c.skew),
        y(c.dtype, count, c.skew),
        dy(c.dtype, test::random_numbers(count, 3), c.skew),
        dx(c.dtype, count, c.skew),
        dresidual(c.dtype, count, c.skew),
        weight_values(test::floats(test::random_numbers(c.channels, 4, 0.5, 2))),
        bias_values(test::floats(test::random_numbers(c.channels, 5))),
        weight(weight_values),
        bias(bias_values),
        mean(c.channels),
        inverse(c.channels),
        unbiased(c.channels),
        dweight(std::vector<float>(c.channels, 100)),
        dbias(std::vector<float>(c.channels, -100)) {}

  void* made_workspace(int64_t bytes) {
    if (bytes > 0) workspace.emplace(static_cast<size_t>(bytes));
    return bytes > 0 ? workspace->data() : nullptr;
  }
  void forward() {
    BatchNormOptions o{.activation = c.activation,
                       .bias = bias.data(),
                       .channels = static_cast<int64_t>(c.channels),
                       .counters = counters.data(),
                       .dtype = c.dtype,
                       .inverse_deviation = inverse.data(),
                       .mean = mean.data(),
                       .residual = c.residual ? residual.data() : nullptr,
                       .rows = static_cast<int64_t>(c.rows),
                       .unbiased_variance = unbiased.data(),
                       .weight = weight.data(),
                       .x = x.data(),
                       .y = y.data()};
    o.workspace_bytes = batch_norm_workspace_bytes(o);
    o.workspace = made_workspace(o.workspace_bytes);
    batch_norm(o, nullptr);
  }
  void backward(bool by_output, bool accumulate) {
    BatchNormGradientOptions o{.accumulate = accumulate,
                               .activation = c.activation,
                               .bias = bias.data(),
                               .channels = static_cast<int64_t>(c.channels),
                               .counters = counters.data(),
                               .dbias = dbias.data(),
                               .dresidual = c.residual ? dresidual.data() : nullptr,
                               .dtype = c.dtype,
                               .dweight = dweight.data(),
                               .dx = dx.data(),
                               .dy = dy.data(),
                               .inverse_deviation = inverse.data(),
                               .mean = mean.data(),
                               .output = by_output ? y.data() : nullptr,
                               .rows = static_cast<int64_t>(c.rows),
                               .weight = weight.data(),
                               .x = x.data()};
    o.workspace_bytes = batch_norm_gradient_workspace_bytes(o);
    o.workspace = made_workspace(o.workspace_bytes);
    batch_norm_gradient(o, nullptr);
  }
};

TEST(KernelBatchNorm, AgreesWithItsDefinition) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    const Layer inputs(c);
    const Reference want(inputs.x.given(), c.channels, inputs.weight_values, inputs.bias_values,
                         c.residual ? inputs.residual.given() : std::vector<double>{}, 1e-5, c.activation);
    const auto got = test::same_under_schedules([&]() -> std::vector<std::vector<double>> {
      Layer layer(c);
      layer.forward();
      return {layer.y.get(), test::doubles(layer.mean), test::doubles(layer.inverse), test::doubles(layer.unbiased)};
    });
    test::expect_near("mean", DType::f32, got[1], want.mean, 4e-6);
    test::expect_near("inverse deviation", DType::f32, got[2], want.inverse,
                      [&](size_t i) { return 4e-6 * want.inverse[i]; });
    test::expect_near("variance", DType::f32, got[3], want.unbiased, 4e-5);
    // A single row has deviations of 0 and an inverse deviation of 316.
    test::expect_near("y", c.dtype, got[0], want.y, [&](size_t i) { return 8e-6 * (4 + std::fabs(want.z[i])); });
  }
}

TEST(KernelBatchNorm, GradientAgreesWithItsDefinition) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(c.text());
    const bool by_output = c.residual || c.activation == Activation::sigmoid || c.activation == Activation::tanh;
    std::vector<double> y;
    const auto got = test::same_under_schedules([&]() -> std::vector<std::vector<double>> {
      Layer layer(c);
      layer.forward();
      layer.backward(by_output, c.rows == 33);
      y = layer.y.get();
      std::vector<double> dresidual;
      if (c.residual) dresidual = layer.dresidual.get();
      return {layer.dx.get(), test::doubles(layer.dweight), test::doubles(layer.dbias), dresidual};
    });
    const Layer in(c);
    const Reference f(in.x.given(), c.channels, in.weight_values, in.bias_values,
                      c.residual ? in.residual.given() : std::vector<double>{}, 1e-5, c.activation);
    const auto n = static_cast<double>(c.rows);
    const double start = c.rows == 33 ? 100 : 0;
    std::vector<double> dx(in.count), dz(in.count), dweight(c.channels, start), dbias(c.channels, -start);
    const auto normalised = [&](size_t i) {
      return (in.x.given()[i] - f.mean[i % c.channels]) * f.inverse[i % c.channels];
    };
    for (size_t i = 0; i < in.count; ++i) {
      double through = slope(c.activation, f.z[i]);
      // From the output as it was rounded: what the kernel reads.
      if (by_output && c.activation == Activation::tanh) through = 1 - y[i] * y[i];
      if (by_output && c.activation == Activation::sigmoid) through = y[i] * (1 - y[i]);
      if (by_output && c.activation == Activation::relu) through = y[i] > 0 ? 1 : 0;
      dz[i] = in.dy.given()[i] * through;
      dweight[i % c.channels] += dz[i] * normalised(i);
      dbias[i % c.channels] += dz[i];
    }
    for (size_t i = 0; i < in.count; ++i) {
      const size_t k = i % c.channels;
      dx[i] = static_cast<double>(in.weight_values[k]) * f.inverse[k] *
              (dz[i] - (dbias[k] + start) / n - normalised(i) * (dweight[k] - start) / n);
    }
    const double sums = 2e-6 * (n + 100);
    test::expect_near("dweight", DType::f32, got[1], dweight, sums);
    test::expect_near("dbias", DType::f32, got[2], dbias, sums);
    // With a residual dx is made of its rounded gradient.
    const double low = c.residual ? 4 * test::rounding(c.dtype) : 0;
    test::expect_near("dx", c.dtype, got[0], dx,
                      [&](size_t i) { return (2e-5 + low) * (f.inverse[i % c.channels] + 1); });
    if (c.residual) test::expect_near("dresidual", c.dtype, got[3], dz, 1e-6);
  }
}

TEST(KernelBatchNorm, InPlaceGivesTheSame) {
  const Case c{77, 16, DType::f16, Activation::relu, true};
  Layer apart(c), within(c);
  apart.forward();
  BatchNormOptions o{.activation = c.activation,
                     .bias = within.bias.data(),
                     .channels = 16,
                     .counters = within.counters.data(),
                     .dtype = c.dtype,
                     .inverse_deviation = within.inverse.data(),
                     .mean = within.mean.data(),
                     .residual = within.residual.data(),
                     .rows = 77,
                     .unbiased_variance = within.unbiased.data(),
                     .weight = within.weight.data(),
                     .x = within.x.data(),
                     .y = within.x.data()};
  ASSERT_EQ(batch_norm_workspace_bytes(o), 0);
  batch_norm(o, nullptr);
  EXPECT_EQ(within.x.get(), apart.y.get());
}

TEST(KernelBatchNorm, InferenceUsesTheGivenStatistics) {
  for (const DType dtype : test::kFloatTypes) {
    for (const size_t channels : {size_t{5}, size_t{24}}) {
      SCOPED_TRACE(std::string(name(dtype)) + " " + std::to_string(channels));
      const Values x(dtype, test::random_numbers(37 * channels, 1));
      const std::vector<float> mean = test::floats(test::random_numbers(channels, 2)),
                               variance = test::floats(test::random_numbers(channels, 3, 0.1, 4)),
                               weight = test::floats(test::random_numbers(channels, 4)),
                               bias = test::floats(test::random_numbers(channels, 5));
      const DeviceBuffer<float> m(mean), v(variance), w(weight), b(bias);
      const auto got = test::same_under_schedules([&]() -> std::vector<std::vector<double>> {
        const Values y(dtype, 37 * channels);
        batch_norm_inference({.activation = Activation::relu,
                              .bias = b.data(),
                              .channels = static_cast<int64_t>(channels),
                              .dtype = dtype,
                              .mean = m.data(),
                              .rows = 37,
                              .variance = v.data(),
                              .weight = w.data(),
                              .x = x.data(),
                              .y = y.data()},
                             nullptr);
        return {y.get()};
      });
      std::vector<double> want(got[0].size());
      for (size_t i = 0; i < want.size(); ++i) {
        const size_t c = i % channels;
        const double deviation = std::sqrt(static_cast<double>(variance[c]) + 1e-5);
        const double normalised = (x.given()[i] - static_cast<double>(mean[c])) / deviation;
        want[i] = std::fmax(0, normalised * static_cast<double>(weight[c]) + static_cast<double>(bias[c]));
      }
      test::expect_near("y", dtype, got[0], want, 1e-5);
    }
  }
}

TEST(KernelBatchNorm, StatisticsDoNotCancel) {
  Case c{4096, 8, DType::f32};
  Layer layer(c);
  std::vector<double> x = test::random_numbers(layer.count, 9, -0.01, 0.01);
  for (double& value : x) value += 1000;
  x[0] = 1000.5;  // what a sum of squares, shifted by the first number, would lose itself in
  const Values far(DType::f32, x);
  BatchNormOptions o{.channels = 8,
                     .counters = layer.counters.data(),
                     .inverse_deviation = layer.inverse.data(),
                     .mean = layer.mean.data(),
                     .rows = 4096,
                     .unbiased_variance = layer.unbiased.data(),
                     .x = far.data(),
                     .y = layer.y.data()};
  o.workspace_bytes = batch_norm_workspace_bytes(o);
  o.workspace = layer.made_workspace(o.workspace_bytes);
  batch_norm(o, nullptr);
  const Reference want(far.given(), 8, std::vector<float>(8, 1), std::vector<float>(8, 0), {}, 1e-5, Activation::none);
  test::expect_near("variance", DType::f32, test::doubles(layer.unbiased), want.unbiased,
                    [&](size_t i) { return 2e-3 * want.unbiased[i]; });
}

/// NU06: the running variance is unbiased, the batch is normalised by the biased one.
TEST(KernelBatchNorm, NU06) {
  const Values x(DType::f32, {1, 2, 3, 4}), y(DType::f32, 4);
  DeviceBuffer<float> mean(1), inverse(1), unbiased(1), new_mean(1), new_variance(1);
  const DeviceBuffer<float> running_mean(std::vector<float>{0}), running_variance(std::vector<float>{1});
  batch_norm({.channels = 1,
              .inverse_deviation = inverse.data(),
              .mean = mean.data(),
              .rows = 4,
              .unbiased_variance = unbiased.data(),
              .x = x.data(),
              .y = y.data()},
             nullptr);
  batch_norm_commit({.batch_mean = mean.data(),
                     .batch_variance = unbiased.data(),
                     .channels = 1,
                     .momentum = 0.1,
                     .new_running_mean = new_mean.data(),
                     .new_running_variance = new_variance.data(),
                     .running_mean = running_mean.data(),
                     .running_variance = running_variance.data()},
                    nullptr);
  test::expect_near("y", DType::f32, y.get(), {-1.341635, -0.447212, 0.447212, 1.341635}, 1e-6);
  test::expect_near("running mean", DType::f32, test::doubles(new_mean), {0.25}, 1e-7);
  test::expect_near("running variance", DType::f32, test::doubles(new_variance), {1.0666667}, 2e-7);
  EXPECT_EQ(test::doubles(running_mean), std::vector<double>{0});
}

TEST(KernelBatchNorm, CommitSkipsWhatIsNotFiniteAndWhatFailed) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const DeviceBuffer<float> mean(std::vector<float>{1, nan, 2}), variance(std::vector<float>{1, 1, inf});
  for (const bool failed : {false, true}) {
    DeviceBuffer<float> running_mean(std::vector<float>{0, 5, 6}), running_variance(std::vector<float>{2, 7, 8});
    Status word;
    if (failed) word.kind = Status::kLabel;
    const DeviceBuffer<Status> status(std::vector<Status>{word});
    batch_norm_commit({.batch_mean = mean.data(),
                       .batch_variance = variance.data(),
                       .channels = 3,
                       .momentum = 0.5,
                       .new_running_mean = running_mean.data(),
                       .new_running_variance = running_variance.data(),
                       .running_mean = running_mean.data(),
                       .running_variance = running_variance.data(),
                       .status = status.data()},
                      nullptr);
    EXPECT_EQ(test::doubles(running_mean), (std::vector<double>{failed ? 0 : 0.5, 5, 6}));
    EXPECT_EQ(test::doubles(running_variance), (std::vector<double>{failed ? 2 : 1.5, 7, 8}));
  }
}

/// NU10: NaN goes through the activation; other channels do not see it.
TEST(KernelBatchNorm, NU10) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> numbers = test::random_numbers(9 * 8, 1);
  numbers[3 * 8 + 2] = nan;
  for (const DType dtype : test::kFloatTypes) {
    const Values x(dtype, numbers), y(dtype, 9 * 8);
    DeviceBuffer<float> mean(8), inverse(8), unbiased(8);
    batch_norm({.activation = Activation::relu,
                .channels = 8,
                .dtype = dtype,
                .inverse_deviation = inverse.data(),
                .mean = mean.data(),
                .rows = 9,
                .unbiased_variance = unbiased.data(),
                .x = x.data(),
                .y = y.data()},
               nullptr);
    const std::vector<double> got = y.get();
    for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(std::isnan(got[i]), i % 8 == 2) << i;
    const DeviceBuffer<float> zero(std::vector<float>(1, 0)), one(std::vector<float>(1, 1));
    for (const auto& [in, out] : {std::pair(nan, nan), {HUGE_VAL, HUGE_VAL}, {-HUGE_VAL, 0.0}}) {
      for (const size_t length : {size_t{1}, size_t{7}, size_t{8}, size_t{67}}) {
        const Values from(dtype, std::vector<double>(length, in)), to(dtype, length);
        batch_norm_inference({.activation = Activation::relu,
                              .channels = 1,
                              .dtype = dtype,
                              .rows = static_cast<int64_t>(length),
                              .variance = one.data(),
                              .x = from.data(),
                              .y = to.data()},
                             nullptr);
        for (const double v : to.get()) EXPECT_TRUE(std::isnan(out) ? std::isnan(v) : v == out) << in << " gave " << v;
      }
    }
  }
}

TEST(KernelBatchNorm, RefusesWhatItCannotDo) {
  const Values x(DType::f32, std::vector<double>(8)), y(DType::f32, 8);
  DeviceBuffer<float> f(8);
  BatchNormOptions o{.channels = 8,
                     .inverse_deviation = f.data(),
                     .mean = f.data(),
                     .rows = 1,
                     .unbiased_variance = f.data(),
                     .x = x.data(),
                     .y = y.data()};
  const auto text = [&](auto change) {
    BatchNormOptions changed = o;
    change(changed);
    return test::error_text([&] { batch_norm(changed, nullptr); });
  };
  EXPECT_EQ(text([](auto& c) { c.channels = 0; }),
            "Error [option] kernels::batch_norm.channels = 0: must be 1 or more");
  EXPECT_NE(text([](auto& c) { c.dtype = DType::i32; }).find("kernels::batch_norm.dtype = i32"), std::string::npos);
  EXPECT_NE(text([](auto& c) { c.y = nullptr; }).find("kernels::batch_norm.y = null"), std::string::npos);
  EXPECT_NE(text([](auto& c) { c.epsilon = 0; }).find("kernels::batch_norm.epsilon = 0"), std::string::npos);
  EXPECT_NE(text([](auto& c) { c.rows = 100000; }).find("kernels::batch_norm.workspace_bytes = 0"), std::string::npos);
}

}  // namespace
}  // namespace brisk::kernels
