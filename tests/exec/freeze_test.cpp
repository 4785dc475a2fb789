// Freezing and unfreezing between the updates of one step: what stays keeps its moments, what comes starts anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "exec/step_impl.h"
#include "support/networks.h"

namespace brisk {
namespace {

Var two_weights(Var x) { return x * parameter("a", {1}) + parameter("b", {1}); }

/// Adam on one number, in double.
struct Adam {
  double w = 0, m = 0, v = 0;
  int t = 0;
  void move(double g) {
    ++t;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    w -= 0.1 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.999, t))) + 1e-8);
  }
};

double value(const Model& model, const char* name) { return model.parameter(name).data<float>()[0]; }

TEST(Freeze, AStepFollowsWithMomentsAndCountsOfEachParameter) {
  Model model(two_weights, {1});
  Step step(model, mse(), adam({.learning_rate = 0.1}), {.batch = 1});
  Adam a, b;
  const float x = 2, y = 3;
  const auto update = [&](bool trains_a, bool trains_b) {
    const double d = 2 * (a.w * 2 + b.w - 3);
    step.run(ConstView(&x, {1, 1}), ConstView(&y, {1, 1}));
    if (trains_a) a.move(d * 2);
    if (trains_b) b.move(d);
    EXPECT_NEAR(value(model, "a"), a.w, 1e-5);
    EXPECT_NEAR(value(model, "b"), b.w, 1e-5);
  };
  model.freeze({"b"});
  for (int i = 0; i < 3; ++i) update(true, false);
  model.unfreeze({"b"});  // b begins its own count, a goes on
  for (int i = 0; i < 3; ++i) update(true, true);
  model.freeze({"a"});
  for (int i = 0; i < 2; ++i) update(false, true);
  model.unfreeze({"a"});
  a.m = a.v = a.t = 0;
  for (int i = 0; i < 2; ++i) update(true, true);
  EXPECT_EQ(step.clock().updates, 10);
}

TEST(Freeze, BytesAreThoseOfThePlanAfterEachChange) {
  Model model(test::lenet, {1, 28, 28});
  const test::Rows rows = test::make_rows(8, {1, 28, 28}, 10, 5);
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.01, .momentum = 0.9}), {.batch = 8, .threads = 1});
  step.run(rows.inputs(0, 8), rows.labels(0, 8));
  const int64_t all = step.plan().bytes().gradients, held = step.impl().held_bytes();
  model.freeze({"conv*", "fc1.*"});
  const Tensor before = model.parameter("conv1.weight"), head = model.parameter("fc2.weight");
  step.run(rows.inputs(0, 8), rows.labels(0, 8));
  EXPECT_LT(step.plan().bytes().gradients, all / 10);
  EXPECT_LT(step.impl().held_bytes(), held - all);
  const Tensor after = model.parameter("conv1.weight");
  EXPECT_TRUE(std::equal(before.data<float>(), before.data<float>() + before.count(), after.data<float>()));
  const Tensor moved = model.parameter("fc2.weight");
  EXPECT_FALSE(std::equal(head.data<float>(), head.data<float>() + head.count(), moved.data<float>()));
  model.unfreeze({"*"});
  step.run(rows.inputs(0, 8), rows.labels(0, 8));
  EXPECT_EQ(step.plan().bytes().gradients, all);
  EXPECT_EQ(step.impl().held_bytes(), step.plan().bytes().total);
}

Var dropped(Var x) {
  Scope scope("layer1");
  return dropout(linear(x, 64), 0.5);
}

// A frozen layer drops nothing, unlike one that is not trained because the step updates another model.
TEST(Freeze, DropoutOfFrozenLayersIsOff) {
  Model model(dropped, {4});
  const std::vector<float> x(8 * 4, 1.0f), y(8 * 64, 0.0f);
  const auto loss_twice = [&](bool frozen, bool updates_other) {
    model.unfreeze({"*"});
    if (frozen) model.freeze({"layer1.*"});
    Model scale([](Var v) { return v * parameter("s", {1}, {.init = init::ones()}); }, {64}, {.name = "scale"});
    StepOptions options = {.batch = 8};
    if (updates_other) options.update = {&scale};
    Step step([&](const Vars& in) { return mse(scale(model(in["x"])), in["y"]); }, {{"x", {4}}, {"y", {64}}},
              sgd({.learning_rate = 1e-30}), options);
    std::vector<double> losses;
    for (int i = 0; i < 2; ++i) {
      step.run({{"x", view(x, {8, 4})}, {"y", view(y, {8, 64})}});
      losses.push_back(step.read().loss);
    }
    return losses;
  };
  const std::vector<double> trained = loss_twice(false, false), other = loss_twice(false, true),
                            frozen = loss_twice(true, false);
  EXPECT_NE(trained[0], trained[1]);
  EXPECT_EQ(trained, other);
  EXPECT_EQ(frozen[0], frozen[1]);
}

// Batch statistics are used in a model that the step does not update, and its running ones stay as they are.
TEST(Freeze, AModelThatIsNotUpdatedComputesAsInTraining) {
  Model first([](Var x) { return batch_norm(x); }, {3}, {.name = "first"});
  Model second([](Var x) { return linear(x, 1); }, {3}, {.name = "second"});
  Step step([&](const Vars& in) { return mse(second(first(in["x"])), in["y"]); }, {{"x", {3}}, {"y", {1}}},
            sgd({.learning_rate = 0.1}), {.batch = 2, .update = {&second}});
  const std::vector<float> x = {5, 1, 0, 7, 3, 8}, y = {1, 2};
  const Tensor weight = second.parameter("fc1.weight"), bias = second.parameter("fc1.bias");
  step.run({{"x", view(x, {2, 3})}, {"y", view(y, {2, 1})}});
  double loss = 0;  // normalised rows are -1 and 1 (epsilon aside)
  for (int row = 0; row < 2; ++row) {
    double out = bias.data<float>()[0];
    for (int i = 0; i < 3; ++i) out += (row == 0 ? -1 : 1) * weight.data<float>()[i];
    loss += (out - y[static_cast<size_t>(row)]) * (out - y[static_cast<size_t>(row)]) / 2;
  }
  EXPECT_NEAR(step.read().loss, loss, 1e-3 * loss);
  EXPECT_EQ(value(first, "bn1.running_mean"), 0);
  EXPECT_EQ(value(first, "bn1.running_var"), 1);
}

TEST(Freeze, InsideAWindowIsRefused) {
  Model model(two_weights, {1});
  Step step(model, mse(), sgd({.learning_rate = 0.1}), {.accumulate = 2, .batch = 1});
  const float x = 2, y = 3;
  step.run(ConstView(&x, {1, 1}), ConstView(&y, {1, 1}));
  model.freeze({"b"});
  try {
    step.run(ConstView(&x, {1, 1}), ConstView(&y, {1, 1}));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("flush() the step first"), std::string::npos) << error.what();
  }
  step.flush();
  const double b = value(model, "b");
  EXPECT_NE(b, 0);
  step.run(ConstView(&x, {1, 1}), ConstView(&y, {1, 1}));
  step.flush();
  EXPECT_EQ(value(model, "b"), b);
}

}  // namespace
}  // namespace brisk
