// What a model does when it is used wrongly, and by several threads.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <functional>
#include <thread>

#include "brisk/brisk.h"
#include "support/error_text.h"
#include "support/networks.h"

namespace brisk {
namespace {

Model small(int64_t features = 2) {
  return Model([features](Var x) { return linear(x, features); }, {features});
}

template <class F>
ErrorCode code_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.code();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorCode::backend;
}

TEST(Model, ViewsOfNothingAndOfDevicesAreRefused) {
  Model model = small();
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 2});
  float elements[2] = {};
  Tensor moved(Shape{2});
  const Tensor other = std::move(moved);
  for (const ConstView& view : {ConstView(static_cast<const float*>(nullptr), {2}),
                                ConstView(elements, {2}, DType::f32, gpu(0)), ConstView(moved)}) {
    EXPECT_EQ(code_of([&] { model.set_parameter("fc1.bias", view); }), ErrorCode::data);
    EXPECT_EQ(code_of([&] { step.set_gradient("fc1.bias", view); }), ErrorCode::data);
  }
}

TEST(Model, MovedFromSaysSo) {
  Model model = small();
  const Model other = std::move(model);
  EXPECT_EQ(code_of([&] { model.name(); }), ErrorCode::state);
  EXPECT_EQ(code_of([&] { model.parameters(); }), ErrorCode::state);
  EXPECT_EQ(code_of([&] { Step(model, cross_entropy(), sgd({.learning_rate = 0.1})); }), ErrorCode::state);
  EXPECT_EQ(other.parameter_count(), 6);
}

TEST(Model, FreezeThatFailsChangesNothing) {
  Model model = small();
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 2});
  EXPECT_EQ(code_of([&] { model.freeze({"fc1.*", "nothing"}); }), ErrorCode::option);
  for (const Parameter& parameter : model.parameters()) EXPECT_FALSE(parameter.frozen) << parameter.name;
}

TEST(Model, SeveralThreadsMayBeTheFirstToNeedItsBytes) {
  constexpr int kThreads = 4;
  for (int round = 0; round < 50; ++round) {
    Model model = small(64);
    std::atomic<int> ready{0};
    std::vector<std::vector<float>> seen(kThreads);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 4, .threads = 1});
        for (++ready; ready < kThreads;) std::this_thread::yield();
        if (i % 2 == 0) step.prepare();
        const Tensor weight = model.parameter("fc1.weight");
        seen[static_cast<size_t>(i)].assign(weight.data<float>(), weight.data<float>() + weight.count());
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const std::vector<float>& other : seen) ASSERT_EQ(other, seen[0]);
  }
}

TEST(Model, ValuesOfAnotherTraceAreRefused) {
  const auto nested = [](Var (*use)(Var outer, Var inner)) {
    return code_of([use] {
      Model([use](Var outer) { return Model([&](Var inner) { return use(outer, inner); }, {2})(outer); }, {2});
    });
  };
  EXPECT_EQ(nested([](Var outer, Var) { return outer; }), ErrorCode::state);
  EXPECT_EQ(nested([](Var outer, Var) { return linear(outer, 2); }), ErrorCode::state);
  EXPECT_EQ(nested([](Var outer, Var inner) { return inner + outer; }), ErrorCode::state);
  EXPECT_EQ(nested([](Var outer, Var inner) { return concat({inner, outer}); }), ErrorCode::state);
  EXPECT_EQ(nested([](Var outer, Var) { return small()(outer); }), ErrorCode::state);
  EXPECT_EQ(nested([](Var outer, Var inner) { return bias_add(inner, reduce_sum(outer)); }), ErrorCode::state);
}

using test::error_text;

Var net(Var x) {
  x = relu(batch_norm(conv2d(x, {.channels = 4, .kernel = 3, .padding = 1})));
  return linear(dropout(global_avg_pool2d(x), 0.3), 5);
}

/// Some updates on rows of that sample.
void train(Model& model, Shape sample, int updates = 3) {
  const test::Rows rows = test::make_rows(12, sample, 5, 1);
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 12});
  for (int i = 0; i < updates; ++i) step.run(rows.inputs(0, 12), rows.labels(0, 12));
}

