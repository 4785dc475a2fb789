// The optimizers over several updates against double, with parameters that share units and parameters that fill
// several.
#include <gtest/gtest.h>

#include <cmath>

#include "support/random.h"
#include "support/run_node.h"

namespace brisk::test {
namespace {

using graph::Place;
const std::vector<int64_t> kSizes = {5, 20000, 1, 17, 8192};

std::vector<double> random_values(int64_t count, uint64_t seed) {
  Random random(seed);
  std::vector<double> values(static_cast<size_t>(count));
  for (double& value : values) value = random.uniform(-1, 1);
  return values;
}

graph::ValueType vector_type(int64_t count) { return {DType::f32, 0, Shape{count}}; }
Operand scalar(double value, int32_t slot) { return {{DType::f32, 0, Shape{}}, {value}, Place::scalar, slot}; }

/// The state of one parameter.
struct State {
  std::vector<double> weight, moment1, moment2;
};

/// A walk's inputs: `scalars` first, then each parameter with its gradient and moments.
NodeCase walk(const std::string& op, graph::Attributes attributes, std::vector<Operand> scalars, double nonfinite,
              const std::vector<State>& states, uint64_t seed) {
  NodeCase made{op, std::move(attributes), std::move(scalars)};
  made.inputs.push_back({vector_type(4), {1, nonfinite, 0.75, -1}});
  for (size_t k = 0; k < states.size(); ++k) {
    const auto slot = static_cast<int32_t>(k);
    const graph::ValueType type = vector_type(kSizes[k]);
    made.inputs.push_back({type, states[k].weight, Place::parameter, slot});
    made.inputs.push_back({type, random_values(kSizes[k], seed + k), Place::gradient, slot});
    if (!states[k].moment1.empty()) made.inputs.push_back({type, states[k].moment1, Place::moment1, slot});
    if (!states[k].moment2.empty()) made.inputs.push_back({type, states[k].moment2, Place::moment2, slot});
  }
  return made;
}

std::vector<State> first_states(bool moment1, bool moment2) {
  std::vector<State> states(kSizes.size());
  for (size_t k = 0; k < states.size(); ++k) {
    const std::vector<double> zeros(static_cast<size_t>(kSizes[k]), 0.0);
    states[k] = {random_values(kSizes[k], 90 + k), moment1 ? zeros : std::vector<double>(),
                 moment2 ? zeros : std::vector<double>()};
  }
  return states;
}

void take(const std::vector<oracle::Array>& outputs, std::vector<State>& states) {
  const size_t count = states.size();
  for (size_t k = 0; k < count; ++k) {
    states[k].weight = outputs[k].data;
    if (outputs.size() > count) states[k].moment1 = outputs[count + k].data;
    if (outputs.size() > 2 * count) states[k].moment2 = outputs[2 * count + k].data;
  }
}

/// Runs `updates` on both sides, each from its own state; the distance stays that of a few roundings an update.
template <class Make>
void expect_same_path(bool moment1, bool moment2, Make make) {
  std::vector<State> ours = first_states(moment1, moment2), truth = ours;
  for (int update = 1; update <= 6; ++update) {
    take(run_native(make(update, ours)).outputs, ours);
    take(expected(make(update, truth)), truth);
  }
  for (size_t k = 0; k < ours.size(); ++k) {
    for (size_t i = 0; i < ours[k].weight.size(); ++i) {
      ASSERT_NEAR(ours[k].weight[i], truth[k].weight[i], 3e-6) << "parameter " << k << ", element " << i;
    }
  }
}

const std::vector<double> kDecay = {0, 0.1, 0.01, 0, 0.05}, kRates = {1, 1, 0.5, 2, 0};

graph::Attributes sgd(double momentum, double dampening, bool nesterov) {
  return {{"dampening", dampening}, {"momentum", momentum},          {"nesterov", nesterov},
          {"rate_scale", kRates},   {"shadow", std::string("none")}, {"shadowed", std::vector<int64_t>()},
          {"weight_decay", kDecay}};
}

NodeCase sgd_case(const graph::Attributes& attributes, int update, const std::vector<State>& states) {
  return walk("sgd_walk", attributes, {scalar(0.05, 0), scalar(0.5, 1), scalar(update == 1 ? 1 : 0, 2)}, 0, states,
              static_cast<uint64_t>(1000 * update));
}

TEST(Sgd, FollowsTheReference) {
  for (const auto& attributes : {sgd(0, 0, false), sgd(0.9, 0, false), sgd(0.9, 0.3, false), sgd(0.9, 0, true)}) {
    const bool moves = attributes.real("momentum") != 0;
    expect_same_path(moves, false, [&](int update, const std::vector<State>& states) {
      return sgd_case(attributes, update, states);
    });
  }
}

NodeCase adam_case(bool decoupled, int update, const std::vector<State>& states) {
  const double bias1 = 1 - std::pow(0.9, update), bias2 = 1 - std::pow(0.999, update);
  return walk("adam_walk",
              {{"beta1", 0.9},
               {"beta2", 0.999},
               {"decoupled", decoupled},
               {"epsilon", 1e-8},
               {"rate_scale", kRates},
               {"shadow", std::string("none")},
               {"shadowed", std::vector<int64_t>()},
               {"weight_decay", kDecay}},
              {scalar(0.01, 0), scalar(0.5, 1), scalar(bias1, 2), scalar(bias2, 3)}, 0, states,
              static_cast<uint64_t>(1000 * update));
}

TEST(Adam, FollowsTheReference) {
  for (const bool decoupled : {false, true}) {
    expect_same_path(
        true, true, [&](int update, const std::vector<State>& states) { return adam_case(decoupled, update, states); });
  }
}

TEST(Update, NothingMovesAfterAFault) {
  const std::vector<State> states = first_states(true, true);
  NodeCase faulted = adam_case(true, 3, states), infinite = faulted;
  faulted.faulted = true;
  infinite.inputs[4].data[1] = 2;
  for (const NodeCase& skipped : {faulted, infinite}) {
    std::vector<State> after = states;
    take(run_native(skipped).outputs, after);
    for (size_t k = 0; k < states.size(); ++k) {
      EXPECT_EQ(after[k].weight, states[k].weight);
      EXPECT_EQ(after[k].moment1, states[k].moment1);
      EXPECT_EQ(after[k].moment2, states[k].moment2);
    }
  }
}

NodeCase stats(const std::vector<std::vector<double>>& gradients) {
  NodeCase made{"gradient_stats", {{"clip_norm", 0.0}, {"scaled", false}}, {scalar(-0.5, 0)}};
  for (size_t k = 0; k < gradients.size(); ++k) {
    made.inputs.push_back({vector_type(static_cast<int64_t>(gradients[k].size())), gradients[k], Place::gradient,
                           static_cast<int32_t>(k)});
  }
  return made;
}

TEST(GradientStats, NormOverAllGradients) {
  std::vector<std::vector<double>> gradients;
  double squares = 0;
  for (size_t k = 0; k < kSizes.size(); ++k) gradients.push_back(random_values(kSizes[k], k));
  for (const auto& gradient : gradients) {
    for (const double g : gradient) squares += g * g;
  }
  const Outcome outcome = run_native(stats(gradients));
  EXPECT_NEAR(outcome.outputs[0].data[0] / (0.5 * std::sqrt(squares)), 1, 1e-6);
  EXPECT_EQ(outcome.outputs[0].data[1], 0);
  EXPECT_EQ(outcome.status, cpu::Status::none);
}

TEST(GradientStats, FirstBadParameterIsNamed) {
  std::vector<std::vector<double>> gradients;
  for (const int64_t size : kSizes) gradients.emplace_back(static_cast<size_t>(size), 1.0);
  gradients[1][19999] = NAN;
  gradients[2][0] = HUGE_VAL;
  gradients[4][0] = -HUGE_VAL;
  const Outcome outcome = run_native(stats(gradients));
  EXPECT_EQ(outcome.outputs[0].data[1], 3);
  EXPECT_EQ(outcome.status, cpu::Status::nonfinite_gradient);
  EXPECT_EQ(outcome.sample, 1);
}

TEST(GradientStats, LargeAndSmallSquaresStayInRange) {
  const Outcome large = run_native(stats({std::vector<double>(100, 3e30)}));
  EXPECT_NEAR(large.outputs[0].data[0] / 1.5e31, 1, 1e-6);
  EXPECT_EQ(large.outputs[0].data[1], 0);
  const Outcome small = run_native(stats({std::vector<double>(100, 1e-30), std::vector<double>(9000, 0.0)}));
  EXPECT_NEAR(small.outputs[0].data[0] / 5e-30, 1, 1e-6);
}

}  // namespace
}  // namespace brisk::test
