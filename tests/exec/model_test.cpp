// What a model does when it is used wrongly, and by several threads.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "brisk/brisk.h"

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