TEST(Clone, IsDeepAndTrainsAlike) {
  Model model(net, {3, 6, 6}, {.seed = 4});
  train(model, {3, 6, 6});
  model.freeze({"conv1.bias"});
  const uint64_t before = test::hash_of(model);
  Model copy = model.clone();
  EXPECT_EQ(copy.name(), "model");
  EXPECT_EQ(test::hash_of(copy), before);
  EXPECT_TRUE(copy.parameters()[1].frozen) << copy.parameters()[1].name;
  train(copy, {3, 6, 6});
  EXPECT_EQ(test::hash_of(model), before) << "the original stays";
  const uint64_t trained = test::hash_of(copy);
  EXPECT_NE(trained, before);
  train(model, {3, 6, 6});
  EXPECT_EQ(test::hash_of(model), trained) << "the same dropout, the same statistics";
  copy.unfreeze({"*"});
  EXPECT_TRUE(model.parameters()[1].frozen);
}

TEST(Clone, AnotherNameIsAnotherDropout) {
  Model model(net, {3, 6, 6}, {.seed = 4});
  Model other = model.clone("other"), same = model.clone("model");
  EXPECT_EQ(other.name(), "other");
  EXPECT_EQ(test::hash_of(other), test::hash_of(model)) << "values are copied, not drawn again";
  for (Model* each : {&model, &other, &same}) train(*each, {3, 6, 6}, 1);
  EXPECT_EQ(test::hash_of(same), test::hash_of(model));
  EXPECT_NE(test::hash_of(other), test::hash_of(model));
}

TEST(CopyWeights, BlendsParametersAndBuffers) {
  Model policy(net, {3, 6, 6}, {.seed = 1});
  Model target(net, {3, 6, 6}, {.name = "target", .seed = 2});
  train(policy, {3, 6, 6});
  const Tensor from = policy.parameter("bn1.running_mean"), at = target.parameter("bn1.running_mean");
  target.copy_weights_from(policy, {.blend = 0.25});
  const Tensor now = target.parameter("bn1.running_mean");
  for (int64_t i = 0; i < now.count(); ++i) {
    const float a = at.data<float>()[i], b = from.data<float>()[i];
    EXPECT_EQ(now.data<float>()[i], a + 0.25f * (b - a));
    EXPECT_NE(a, b);
  }
  const uint64_t blended = test::hash_of(target);
  target.copy_weights_from(policy, {.blend = 0});
  EXPECT_EQ(test::hash_of(target), blended);
  target.copy_weights_from(policy);
  EXPECT_EQ(test::hash_of(target), test::hash_of(policy));
  target.copy_weights_from(target, {.blend = 0.5});
  EXPECT_EQ(test::hash_of(target), test::hash_of(policy));
}

TEST(CopyWeights, TheFirstDifferenceIsNamedAndNothingIsCopied) {
  const Model wide([](Var x) { return linear(linear(x, 4), 3); }, {2}, {.name = "wide"});
  Model model([](Var x) { return linear(linear(x, 4), 2); }, {2});
  const uint64_t before = test::hash_of(model);
  EXPECT_EQ(error_text([&] { model.copy_weights_from(wide); }),
            "Error [weights] fc2.weight: model 'wide' has [3, 4], model 'model' has [2, 4]");
  const Model short_one([](Var x) { return linear(x, 4); }, {2}, {.name = "short"});
  EXPECT_EQ(error_text([&] { model.copy_weights_from(short_one); }),
            "Error [weights] fc2.weight: model 'model' has it, model 'short' has not");
  Model small([](Var x) { return linear(x, 4, {.bias = false}); }, {2});
  EXPECT_EQ(error_text([&] { small.copy_weights_from(short_one); }),
            "Error [weights] fc1.bias: model 'short' has it, model 'model' has no such parameter");
  for (const double blend : {-0.1, 1.1, std::nan("")})
    EXPECT_EQ(code_of([&] { model.copy_weights_from(model, {.blend = blend}); }), ErrorCode::option) << blend;
  EXPECT_EQ(test::hash_of(model), before);
}

