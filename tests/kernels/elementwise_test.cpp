// Elementwise programs against formulas in double: each operation and type, tails, broadcasting, chains, dropout.
#include "brisk/kernels/elementwise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "brisk/error.h"
#include "core/philox.h"
#include "kernels/elements.h"

namespace brisk::kernels {
namespace {

using E = Elementwise;

double logistic(double x) { return 1 / (1 + std::exp(-x)); }
double normal_below(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }
double normal_density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(8 * std::atan(1.0)); }
double sign(double x) { return std::isnan(x) ? x : (x > 0) - (x < 0); }

double gelu_tanh_slope(double x) {
  const double c = std::sqrt(0.5 / std::atan(1.0)), z = 2 * c * (x + 0.044715 * x * x * x), s = logistic(z);
  return s + x * s * (1 - s) * 2 * c * (1 + 3 * 0.044715 * x * x);
}

bool holds(Relation relation, double a, double b) {
  switch (relation) {
    case Relation::less:
      return a < b;
    case Relation::less_equal:
      return a <= b;
    case Relation::greater:
      return a > b;
    case Relation::greater_equal:
      return a >= b;
    case Relation::equal:
      return a == b;
    default:
      return a != b;
  }
}

/// The definitions; k, h: constant and high.
double reference(const ElementwiseStep& s, double a, double b, double c) {
  const double k = static_cast<double>(s.constant), h = static_cast<double>(s.high);
  const auto choice = [&](bool other) { return other ? 0 : b == c ? a / 2 : a; };
  switch (s.operation) {
    case E::copy:
      return a;
    case E::add:
      return a + b;
    case E::sub:
      return a - b;
    case E::mul:
      return a * b;
    case E::div:
      return a / b;
    case E::minimum:
      return std::isnan(a) || std::isnan(b) ? kNan : std::min(a, b);
    case E::maximum:
      return std::isnan(a) || std::isnan(b) ? kNan : std::max(a, b);
    case E::relu:
      return std::isnan(a) ? a : std::max(a, 0.0);
    case E::leaky_relu:
      return a > 0 ? a : k * a;
    case E::elu:
      return a > 0 ? a : k * std::expm1(a);
    case E::gelu:
      return a * normal_below(a);
    case E::gelu_tanh:
      return a * logistic(2 * std::sqrt(0.5 / std::atan(1.0)) * (a + 0.044715 * a * a * a));
    case E::silu:
      return a * logistic(a);
    case E::softplus:
      return std::max(a, 0.0) + std::log1p(std::exp(-std::abs(a)));
    case E::tanh:
      return std::tanh(a);
    case E::sigmoid:
      return logistic(a);
    case E::exp:
      return std::exp(a);
    case E::log:
      return std::log(a);
    case E::sqrt:
      return std::sqrt(a);
    case E::abs:
      return std::abs(a);
    case E::pow:
      return std::pow(a, s.exponent);
    case E::clamp:
      return std::isnan(a) ? a : std::min(std::max(a, k), h);
    case E::reciprocal:
      return k / a;
    case E::scale:
      return a * k;
    case E::add_scalar:
      return a + k;
    case E::huber:
      return std::abs(a) <= k ? a * a / 2 : k * (std::abs(a) - k / 2);
    case E::compare:
      return holds(s.relation, a, b);
    case E::compare_scalar:
      return holds(s.relation, a, k);
    case E::where:
      return a != 0 ? b : c;
    case E::minimum_gradient:
      return choice(c < b);
    case E::maximum_gradient:
      return choice(c > b);
    case E::relu_gradient:
      return std::isnan(b) ? b : b > 0 ? a : 0;
    case E::leaky_relu_gradient:
      return std::isnan(b) ? b : b > 0 ? a : k * a;
    case E::elu_gradient:
      return b > 0 ? a : a * (b + k);
    case E::gelu_gradient:
      return a * (normal_below(b) + b * normal_density(b));
    case E::gelu_tanh_gradient:
      return a * gelu_tanh_slope(b);
    case E::silu_gradient:
      return a * logistic(b) * (1 + b * logistic(-b));
    case E::tanh_gradient:
      return a * (1 - b * b);
    case E::sigmoid_gradient:
      return a * b * (1 - b);
    case E::abs_gradient:
      return a * sign(b);
    case E::clamp_gradient:
      return std::isnan(b) ? b : k < b && b < h ? a : 0;
    case E::huber_gradient:
      return a * std::min(std::max(b, -k), k);
    case E::where_gradient:
      return (a != 0) == s.chosen ? b : 0;
    default:
      return kNan;
  }
}

/// Runs a program of one step over sources of one type.
std::vector<double> run_one(ElementwiseStep step, const std::vector<std::vector<double>>& inputs, DType dtype,
                            int offset = 0) {
  std::vector<Elements> buffers;
  std::vector<ElementwiseSource> sources;
  for (const auto& input : inputs) {
    buffers.emplace_back(dtype, input, offset);
    sources.push_back({buffers.back().data(), dtype});
  }
  step.a = 0;
  step.b = std::min(1, static_cast<int>(inputs.size()) - 1);
  step.c = static_cast<int>(inputs.size()) - 1;
  const Elements out(dtype, inputs[0].size(), offset);
  const ElementwiseOutput output{out.data(), dtype, static_cast<int32_t>(inputs.size())};
  const int64_t dims[] = {static_cast<int64_t>(inputs[0].size())};
  elementwise({.dims = dims, .outputs = {&output, 1}, .sources = sources, .steps = {&step, 1}}, nullptr);
  return out.values();
}

ElementwiseStep step_of(E operation, float constant = 0, float high = 0) {
  ElementwiseStep step;
  step.operation = operation;
  step.constant = constant;
  step.high = high;
  return step;
}

struct OperationCase {
  ElementwiseStep step;
  int operands;
};

std::vector<OperationCase> operations() {
  std::vector<OperationCase> all;
  for (const E e : {E::copy, E::relu, E::gelu, E::gelu_tanh, E::silu, E::softplus, E::tanh, E::sigmoid, E::exp, E::log,
                    E::sqrt, E::abs}) {
    all.push_back({step_of(e), 1});
  }
  all.push_back({step_of(E::leaky_relu, 0.125f), 1});
  all.push_back({step_of(E::elu, 1.5f), 1});
  all.push_back({step_of(E::clamp, -0.75f, 1.25f), 1});
  all.push_back({step_of(E::reciprocal, 3), 1});
  all.push_back({step_of(E::scale, -0.3f), 1});
  all.push_back({step_of(E::add_scalar, 0.7f), 1});
  all.push_back({step_of(E::huber, 0.9f), 1});
  for (const double exponent : {-2.0, -0.5, 0.0, 1.0 / 3, 2.0, 3.0}) {
    all.push_back({step_of(E::pow), 1});
    all.back().step.exponent = exponent;
  }
  for (int relation = 0; relation < 6; ++relation) {
    for (const E e : {E::compare, E::compare_scalar}) {
      all.push_back({step_of(e, 0.5f), e == E::compare ? 2 : 1});
      all.back().step.relation = static_cast<Relation>(relation);
    }
  }
  for (const E e : {E::add, E::sub, E::mul, E::div, E::minimum, E::maximum, E::relu_gradient, E::gelu_gradient,
                    E::gelu_tanh_gradient, E::silu_gradient, E::tanh_gradient, E::sigmoid_gradient, E::abs_gradient,
                    E::where_gradient}) {
    all.push_back({step_of(e), 2});
  }
  all.push_back({step_of(E::where_gradient), 2});
  all.back().step.chosen = false;
  all.push_back({step_of(E::leaky_relu_gradient, 0.125f), 2});
  all.push_back({step_of(E::elu_gradient, 1.5f), 2});
  all.push_back({step_of(E::clamp_gradient, -0.75f, 1.25f), 2});
  all.push_back({step_of(E::huber_gradient, 0.9f), 2});
  for (const E e : {E::where, E::minimum_gradient, E::maximum_gradient}) all.push_back({step_of(e), 3});
  return all;
}

/// Some equal to those of another operand, some 0, the rest all over the range.
std::vector<double> operand_values(int operand, size_t count, DType dtype) {
  std::vector<double> values = random_values(count, static_cast<unsigned>(7 + operand), -6, 6);
  const double fixed[] = {0, 0.5, -0.75, 1.25, 1, -1};
  for (size_t i = 0; i < count; i += 3) values[i] = fixed[i / 3 % std::size(fixed)];
  return rounded(values, dtype);
}

TEST(Elementwise, EachOperationAndType) {
  for (const DType dtype : kFloatTypes) {
    for (const OperationCase& c : operations()) {
      SCOPED_TRACE(testing::Message() << name(dtype) << ", operation " << static_cast<int>(c.step.operation));
      std::vector<std::vector<double>> inputs;
      for (int i = 0; i < c.operands; ++i) inputs.push_back(operand_values(i, 1061, dtype));
      std::vector<double> want;
      for (size_t i = 0; i < inputs[0].size(); ++i) {
        want.push_back(rounded(reference(c.step, inputs[0][i],
                                         inputs[static_cast<size_t>(std::min(1, c.operands - 1))][i], inputs.back()[i]),
                               dtype));
      }
      const double scale = dtype == DType::f32 ? 0 : 2 * test::rounding(dtype);
      expect_close(run_one(c.step, inputs, dtype), want, 8 * 0x1p-24 + scale, 4e-7);
    }
  }
}

TEST(Elementwise, LimitsAndNan) {
  const std::vector<double> x = {kNan, kInfinity, -kInfinity, 100, -100, 0};
  for (const E e : {E::relu, E::gelu, E::gelu_tanh, E::silu, E::softplus, E::tanh, E::sigmoid, E::exp, E::abs}) {
    SCOPED_TRACE(static_cast<int>(e));
    std::vector<double> want;
    for (const double value : x) {
      const bool vanishes = value == -kInfinity && (e == E::gelu || e == E::gelu_tanh || e == E::silu);
      want.push_back(vanishes ? 0 : rounded(reference(step_of(e), value, value, value), DType::f32));
    }
    expect_close(run_one(step_of(e), {x}, DType::f32), want, 1e-6, 1e-37);
  }
}

TEST(Elementwise, NanOfAnOperandStaysInItsPlace) {
  std::vector<double> a = random_values(24, 1), b = random_values(24, 2);
  for (size_t i = 0; i < b.size(); i += 3) b[i] = kNan;
  for (const E e :
       {E::minimum, E::maximum, E::add, E::relu_gradient, E::leaky_relu_gradient, E::abs_gradient, E::clamp_gradient}) {
    SCOPED_TRACE(static_cast<int>(e));
    const ElementwiseStep step = step_of(e, 0.5f, 1);
    std::vector<double> want;
    for (size_t i = 0; i < a.size(); ++i) want.push_back(rounded(reference(step, a[i], b[i], b[i]), DType::f32));
    EXPECT_EQ(std::count_if(want.begin(), want.end(), [](double x) { return std::isnan(x); }), 8);
    expect_close(run_one(step, {a, b}, DType::f32), want, 0);
  }
}

TEST(Elementwise, NU10_ReluKeepsNanInEachPlaceOfAVector) {
  for (const DType dtype : kFloatTypes) {
    for (size_t length = 1; length <= 67; ++length) {
      SCOPED_TRACE(testing::Message() << name(dtype) << ", length " << length);
      std::vector<double> x, want;
      for (size_t i = 0; i < length; ++i) {
        x.push_back(i % 3 == 0 ? kNan : i % 3 == 1 ? kInfinity : -kInfinity);
        want.push_back(i % 3 == 2 ? 0 : x.back());
      }
      expect_close(run_one(step_of(E::relu), {x}, dtype), want, 0);
    }
  }
}

TEST(Elementwise, PointersOfOneElementsAlignment) {
  for (const DType dtype : kFloatTypes) {
    const std::vector<double> a = rounded(random_values(300, 1), dtype), b = rounded(random_values(300, 2), dtype);
    std::vector<double> want;
    for (size_t i = 0; i < a.size(); ++i) want.push_back(rounded(a[i] * b[i], dtype));
    EXPECT_EQ(run_one(step_of(E::mul), {a, b}, dtype, 1), want) << name(dtype);
  }
}

/// y = x + bias for a bias of these strides.
void check_broadcast(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides, DType dtype) {
  const auto total = static_cast<size_t>(std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>()));
  int64_t reach = 1;
  for (size_t d = 0; d < dims.size(); ++d) reach += (dims[d] - 1) * strides[d];
  const std::vector<double> x = rounded(random_values(total, 3), dtype);
  const std::vector<double> bias = rounded(random_values(static_cast<size_t>(reach), 4), dtype);
  std::vector<double> want;
  for (size_t i = 0; i < total; ++i) {
    int64_t at = 0;
    size_t rest = i;
    for (size_t d = dims.size(); d-- > 0; rest /= static_cast<size_t>(dims[d])) {
      at += static_cast<int64_t>(rest % static_cast<size_t>(dims[d])) * strides[d];
    }
    want.push_back(rounded(static_cast<double>(static_cast<float>(x[i] + bias[static_cast<size_t>(at)])), dtype));
  }
  const Elements in(dtype, x), added(dtype, bias), out(dtype, total);
  const ElementwiseSource sources[] = {{in.data(), dtype}, {added.data(), dtype, strides}};
  const ElementwiseOutput output{out.data(), dtype, 2};
  ElementwiseStep step = step_of(E::add);
  step.b = 1;
  elementwise({.dims = dims, .outputs = {&output, 1}, .sources = sources, .steps = {&step, 1}}, nullptr);
  EXPECT_EQ(out.values(), want);
}

