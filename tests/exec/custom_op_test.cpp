// Operations of a user's inside whole steps: the numbers of a composition, the same bits, failures that leave the step
// usable.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "brisk/brisk.h"
#include "support/networks.h"
#include "support/own_ops.h"

namespace brisk {
namespace {

constexpr int64_t kBatch = 19;  // a block and a tail of every vector width

Var composed_swish(Var x) {
  const Var b = parameter("b", {x.dim(1)}, {.decay = false, .init = init::ones()});
  return x * sigmoid(reshape(b, {x.dim(1), 1, 1}) * x);
}

template <class Activation>
Model network(Activation activation) {
  return Model(
      [activation](Var x) {
        x = activation(conv2d(x, {.channels = 6, .kernel = 3}));
        return linear(flatten(max_pool2d(x, {.kernel = 2})), 10);
      },
      {3, 8, 8}, {.seed = 3});
}

/// Three windows of three micro-batches with a tail; the loss of all rows.
double train(Model& model, int threads) {
  const test::Rows rows = test::make_rows(2 * kBatch + 5, {3, 8, 8}, 10, 9);
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1, .momentum = 0.9}),
            {.accumulate = 3, .batch = kBatch, .threads = threads});
  for (int window = 0; window < 3; ++window) {
    step.expect({{"samples", 2 * kBatch + 5}});
    for (const int64_t first : {int64_t{0}, kBatch, 2 * kBatch}) {
      const int64_t count = std::min(kBatch, 2 * kBatch + 5 - first);
      step.run(rows.inputs(first, count), rows.labels(first, count));
    }
  }
  EXPECT_EQ(step.clock().updates, 3);
  return step.read().loss;
}

TEST(CustomOp, TrainsAsACompositionOfBuiltInOperations) {
  Model own = network(test::learnt_swish), built_in = network(composed_swish);
  EXPECT_NEAR(train(own, 2), train(built_in, 2), 1e-5);
  for (const Parameter& p : own.parameters()) {
    const Tensor a = own.parameter(p.name), b = built_in.parameter(p.name);
    for (int64_t i = 0; i < a.count(); ++i)
      ASSERT_NEAR(a.data<float>()[i], b.data<float>()[i], 2e-6) << p.name << "[" << i << "]";
  }
  EXPECT_NE(own.parameter("b").data<float>()[0], 1.0f) << "b is trained";
}

TEST(CustomOp, TheSameBitsForAnyNumberOfThreads) {
  Model one = network(test::learnt_swish);
  train(one, 1);
  for (const int threads : {2, 3, 8}) {
    Model other = network(test::learnt_swish);
    train(other, threads);
    EXPECT_EQ(test::hash_of(other), test::hash_of(one)) << threads << " threads";
  }
}

TEST(CustomOp, AnEvaluationUsesItToo) {
  const test::Rows rows = test::make_rows(kBatch, {3, 8, 8}, 10, 9);
  const Feed feed = {{"input", rows.inputs(0, kBatch)}, {"target", rows.labels(0, kBatch)}};
  double losses[2] = {};
  for (const bool own : {false, true}) {
    Model model = own ? network(test::learnt_swish) : network(composed_swish);
    Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = kBatch});
    step.evaluate(feed);
    losses[own] = step.read_evaluation().loss;
  }
  EXPECT_NEAR(losses[0], losses[1], 1e-6);
}

TEST(CustomOp, ThePlanSaysThatItIsNotFused) {
  Model model = network(test::learnt_swish);
  const Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = kBatch});
  const std::string text = step.plan().explain();
  EXPECT_NE(text.find("forward  learnt_swish 'learnt_swish1'  [N, 6, 6, 6]  learnt_swish: user op, not fused"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("backward  learnt_swish 'learnt_swish1'"), std::string::npos) << text;
  EXPECT_NE(step.plan().dump("autodiff").find("{inputs = ["), std::string::npos);
}

