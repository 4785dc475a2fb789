// A step in 16 bits follows the reference that rounds where the recipe does: much nearer than it is to one that does
// not round.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "golden/double_step.h"
#include "support/networks.h"

namespace brisk::golden {
namespace {

Var network(Var x) {
  x = relu(batch_norm(conv2d(x, {.bias = false, .channels = 6, .kernel = 3, .padding = 1})));
  x = x + tanh(conv2d(x, {.channels = 6, .kernel = 3, .padding = 1}));
  x = flatten(max_pool2d(x, {.kernel = 2}));
  return linear(layer_norm(relu(linear(x, 12))), 5);
}

constexpr int64_t kRows = 12;
const std::vector<std::string> kNames = {"conv1.weight", "bn1.weight", "conv2.weight",
                                         "fc1.weight",   "fc2.weight", "fc2.bias"};

/// How far the parameters have moved apart, over how far the reference has moved.
double distance(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  double squares = 0, whole = 0;
  for (size_t k = 0; k < a.size(); ++k)
    for (size_t i = 0; i < a[k].size(); ++i) {
      squares += (a[k][i] - b[k][i]) * (a[k][i] - b[k][i]);
      whole += a[k][i] * a[k][i];
    }
  return std::sqrt(squares / whole);
}

TEST(LowPrecision, AStepFollowsTheReferenceThatRounds) {
  const test::Rows rows = test::make_rows(kRows, {2, 6, 6}, 5, 3);
  const Inputs inputs{{"x", {2, 6, 6}}, {"label", {}, DType::i64}};
  const Optimizer optimizer = sgd({.learning_rate = 0.1, .momentum = 0.9});
  const std::map<std::string, std::vector<double>> fed = {{"x", {rows.input.begin(), rows.input.end()}},
                                                          {"label", {rows.label.begin(), rows.label.end()}}};
  const Model first(network, {2, 6, 6});
  const auto moved = [&](const std::function<std::vector<double>(const std::string&)>& after) {
    std::vector<std::vector<double>> out;
    for (const std::string& name : kNames) {
      out.push_back(after(name));
      const Tensor before = first.parameter(name);
      for (size_t i = 0; i < out.back().size(); ++i) out.back()[i] -= double{before.data<float>()[i]};
    }
    return out;
  };
  const auto reference = [&](Precision precision) {
    const Model model(network, {2, 6, 6});
    DoubleStep step(
        model, [&](const Vars& in) { return cross_entropy(model(in["x"]), in["label"]); }, inputs, optimizer, kRows,
        precision);
    for (int i = 0; i < 3; ++i) step.run(fed);
    return moved([&](const std::string& name) { return step.parameter(name); });
  };
  const auto exact = reference(Precision::f32);
  for (const auto& [precision, most] : {std::pair(Precision::fp16, 2e-3), {Precision::bf16, 2e-2}}) {
    Model model(network, {2, 6, 6});
    Step step([&](const Vars& in) { return cross_entropy(model(in["x"]), in["label"]); }, inputs, optimizer,
              {.batch = kRows, .precision = precision});
    for (int i = 0; i < 3; ++i) step.run({{"x", rows.inputs(0, kRows)}, {"label", rows.labels(0, kRows)}});
    EXPECT_EQ(step.read().clock.updates, 3);
    const auto got = moved([&](const std::string& name) {
      const Tensor value = model.parameter(name);
      return std::vector<double>(value.data<float>(), value.data<float>() + value.count());
    });
    const auto rounded = reference(precision);
    std::printf("%s: %.2g from the reference that rounds, %.2g from the exact one\n", name(precision),
                distance(rounded, got), distance(exact, got));
    EXPECT_LT(distance(rounded, got), most) << name(precision);
    EXPECT_GT(distance(exact, got), 2 * distance(rounded, got)) << name(precision);
  }
}

}  // namespace
}  // namespace brisk::golden