TEST(Elementwise, Broadcasting) {
  const std::pair<std::vector<int64_t>, std::vector<int64_t>> cases[] = {
      {{3, 5, 7, 16}, {0, 0, 0, 1}},  // channels last, 16 of them
      {{3, 5, 7, 13}, {0, 0, 0, 1}},  // and 13
      {{3, 6, 5, 7}, {0, 1, 0, 0}},   // channels first
      {{4, 3, 40}, {0, 0, 0}},        // one element
      {{5, 1, 9, 8}, {1, 0, 0, 0}},   // one a sample
      {{5, 9, 8}, {8, 0, 1}},         // a row a sample
      {{2, 3, 2, 3, 2, 5}, {0, 5, 0, 10, 0, 1}},
      {{6, 11}, {1, 6}},  // transposed
      {{1, 1, 1}, {0, 0, 0}},
      {{3, 64}, {0, 2}},
  };
  for (const DType dtype : kFloatTypes) {
    for (const auto& [dims, strides] : cases) {
      SCOPED_TRACE(testing::Message() << name(dtype) << ", " << testing::PrintToString(dims));
      check_broadcast(dims, strides, dtype);
    }
  }
}

/// Programs of random steps: what is kept, where, and when it is given up must not change a result.
TEST(Elementwise, RandomProgramsOnEachSchedule) {
  std::mt19937 generator(5);
  const auto draw = [&](int below) { return static_cast<int32_t>(generator() % static_cast<unsigned>(below)); };
  const E kinds[] = {E::add, E::sub, E::maximum, E::minimum, E::relu, E::where, E::scale, E::copy};
  int run = 0;
  for (int round = 0; round < 150; ++round) {
    const int sources = 1 + draw(4), steps = 1 + draw(12), outputs = 1 + draw(std::min(3, steps));
    const size_t count = static_cast<size_t>(1 + draw(40));
    std::vector<std::vector<double>> value;
    std::vector<Elements> buffers;
    std::vector<ElementwiseSource> source;
    for (int i = 0; i < sources; ++i) {
      value.push_back(random_values(count, static_cast<unsigned>(draw(1000))));
      buffers.emplace_back(DType::f32, value.back());
      source.push_back({buffers.back().data(), DType::f32});
    }
    std::vector<ElementwiseStep> program;
    for (int k = 0; k < steps; ++k) {
      ElementwiseStep step = step_of(kinds[draw(std::size(kinds))], 0.5f);
      step.a = draw(sources + k), step.b = draw(sources + k), step.c = draw(sources + k);
      program.push_back(step);
      std::vector<double> result;
      for (size_t i = 0; i < count; ++i) {
        result.push_back(
            rounded(reference(step, value[static_cast<size_t>(step.a)][i], value[static_cast<size_t>(step.b)][i],
                              value[static_cast<size_t>(step.c)][i]),
                    DType::f32));
      }
      value.push_back(result);
    }
    std::vector<ElementwiseOutput> output;  // the first in place of a source
    std::vector<Elements> results;
    for (int i = 0; i < outputs; ++i) {
      const int32_t made = i == 0 ? sources + steps - 1 : sources + draw(steps);
      if (i > 0) results.emplace_back(DType::f32, count);
      output.push_back({i == 0 ? buffers[0].data() : results.back().data(), DType::f32, made});
    }
    if (!elementwise_fits(output, sources, program)) continue;
    ++run;
    simt::config().seed = static_cast<uint64_t>(round % 4);
    const int64_t dims[] = {static_cast<int64_t>(count)};
    elementwise({.dims = dims, .outputs = output, .sources = source, .steps = program}, nullptr);
    EXPECT_EQ(buffers[0].values(), value[static_cast<size_t>(output[0].value)]) << "program " << round;
    for (size_t i = 1; i < output.size(); ++i) {
      EXPECT_EQ(results[i - 1].values(), value[static_cast<size_t>(output[i].value)]) << "program " << round;
    }
  }
  simt::config().seed = 0;
  EXPECT_GT(run, 120);
}