TEST(CopyWeights, IsRefusedWhileAStepRuns) {
  const auto busy = std::make_shared<std::atomic<bool>>(false);
  const auto go_on = std::make_shared<std::atomic<bool>>(false);
  struct Waits : CustomOp {
    std::shared_ptr<std::atomic<bool>> busy, go_on;
    std::string name() const override { return "waits"; }
    TensorType infer(TensorTypes in) const override { return in[0]; }
    void forward(const OpContext&, ConstViews in, Views out) const override {
      *busy = true;
      while (!*go_on) std::this_thread::yield();
      std::copy_n(in[0].data<float>(), in[0].count(), out[0].data<float>());
    }
    void backward(const OpContext&, const OpBackward& g) const override {
      std::copy_n(g.output_gradients[0].data<float>(), g.inputs[0].count(), g.input_gradients[0].data<float>());
    }
  };
  Waits waits;
  waits.busy = busy;
  waits.go_on = go_on;
  Model policy([&](Var x) { return custom_op(waits, {linear(x, 5)}); }, {3});
  Model target = policy.clone("target");
  std::thread thread([&] { train(policy, {3}, 1); });
  while (!*busy) std::this_thread::yield();
  EXPECT_EQ(code_of([&] { target.copy_weights_from(policy); }), ErrorCode::state);
  EXPECT_EQ(code_of([&] { policy.copy_weights_from(target); }), ErrorCode::state);
  *go_on = true;
  thread.join();
  target.copy_weights_from(policy);
  EXPECT_EQ(test::hash_of(target), test::hash_of(policy));
}

TEST(WithInputs, IsTheSameModelForAnotherSize) {
  Model model(net, {3, 6, 6}, {.seed = 4});
  Model large = model.with_inputs(net, {3, 10, 10});
  EXPECT_EQ(large.name(), "model");
  EXPECT_EQ(large.inputs()[0].shape, (Shape{3, 10, 10}));
  EXPECT_EQ(large.parameters().size(), model.parameters().size());
  EXPECT_EQ(large.parameter_count(), model.parameter_count());
  const uint64_t before = test::hash_of(model);
  EXPECT_EQ(test::hash_of(large), before);
  train(large, {3, 10, 10});
  EXPECT_NE(test::hash_of(model), before) << "training one trains the other";
  EXPECT_EQ(test::hash_of(large), test::hash_of(model));
  train(model, {3, 6, 6});
  const Tensor zeros(Shape{5});
  large.set_parameter("fc1.bias", zeros);
  EXPECT_EQ(model.parameter("fc1.bias").data<float>()[0], 0);
}

TEST(WithInputs, GivesWhatAModelOfThatSizeGives) {
  Model model(net, {3, 6, 6}, {.seed = 4});
  Model large = model.with_inputs(net, {3, 10, 10});
  Model alone(net, {3, 10, 10}, {.seed = 4});
  train(large, {3, 10, 10});
  train(alone, {3, 10, 10});
  EXPECT_EQ(test::hash_of(large), test::hash_of(alone)) << "initial values, dropout, update: bit for bit";
  const Predictor a(large, {.batches = {4}}), b(alone, {.batches = {4}});
  const test::Rows rows = test::make_rows(4, {3, 10, 10}, 5, 2);
  std::vector<float> x(20), y(20);
  a.run(rows.inputs(0, 4), view(x, {4, 5}));
  b.run(rows.inputs(0, 4), view(y, {4, 5}));
  EXPECT_EQ(x, y);
}

TEST(WithInputs, OneStepMayTrainBothSizesAtOnce) {
  Model model(net, {3, 6, 6}, {.seed = 4});
  Model large = model.with_inputs(net, {3, 10, 10});
  Step step(
      [&](const Vars& in) {
        return mse(model(in["small"]), in["y"]) + mse(large(in["large"]), in["y"], {.name = "large"});
      },
      {{"small", {3, 6, 6}}, {"large", {3, 10, 10}}, {"y", {5}}}, sgd({.learning_rate = 0.1}),
      {.batch = 4, .update = {&large}});
  const test::Rows small_rows = test::make_rows(4, {3, 6, 6}, 5, 2), large_rows = test::make_rows(4, {3, 10, 10}, 5, 2);
  const std::vector<float> y(20, 0.5f);
  const Tensor before = model.parameter("fc1.weight");
  step.run({{"small", small_rows.inputs(0, 4)}, {"large", large_rows.inputs(0, 4)}, {"y", view(y, {4, 5})}});
  EXPECT_NE(model.parameter("fc1.weight").data<float>()[0], before.data<float>()[0]);
}

