// check_gradient: right derivatives pass, planted errors are found and named.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "graph/examples.h"
#include "support/own_ops.h"

namespace brisk {
namespace {

using graph::test::error_of;
using test::LearntSwish;

const std::vector<Shape> kShapes = {{2, 3, 4, 4}, {3}};

/// LearntSwish with something wrong.
struct Wrong : LearntSwish {
  std::function<void(ConstViews in, Views out)> after_forward = [](ConstViews, Views) {};
  std::function<void(const OpBackward& g)> before_backward = [](const OpBackward&) {};
  std::function<void(const OpBackward& g)> after_backward = [](const OpBackward&) {};
  void forward(const OpContext& c, ConstViews in, Views out) const override {
    LearntSwish::forward(c, in, out);
    after_forward(in, out);
  }
  void backward(const OpContext& c, const OpBackward& g) const override {
    before_backward(g);
    LearntSwish::backward(c, g);
    after_backward(g);
  }
};

std::string after_backward(std::function<void(const OpBackward& g)> change) {
  Wrong op;
  op.after_backward = std::move(change);
  const GradientReport report = check_gradient(op, kShapes);
  EXPECT_FALSE(report.ok) << report.text;
  return report.text;
}

TEST(CheckGradient, ARightDerivativePasses) {
  const GradientReport report = check_gradient(LearntSwish{}, {{2, 3, 4, 4}, {3}});
  EXPECT_TRUE(report.ok) << report.text;
  EXPECT_NE(report.text.find("learnt_swish: backward agrees with 107 finite differences"), std::string::npos)
      << report.text;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const GradientReport other = check_gradient(LearntSwish{}, {{3, 2, 1, 5}, {2}}, {.seed = seed});
    EXPECT_TRUE(other.ok) << seed << ": " << other.text;
  }
  EXPECT_TRUE(check_gradient(LearntSwish{}, {{16, 8, 20, 20}, {8}}, {.elements = 40}).ok) << "elements are drawn";
}

TEST(CheckGradient, AFactorIsFound) {
  const std::string text = after_backward([](const OpBackward& g) {
    for (int64_t i = 0; i < g.input_gradients[1].count(); ++i) g.input_gradients[1].data<float>()[i] *= 1.01f;
  });
  EXPECT_NE(text.find("learnt_swish: gradient of input 1, element "), std::string::npos) << text;
}

TEST(CheckGradient, OneWrongElementIsFoundAndNamed) {
  const std::string text = after_backward([](const OpBackward& g) { g.input_gradients[0].data<float>()[37] += 0.02f; });
  EXPECT_NE(text.find("gradient of input 0, element 37: backward gives "), std::string::npos) << text;
}

TEST(CheckGradient, AMissingTermIsFound) {
  // dx = dy s: without the derivative of s.
  const std::string text = after_backward([](const OpBackward& g) {
    const float *x = g.inputs[0].data<float>(), *b = g.inputs[1].data<float>();
    for (int64_t i = 0; i < g.inputs[0].count(); ++i) {
      const float s = 1 / (1 + std::exp(-b[i / 16 % 3] * x[i]));
      g.input_gradients[0].data<float>()[i] = g.output_gradients[0].data<float>()[i] * s;
    }
  });
  EXPECT_NE(text.find("gradient of input 0"), std::string::npos) << text;
}

TEST(CheckGradient, WrongSumsOverLargeInputsAreFoundInDirections) {
  Wrong op;
  op.after_backward = [](const OpBackward& g) {
    const int64_t half = g.input_gradients[0].count() / 2;
    std::fill_n(g.input_gradients[0].data<float>() + half, half, 0.0f);
  };
  const GradientReport report = check_gradient(op, {{16, 8, 20, 20}, {8}}, {.elements = 1});
  EXPECT_FALSE(report.ok);
}

TEST(CheckGradient, AddingInsteadOfOverwritingIsFound) {
  Wrong op;
  std::vector<float> before;
  op.before_backward = [&](const OpBackward& g) {
    before.assign(g.input_gradients[0].data<float>(),
                  g.input_gradients[0].data<float>() + g.input_gradients[0].count());
  };
  op.after_backward = [&](const OpBackward& g) {
    for (size_t i = 0; i < before.size(); ++i) g.input_gradients[0].data<float>()[i] += before[i];
  };
  const GradientReport report = check_gradient(op, kShapes);
  EXPECT_FALSE(report.ok);
  EXPECT_NE(report.text.find("gradient of input 0, element 0, is not overwritten"), std::string::npos) << report.text;
}

TEST(CheckGradient, WritesOutsideAreFound) {
  EXPECT_NE(after_backward([](const OpBackward& g) {
              g.input_gradients[1].data<float>()[3] = 0;
            }).find("writes outside of the gradients"),
            std::string::npos);
  Wrong op;
  op.after_forward = [](ConstViews, Views out) { out[0].data<float>()[-1] = 0; };
  EXPECT_NE(check_gradient(op, kShapes).text.find("writes outside of the output"), std::string::npos);
}

TEST(CheckGradient, AnOutputThatIsNotFiniteIsFound) {
  Wrong op;
  op.after_forward = [](ConstViews, Views out) { out[0].data<float>()[5] = NAN; };
  EXPECT_NE(check_gradient(op, kShapes).text.find("output, element 5, is nan"), std::string::npos);
}

TEST(CheckGradient, ReadingWhatIsNotDeclaredIsAnError) {
  Wrong op;
  op.after_backward = [](const OpBackward& g) { g.outputs[0].data<float>(); };
  EXPECT_NE(error_of([&] { check_gradient(op, kShapes); }).find("backward_reads() says that it reads no outputs"),
            std::string::npos);
}

/// y = max(x, 0): a kink.
struct Ramp : CustomOp {
  std::string name() const override { return "ramp"; }
  TensorType infer(TensorTypes in) const override { return in[0]; }
  Reads backward_reads() const override { return Reads::outputs; }
  void forward(const OpContext&, ConstViews in, Views out) const override {
    for (int64_t i = 0; i < in[0].count(); ++i) out[0].data<float>()[i] = std::max(in[0].data<float>()[i], 0.0f);
  }
  void backward(const OpContext&, const OpBackward& g) const override {
    for (int64_t i = 0; i < g.outputs[0].count(); ++i)
      g.input_gradients[0].data<float>()[i] =
          g.outputs[0].data<float>()[i] > 0 ? g.output_gradients[0].data<float>()[i] : 0;
  }
};

TEST(CheckGradient, KinksPass) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const GradientReport report = check_gradient(Ramp{}, {{5, 40}}, {.seed = seed});
    EXPECT_TRUE(report.ok) << seed << ": " << report.text;
  }
  Tensor zero(Shape{1, 4});
  EXPECT_TRUE(check_gradient(Ramp{}, {{1, 4}}, {.values = {zero}}).ok);
}