TEST(Elementwise, TypesMayDiffer) {
  const std::vector<double> a = rounded(random_values(77, 1), DType::f16), b = random_values(77, 2);
  std::vector<double> want;
  for (size_t i = 0; i < a.size(); ++i)
    want.push_back(rounded(std::max(0.0, rounded(a[i] + b[i], DType::f32)), DType::bf16));
  const Elements x(DType::f16, a), y(DType::f32, b), sum(DType::bf16, a.size());
  const ElementwiseSource sources[] = {{x.data(), DType::f16}, {y.data(), DType::f32}};
  ElementwiseStep steps[] = {step_of(E::add), step_of(E::relu)};
  steps[0].b = 1;
  steps[1].a = 2;
  const ElementwiseOutput output{sum.data(), DType::bf16, 3};
  const int64_t dims[] = {7, 11};
  elementwise({.dims = dims, .outputs = {&output, 1}, .sources = sources, .steps = steps}, nullptr);
  EXPECT_EQ(sum.values(), want);
}

/// Dropout's mask of a batch that lies channels last, from the generator's definition.
std::vector<double> dropped(const std::vector<double>& x, const RunState& run, uint64_t key, int64_t elements,
                            int64_t channels, int64_t positions, uint32_t threshold, float factor) {
  std::vector<double> y;
  for (int64_t i = 0; i < static_cast<int64_t>(x.size()); ++i) {
    int64_t e = i % elements;
    if (channels > 1 && positions > 1) {
      const int64_t image = e / (channels * positions), inside = e % (channels * positions);
      e = image * channels * positions + inside % channels * positions + inside / channels;
    }
    const PhiloxBlock words = brisk::philox(
        key, philox_counter(static_cast<uint64_t>(run.attempt), static_cast<uint32_t>(run.first_sample + i / elements),
                            static_cast<uint32_t>(e / 4)));
    const bool kept = words[static_cast<size_t>(e % 4)] >= threshold;
    y.push_back(kept ? rounded(x[static_cast<size_t>(i)] * static_cast<double>(factor), DType::f32) : 0);
  }
  return y;
}