TEST(CustomOp, GradientsThatNobodyWantsHaveMemoryToWriteTo) {
  const test::Rows rows = test::make_rows(kBatch, {3, 8, 8}, 10, 9);
  const auto swish_first = [](Var x) { return linear(flatten(test::learnt_swish(x)), 10); };
  Model model(swish_first, {3, 8, 8});  // nobody wants the gradient of the input
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = kBatch});
  step.run(rows.inputs(0, kBatch), rows.labels(0, kBatch));
  EXPECT_NE(model.parameter("b").data<float>()[0], 1.0f);
  Model frozen = network(test::learnt_swish);
  frozen.freeze({"b"});
  Step other(frozen, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = kBatch});
  other.run(rows.inputs(0, kBatch), rows.labels(0, kBatch));
  EXPECT_EQ(frozen.parameter("b").data<float>()[0], 1.0f);
}

/// y = x, which throws when and where it is told.
struct Failing : CustomOp {
  enum class At { nowhere, forward, piece, backward };
  const std::atomic<At>* at;
  explicit Failing(const std::atomic<At>* told) : at(told) {}
  std::string name() const override { return "failing"; }
  TensorType infer(TensorTypes in) const override { return in[0]; }
  Reads backward_reads() const override { return Reads::nothing; }
  static void copy(const ConstView& from, const View& to) {
    std::copy_n(from.data<float>(), from.count(), to.data<float>());
  }
  void forward(const OpContext& c, ConstViews in, Views out) const override {
    if (*at == At::forward) throw std::runtime_error("no more beans");
    c.parallel_for(1000, [&](int64_t first, int64_t) {
      if (*at == At::piece && first > 500) throw std::runtime_error("no more beans");
    });
    copy(in[0], out[0]);
  }
  void backward(const OpContext&, const OpBackward& g) const override {
    if (*at == At::backward) throw 7;
    copy(g.output_gradients[0], g.input_gradients[0]);
  }
};

class FailingOp : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, FailingOp, testing::Values(1, 2, 3));

TEST_P(FailingOp, ReachesTheCallerAndLeavesTheStepUsable) {
  std::atomic<Failing::At> at{Failing::At::nowhere};
  Model model(
      [&](Var x) {
        x = custom_op(Failing(&at), {conv2d(x, {.channels = 4, .kernel = 3})}, Where{"net.cpp", 7});
        return linear(flatten(batch_norm(x)), 10);
      },
      {3, 8, 8});
  const test::Rows rows = test::make_rows(kBatch, {3, 8, 8}, 10, 9);
  const Feed feed = {{"input", rows.inputs(0, kBatch)}, {"target", rows.labels(0, kBatch)}};
  Step step(model, cross_entropy(), adam(), {.accumulate = 2, .batch = kBatch, .threads = GetParam()});
  for (const Failing::At where : {Failing::At::forward, Failing::At::piece, Failing::At::backward}) {
    step.run(feed);
    const uint64_t before = test::hash_of(model);
    at = where;
    try {
      step.run(feed);
      FAIL() << "nothing was thrown";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::state);
      const std::string text = error.what(), beans = "its forward threw: no more beans";
      EXPECT_NE(text.find("failing 'failing1' (net.cpp:7): its "), std::string::npos) << text;
      EXPECT_NE(text.find(where == Failing::At::backward ? "its backward threw: something" : beans), std::string::npos)
          << text;
    }
    EXPECT_EQ(test::hash_of(model), before) << "no parameter, no statistics";
    if (where != Failing::At::backward) {
      EXPECT_THROW(step.evaluate(feed), Error);
    }
    at = Failing::At::nowhere;
    const int64_t updates = step.clock().updates;
    step.run(feed);
    step.run(feed);
    EXPECT_EQ(step.clock().updates, updates + 1) << "the window that failed is dropped whole";
    EXPECT_NE(test::hash_of(model), before);
    step.flush();
    step.evaluate(feed);
  }
}