/// y = rows of a table: an integer input, sums over equal rows.
struct Lookup : CustomOp {
  bool transposed = false;  ///< pieces that write into one another
  std::string name() const override { return "lookup"; }
  TensorType infer(TensorTypes in) const override {
    TensorType out = in[0];
    out.dtype = DType::f32;
    out.shape = {in[1].dim(1)};
    return out;
  }
  Reads backward_reads() const override { return Reads::inputs; }
  void forward(const OpContext& c, ConstViews in, Views out) const override {
    const int64_t width = in[1].dim(1);
    c.parallel_for(in[0].dim(0), [&](int64_t first, int64_t last) {
      for (int64_t n = first; n < last; ++n)
        for (int64_t k = 0; k < width; ++k)
          out[0].data<float>()[n * width + k] = in[1].data<float>()[in[0].data<int64_t>()[n] * width + k];
    });
  }
  void backward(const OpContext& c, const OpBackward& g) const override {
    const int64_t width = g.inputs[1].dim(1);
    const View table = g.input_gradients[1];
    std::fill_n(table.data<float>(), table.count(), 0.0f);
    const auto rows = [&](int64_t first, int64_t last) {
      for (int64_t n = first; n < last; ++n)
        for (int64_t k = 0; k < width; ++k)
          table.data<float>()[g.inputs[0].data<int64_t>()[n] * width + k] +=
              g.output_gradients[0].data<float>()[n * width + k];
    };
    if (transposed)
      c.parallel_for(g.inputs[0].dim(0), rows);
    else
      rows(0, g.inputs[0].dim(0));
  }
};

TEST(CheckGradient, IntegersHaveNoGradientAndOrdersAreCompared) {
  const Tensor rows(std::vector<int64_t>{2, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2}, {12});
  Tensor table(Shape{3, 2});
  for (int i = 0; i < 6; ++i) table.data<float>()[i] = 0.1f * static_cast<float>(i + 1);
  Lookup op;
  const GradientReport report = check_gradient(op, {{12}, {3, 2}}, {.values = {rows, table}});
  EXPECT_TRUE(report.ok) << report.text;
  op.transposed = true;
  const GradientReport racy = check_gradient(op, {{12}, {3, 2}}, {.values = {rows, table}});
  EXPECT_NE(racy.text.find("gradient of input 1, element 4, has other bits when the pieces of parallel_for run in "
                           "another order"),
            std::string::npos)
      << racy.text;
}

TEST(CheckGradient, OptionsOutOfRangeAreRefused) {
  const LearntSwish op;
  EXPECT_NE(error_of([&] { check_gradient(op, {}); }).find("check_gradient.shapes"), std::string::npos);
  EXPECT_NE(error_of([&] { check_gradient(op, {{2, 0, 1, 1}, {3}}); }).find("has no elements"), std::string::npos);
  EXPECT_NE(error_of([&] { check_gradient(op, kShapes, {.tolerance = 0}); }).find(".tolerance"), std::string::npos);
  EXPECT_NE(error_of([&] { check_gradient(op, kShapes, {.elements = 0}); }).find(".elements"), std::string::npos);
  EXPECT_NE(error_of([&] { check_gradient(op, kShapes, {.directions = -1}); }).find(".directions"), std::string::npos);
  EXPECT_NE(error_of([&] { check_gradient(op, kShapes, {.batched = {true}}); }).find(".batched"), std::string::npos);
  const Tensor one(Shape{1});
  EXPECT_NE(error_of([&] {
              check_gradient(op, kShapes, {.values = {one, one}});
            }).find("input 0 has shape [1]"),
            std::string::npos);
}

}  // namespace
}  // namespace brisk