TEST(Elementwise, DropoutHasTheBitsOfTheGenerator) {
  struct Case {
    int64_t samples, elements, channels, positions;
  };
  for (const Case& c : {Case{5, 24, 1, 1}, Case{3, 13, 1, 1}, Case{2, 6 * 9, 6, 9}, Case{3, 2 * 5 * 4, 5, 4}}) {
    SCOPED_TRACE(c.elements);
    const RunState state{.attempt = (int64_t{3} << 32) + 7, .first_sample = 640};
    const simt::DeviceBuffer<RunState> run({state});
    const std::vector<double> x = random_values(static_cast<size_t>(c.samples * c.elements), 9);
    ElementwiseStep step = step_of(E::dropout, 1.25f);
    step.key = 0x123456789abcdef;
    step.threshold = static_cast<uint32_t>(bernoulli_threshold(0.2));
    const Elements in(DType::f32, x), out(DType::f32, x.size());
    const ElementwiseSource source{in.data(), DType::f32};
    const ElementwiseOutput output{out.data(), DType::f32, 1};
    const int64_t dims[] = {c.samples, c.elements};
    elementwise({.channels = c.channels,
                 .dims = dims,
                 .outputs = {&output, 1},
                 .positions = c.positions,
                 .run = run.data(),
                 .sample_elements = c.elements,
                 .sources = {&source, 1},
                 .steps = {&step, 1}},
                nullptr);
    EXPECT_EQ(out.values(), dropped(x, state, step.key, c.elements, c.channels, c.positions, step.threshold, 1.25f));
  }
}