TEST(WithInputs, FreezingHoldsForBothHandles) {
  Model model(net, {3, 6, 6});
  Model large = model.with_inputs(net, {3, 10, 10});
  const test::Rows rows = test::make_rows(4, {3, 6, 6}, 5, 2);
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 4});
  step.run(rows.inputs(0, 4), rows.labels(0, 4));
  large.freeze({"conv1.*"});
  EXPECT_TRUE(model.parameters()[0].frozen);
  const Tensor before = model.parameter("conv1.weight");
  train(large, {3, 10, 10});
  step.run(rows.inputs(0, 4), rows.labels(0, 4));
  EXPECT_EQ(model.parameter("conv1.weight").data<float>()[0], before.data<float>()[0]);
  model.unfreeze({"*"});
  EXPECT_FALSE(large.parameters()[0].frozen);
  Model copy = large.clone();
  train(copy, {3, 10, 10});
  EXPECT_EQ(model.parameter("conv1.weight").data<float>()[0], before.data<float>()[0]) << "a clone has its own";
  EXPECT_NE(copy.parameter("conv1.weight").data<float>()[0], before.data<float>()[0]);
}

TEST(WithInputs, OtherParametersAreRefused) {
  const Model model([](Var x) { return linear(flatten(x), 5); }, {3, 6, 6});
  EXPECT_EQ(error_text([&] {
              model.with_inputs([](Var x) { return linear(flatten(x), 5); }, {3, 10, 10});
            }),
            "Error [weights] fc1.weight: the function with these inputs has [5, 300], model 'model' has [5, 108]");
  EXPECT_EQ(error_text([&] {
              model.with_inputs([](Var x) { return flatten(x); }, {3, 10, 10});
            }),
            "Error [weights] fc1.weight: model 'model' has it, the function with these inputs has not");
}

Tensor three() { return Tensor(std::vector<float>{1, 2, 4}, {3}); }

TEST(Buffer, HoldsItsNumbersAndIsNeverTrained) {
  Model model([](Var x) { return linear(x * buffer("factor", three()), 5); }, {3});
  EXPECT_EQ(model.parameters()[0].name, "factor");
  EXPECT_TRUE(model.parameters()[0].buffer);
  EXPECT_EQ(model.parameter_count(), 20);
  train(model, {3});
  const Tensor after = model.parameter("factor");
  EXPECT_EQ(std::vector<float>(after.data<float>(), after.data<float>() + 3), (std::vector<float>{1, 2, 4}));
  EXPECT_EQ(code_of([] { Model([](Var x) { return x * buffer("", three()); }, {3}); }), ErrorCode::option);
  EXPECT_EQ(code_of([] { Model([](Var x) { return x * buffer("b", Tensor(Shape{0})); }, {3}); }), ErrorCode::shape);
  EXPECT_EQ(code_of([] { Model([](Var x) { return x * buffer("b", Tensor(Shape{3}, DType::i64)); }, {3}); }),
            ErrorCode::data);
}

TEST(Step, BatchesThatNoMachineHolds) {
  constexpr int64_t kMost = int64_t{1} << 31;
  Model model = small();
  const Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 2});
  EXPECT_EQ(step.largest_batch({.budget_bytes = INT64_MAX}), kMost);
  EXPECT_EQ(step.largest_batch({.budget_bytes = step.plan(kMost).bytes().total - 1}), kMost - 1);
  Model wide([](Var x) { return x * parameter("w", {1}); }, {int64_t{1} << 33});
  const Step large(wide, mse(), sgd({.learning_rate = 0.1}), {.batch = 2});
  EXPECT_EQ(code_of([&] { large.plan(kMost); }), ErrorCode::memory);
  const int64_t most = large.largest_batch({.budget_bytes = INT64_MAX});
  EXPECT_GT(most, 1 << 20);
  EXPECT_LT(most, kMost);
}

TEST(Step, ModelsThatNoMachineHolds) {
  Model model([](Var x) { return linear(x, 1 << 20); }, {1 << 20});
  Step step(model, cross_entropy(), adamw(), {.batch = 64});
  EXPECT_GT(step.plan().bytes().total, int64_t{16} << 40);
  EXPECT_EQ(code_of([&] { step.prepare(); }), ErrorCode::memory);
}

}  // namespace
}  // namespace brisk