TEST_P(FailingOp, ReachesTheCallerOfAPredictor) {
  std::atomic<Failing::At> at{Failing::At::piece};
  const Model model([&](Var x) { return custom_op(Failing(&at), {x}, Where{"net.cpp", 7}); }, {3});
  const Predictor predictor(model, {.batches = {4}, .threads = GetParam()});
  const std::vector<float> x = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  std::vector<float> y(12);
  try {
    predictor.run(view(x, {4, 3}), view(y, {4, 3}));
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("failing 'failing1' (net.cpp:7): its forward threw: no more beans"),
              std::string::npos)
        << error.what();
  }
  at = Failing::At::nowhere;
  predictor.run(view(x, {4, 3}), view(y, {4, 3}));
  EXPECT_EQ(y, x);
}

TEST(CustomOp, OneSampleIsPredictedRowMajor) {
  const Model own = network(test::learnt_swish), built_in = network(composed_swish);
  const Predictor a(own, {.batches = {1, 5}}), b(built_in, {.batches = {1, 5}});
  EXPECT_NE(a.plan(1).dump("select").find("; single"), std::string::npos);
  const test::Rows rows = test::make_rows(6, {3, 8, 8}, 10, 4);
  std::vector<float> x(60), y(60);
  a.run(rows.inputs(0, 6), view(x, {6, 10}));  // five and one
  b.run(rows.inputs(0, 6), view(y, {6, 10}));
  for (size_t i = 0; i < 60; ++i) EXPECT_NEAR(x[i], y[i], 1e-6) << i;
}

TEST(CustomOp, AFailureLeavesFitWithTheSameError) {
  std::atomic<Failing::At> at{Failing::At::backward};
  Model model([&](Var x) { return linear(custom_op(Failing(&at), {linear(x, 3)}), 2); }, {4});
  Trainer trainer(model, cross_entropy(), adam(), {.batch = 4});
  InMemoryDataset set;
  set.add("input", Tensor(Shape{8, 4}));
  set.add("target", Tensor(std::vector<int64_t>(8, 1), {8}));
  EXPECT_THROW(trainer.fit(set, {.duration = 1_epochs}), Error);
  at = Failing::At::nowhere;
  EXPECT_NO_THROW(trainer.fit(set, {.duration = 1_epochs}));
}

/// Reads of its outputs only: y = exp(x), dx = dy y.
struct OwnExp : CustomOp {
  std::string name() const override { return "own_exp"; }
  TensorType infer(TensorTypes in) const override { return in[0]; }
  Reads backward_reads() const override { return Reads::outputs; }
  void forward(const OpContext&, ConstViews in, Views out) const override {
    for (int64_t i = 0; i < in[0].count(); ++i) out[0].data<float>()[i] = std::exp(in[0].data<float>()[i]);
  }
  void backward(const OpContext&, const OpBackward& g) const override {
    for (int64_t i = 0; i < g.outputs[0].count(); ++i)
      g.input_gradients[0].data<float>()[i] = g.output_gradients[0].data<float>()[i] * g.outputs[0].data<float>()[i];
  }
};

TEST(CustomOp, MayReadItsOutputsAndRunAsNeighbours) {
  EXPECT_TRUE(check_gradient(OwnExp{}, {{3, 5}}).ok);
  const test::Rows rows = test::make_rows(kBatch, {12}, 10, 9);
  const auto hash = [&](bool own, int threads) {
    Model model(
        [own](Var x) {
          std::vector<Var> branches;  // of one wave
          for (int i = 0; i < 4; ++i) {
            const Var h = 0.1 * linear(x, 6);
            branches.push_back(own ? custom_op(OwnExp{}, {h}) : exp(h));
          }
          return linear(concat(branches), 10);
        },
        {12});
    Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = kBatch, .threads = threads});
    for (int i = 0; i < 20; ++i) step.run(rows.inputs(0, kBatch), rows.labels(0, kBatch));
    return std::pair(test::hash_of(model), step.read().loss);
  };
  const auto one = hash(true, 1);
  for (const int threads : {2, 3, 8}) EXPECT_EQ(hash(true, threads).first, one.first) << threads << " threads";
  EXPECT_NEAR(hash(false, 1).second, one.second, 1e-5);
}

}  // namespace
}  // namespace brisk