std::string refusal(const ElementwiseOptions& options) {
  try {
    elementwise(options, nullptr);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::option);
    return error.what();
  }
  return "accepted";
}

TEST(Elementwise, RefusesWhatDoesNotFit) {
  const Elements x(DType::f32, std::vector<double>(8)), y(DType::f32, 8);
  const int64_t dims[] = {8}, two[] = {2, 4}, strides[] = {1};
  const ElementwiseSource source{x.data(), DType::f32};
  ElementwiseStep step = step_of(E::relu);
  ElementwiseOutput output{y.data(), DType::f32, 1};
  const auto base = [&] {
    return ElementwiseOptions{.dims = dims, .outputs = {&output, 1}, .sources = {&source, 1}, .steps = {&step, 1}};
  };
  EXPECT_EQ(refusal(base()), "accepted");
  step.a = 1;
  EXPECT_EQ(refusal(base()),
            "Error [option] kernels::elementwise.steps.a = 1: must name a source or the result of an earlier step");
  step.a = 0;
  output.value = 0;
  EXPECT_EQ(refusal(base()), "Error [option] kernels::elementwise.outputs.value = 0: must name the result of a step");
  output = {y.data(), DType::i32, 1};
  EXPECT_EQ(refusal(base()), "Error [option] kernels::elementwise.outputs.dtype = i32: must be f32, f16 or bf16");
  output = {nullptr, DType::f32, 1};
  EXPECT_EQ(refusal(base()), "Error [option] kernels::elementwise.outputs.data = null: must be a device pointer");
  output = {y.data(), DType::f32, 1};
  const ElementwiseSource wrong{x.data(), DType::f32, strides};
  ElementwiseOptions options = base();
  options.dims = two;
  options.sources = {&wrong, 1};
  EXPECT_EQ(refusal(options),
            "Error [option] kernels::elementwise.sources.strides = 1: entries: must be one a dimension, or none");
  step.operation = E::dropout;
  EXPECT_EQ(refusal(base()), "Error [option] kernels::elementwise.run = null: must be a device pointer");
}

TEST(Elementwise, KeepsAtMostEightResults) {
  const ElementwiseOutput output{nullptr, DType::f32, 0};
  for (const int kept : {8, 9}) {
    std::vector<ElementwiseStep> steps;  // `kept` results and one more, then their sum
    for (int i = 0; i <= kept; ++i) steps.push_back(step_of(E::scale, 2));
    for (int i = 0; i < kept; ++i) {
      ElementwiseStep add = step_of(E::add);
      add.a = i == 0 ? 1 + kept : kept + 1 + i;
      add.b = 1 + i;
      steps.push_back(add);
    }
    ElementwiseOutput last = output;
    last.value = static_cast<int32_t>(steps.size());
    EXPECT_EQ(elementwise_fits({&last, 1}, 1, steps), kept == 8);
  }
  ElementwiseStep bad = step_of(E::add);
  bad.b = 5;
  const ElementwiseOutput first{nullptr, DType::f32, 1};
  EXPECT_FALSE(elementwise_fits({&first, 1}, 1, {&bad, 1}));
}

}  // namespace
}  // namespace brisk::kernels
