// A predictor returns what evaluation computes, for any number of rows, from any number of threads, while others
// publish.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "support/networks.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace brisk {
namespace {

const Shape kDigit = {1, 28, 28};
const Shape kColour = {3, 8, 8};

Tensor predict(const Predictor& predictor, const test::Rows& rows, int64_t first, int64_t count, int64_t classes = 10) {
  Tensor out(Shape{count, classes});
  predictor.run(rows.inputs(first, count), out);
  return out;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::equal(a.data<float>(), a.data<float>() + a.count(), b.data<float>());
}

/// Root mean square of (what evaluation computes - the given outputs).
double distance_to_evaluation(Model& model, const ConstView& input, const ConstView& output, int64_t classes = 10) {
  Step step(model, mse(), sgd({.learning_rate = 0.1}),
            {.batch = input.dim(0), .targets = {{"target", {classes}}}, .threads = 1});
  step.evaluate({{"input", input}, {"target", output}});
  return std::sqrt(step.read_evaluation().loss);
}

/// Trains a little, so that running statistics are those of something.
void train_a_little(Model& model, const test::Rows& rows, int64_t batch, int updates) {
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.05, .momentum = 0.9}), {.batch = batch, .threads = 1});
  for (int i = 0; i < updates; ++i) step.run(rows.inputs(0, batch), rows.labels(0, batch));
}

template <class F>
std::string refusal(ErrorCode code, F f) {
  try {
    f();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(Predictor, ReturnsWhatEvaluationComputes) {
  const test::Rows rows = test::make_rows(64, kDigit, 10, 1);
  Model model(test::lenet, kDigit);
  train_a_little(model, rows, 32, 3);
  const Predictor predictor(model, {.batches = {64, 5}});
  for (const int64_t count : {1, 5, 64}) {
    const Tensor out = predict(predictor, rows, 0, count);
    EXPECT_EQ(distance_to_evaluation(model, rows.inputs(0, count), out), 0) << count << " rows";
  }
}

TEST(Predictor, AnyNumberOfRowsIsSplitOverThePlans) {
  const test::Rows rows = test::make_rows(77, kDigit, 10, 2);
  Model model(test::lenet, kDigit);
  const Predictor predictor(model, {.batches = {8, 64, 8}});
  EXPECT_EQ(predictor.batches(), (std::vector<int64_t>{64, 8, 1})) << "one row is always among them";
  const Tensor all = predict(predictor, rows, 0, 77);
  int64_t at = 0;
  for (const int64_t count : {64, 8, 1, 1, 1, 1, 1}) {  // 77 = 64 + 8 + 5 x 1
    const Tensor part = predict(predictor, rows, at, count);
    EXPECT_TRUE(std::equal(part.data<float>(), part.data<float>() + part.count(), all.data<float>() + at * 10)) << at;
    at += count;
  }
  for (const int64_t count : {2, 7, 9, 63, 65, 76}) {
    const Tensor out = predict(predictor, rows, 0, count);
    EXPECT_LT(distance_to_evaluation(model, rows.inputs(0, count), out), 1e-6) << count << " rows";
  }
  Tensor none(Shape{0, 10});
  predictor.run(ConstView(rows.input.data(), {0, 1, 28, 28}), none);
}

TEST(Predictor, TouchesNothingBehindItsRows) {
  const test::Rows rows = test::make_rows(3, kDigit, 10, 3);
  Model model(test::lenet, kDigit);
  const Predictor predictor(model, {.batches = {2}});
  std::vector<float> out(50, -7);
  predictor.run(rows.inputs(0, 3), View(out.data() + 10, {3, 10}));
  for (size_t i = 0; i < 10; ++i) EXPECT_EQ(out[i], -7);
  for (size_t i = 40; i < 50; ++i) EXPECT_EQ(out[i], -7);
}

TEST(Predictor, FoldsBatchNorm) {
  for (const int blocks : {1, 2}) {
    const test::Rows rows = test::make_rows(16, {3, 16, 16}, 10, 4);
    Model model(models::resnet_cifar({.blocks = blocks, .channels = 8}), {3, 16, 16});
    train_a_little(model, rows, 16, 8);
    const uint64_t before = test::hash_of(model);
    const Predictor predictor(model, {.batches = {16}});
    EXPECT_EQ(test::hash_of(model), before) << "the weights of the model are never changed";
    const std::string text = predictor.plan().explain();
    EXPECT_EQ(text.find("batch_norm"), std::string::npos) << text;
    EXPECT_NE(text.find("conv2d 'conv1 + bn1'"), std::string::npos) << text;
    for (const int64_t count : {1, 16}) {
      const Tensor out = predict(predictor, rows, 0, count);
      double norm = 0;
      for (int64_t i = 0; i < out.count(); ++i) norm += std::pow(out.data<float>()[i], 2);
      norm = std::sqrt(norm / static_cast<double>(out.count()));
      EXPECT_LT(distance_to_evaluation(model, rows.inputs(0, count), out), 3e-6 * norm) << count << " rows";
    }
  }
}

TEST(Predictor, UsesRunningStatisticsWhereNothingFolds) {
  const test::Rows rows = test::make_rows(16, kColour, 4, 5);
  Model model(
      [](Var x) {
        const Var y = batch_norm(x);  // of the input: no layer stands before it
        return linear(dropout(global_avg_pool2d(relu(batch_norm(relu(y)) + y)), 0.5), 4);
      },
      kColour);
  train_a_little(model, rows, 16, 4);
  const Predictor predictor(model, {.batches = {16}});
  EXPECT_NE(predictor.plan().explain().find("batch_norm_inference"), std::string::npos);
  const Tensor out = predict(predictor, rows, 0, 16, 4);
  EXPECT_EQ(distance_to_evaluation(model, rows.inputs(0, 16), out, 4), 0);
  EXPECT_LT(distance_to_evaluation(model, rows.inputs(3, 1), predict(predictor, rows, 3, 1, 4), 4), 1e-6);
}

Var many_kinds(Var x) {
  Var y =
      avg_pool2d(relu(conv2d(x, {.bias = false, .channels = 6, .kernel = {3, 2}, .stride = {2, 1}})), {.kernel = 2});
  y = bias_add(y, parameter("shift", {6}, {.init = init::constant(0.5)}));
  y = concat({y, tanh(y) * parameter("scale", {6, 1, 1}, {.init = init::ones()})}, {.axis = 1});
  return softmax(linear(sigmoid(flatten(y)) + exp(flatten(y)), 5), {.axis = 1});
}

TEST(Predictor, FewRowsLieRowMajorWhereAllOperationsHaveKernelsForIt) {
  const test::Rows rows = test::make_rows(5, kColour, 5, 11);
  const auto row_major = [](const Predictor& predictor, int64_t batch) {
    for (const PlanStep& step : predictor.plan(batch).steps())
      if (step.implementation != "single") return false;
    return true;
  };
  Model all(many_kinds, kColour);
  const Predictor predictor(all, {.batches = {2, 16}});
  for (const int64_t batch : {1, 2}) EXPECT_EQ(row_major(predictor, batch), std::getenv("BRISK_CPU_ENGINE") == nullptr);
  for (const PlanStep& step : predictor.plan(16).steps()) EXPECT_NE(step.implementation, "single");
  EXPECT_LT(distance_to_evaluation(all, rows.inputs(0, 5), predict(predictor, rows, 0, 5, 5), 5), 1e-6);
  // A transposed convolution has none: its plan keeps the samples in lanes.
  Model other([](Var x) { return linear(flatten(conv_transpose2d(x, {.channels = 2, .kernel = 3})), 5); }, kColour);
  const Predictor lanes(other);
  EXPECT_FALSE(row_major(lanes, 1));
  EXPECT_LT(distance_to_evaluation(other, rows.inputs(0, 1), predict(lanes, rows, 0, 1, 5), 5), 1e-6);
}

TEST(Predictor, OutlivesTheModelAndIsNotChangedByTraining) {
  const test::Rows rows = test::make_rows(8, kDigit, 10, 6);
  auto model = std::make_unique<Model>(test::lenet, kDigit);
  Predictor predictor(*model, {.batches = {8}});
  const Tensor before = predict(predictor, rows, 0, 8);
  train_a_little(*model, rows, 8, 2);
  EXPECT_TRUE(same_bits(predict(predictor, rows, 0, 8), before)) << "a snapshot";
  EXPECT_EQ(predictor.version(), 0);
  predictor.publish(*model);
  EXPECT_EQ(predictor.version(), 1);
  const Tensor after = predict(predictor, rows, 0, 8);
  EXPECT_FALSE(same_bits(after, before));
  EXPECT_EQ(distance_to_evaluation(*model, rows.inputs(0, 8), after), 0);
  model.reset();
  const Predictor moved = std::move(predictor);
  EXPECT_TRUE(same_bits(predict(moved, rows, 0, 8), after));
}

// The scales, and so all outputs, of models of one structure differ: a torn result equals none of theirs.
TEST(Predictor, EveryResultIsThatOfOnePublishedModelWhole) {
  constexpr int kModels = 3, kThreads = 8, kCalls = 60;
  const test::Rows rows = test::make_rows(4, kColour, 10, 7);
  std::vector<Model> models;
  std::vector<Tensor> expected;
  for (uint64_t i = 0; i < kModels; ++i) {
    models.emplace_back(test::residual_net, kColour, ModelOptions{.seed = i});
    expected.push_back(predict(Predictor(models.back(), {.batches = {2}}), rows, 0, 3));
  }
  Predictor predictor(models[0], {.batches = {2}, .concurrency = kThreads});
  std::atomic<int> running{kThreads}, strangers{0};
  std::array<std::atomic<int>, kModels> seen{};
  std::vector<std::thread> callers;
  for (int i = 0; i < kThreads; ++i) {
    callers.emplace_back([&] {
      for (int call = 0; call < kCalls; ++call) {
        const Tensor out = predict(predictor, rows, 0, 3);  // two rows and one: both of the same snapshot
        size_t model = 0;
        while (model < kModels && !same_bits(out, expected[model])) ++model;
        ++(model < kModels ? seen[model] : strangers);
      }
      --running;
    });
  }
  std::thread other([&] {
    while (running > 0) predictor.publish(models[1]);
  });
  int64_t publications = 0;
  for (size_t i = 0; running > 0; i = (i + 1) % kModels, ++publications) predictor.publish(models[i]);
  other.join();
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(strangers, 0);
  EXPECT_GE(predictor.version(), publications);
  EXPECT_EQ(predictor.statistics().count, kThreads * kCalls);
}

TEST(Predictor, PublishesBetweenTheRunsOfAStep) {
  const test::Rows rows = test::make_rows(8, kDigit, 10, 8);
  const auto train = [&](Predictor* predictor) {
    Model model(test::lenet, kDigit);
    Step step(model, cross_entropy(), sgd({.learning_rate = 0.01}), {.batch = 8, .threads = 1});
    step.prepare();
    std::atomic<bool> training{true};
    std::thread publisher;
    if (predictor) {
      publisher = std::thread([&] {
        while (training) predictor->publish(model);
      });
    }
    for (int i = 0; i < 20; ++i) step.run(rows.inputs(0, 8), rows.labels(0, 8));
    training = false;
    if (publisher.joinable()) publisher.join();
    return test::hash_of(model);
  };
  Predictor predictor(Model(test::lenet, kDigit));
  EXPECT_EQ(train(&predictor), train(nullptr)) << "training neither fails nor computes something else";
  EXPECT_GT(predictor.version(), 0);
}

Vars two_heads(const Vars& in) {
  const Var both = concat({flatten(in["image"]), in["imu"]}, {.axis = 1});
  return {
      {"lane", linear(both, 5, {.name = "lane"})}, {"steer", linear(both, 1, {.name = "steer"})}, {"tag", in["tag"]}};
}
const Inputs kTwoInputs = {{"image", {1, 4, 4}}, {"imu", {3}}, {"tag", {}, DType::i64}};

TEST(Predictor, TakesAndMakesSeveralByName) {
  Model model(two_heads, kTwoInputs);
  const Predictor predictor(model, {.batches = {4}});
  std::vector<float> image(6 * 16), imu(6 * 3), lane(6 * 5), steer(6), again(6);
  std::vector<int64_t> tag = {5, 4, 3, 2, 1, int64_t{1} << 40}, echo(6);
  for (size_t i = 0; i < image.size(); ++i) image[i] = static_cast<float>(i % 7) - 3;
  for (size_t i = 0; i < imu.size(); ++i) imu[i] = static_cast<float>(i % 5);
  const Feed feed = {{"tag", view(tag, {6})}, {"imu", view(imu, {6, 3})}, {"image", view(image, {6, 1, 4, 4})}};
  predictor.run(feed, {{"steer", view(steer, {6, 1})}, {"lane", view(lane, {6, 5})}, {"tag", view(echo, {6})}});
  EXPECT_EQ(echo, tag);
  const Tensor weight = model.parameter("steer.weight"), bias = model.parameter("steer.bias");
  for (size_t row = 0; row < 6; ++row) {
    double sum = bias.data<float>()[0];
    for (size_t i = 0; i < 16; ++i) sum += weight.data<float>()[i] * image[row * 16 + i];
    for (size_t i = 0; i < 3; ++i) sum += weight.data<float>()[16 + i] * imu[row * 3 + i];
    EXPECT_NEAR(steer[row], sum, 1e-5) << row;
  }
  predictor.run(feed, {{"steer", view(again, {6, 1})}});  // the others are not wanted
  EXPECT_EQ(again, steer);
}

TEST(Predictor, SaysWhatIsWrongWithACall) {
  Model one(test::lenet, kDigit), several(two_heads, kTwoInputs);
  const Predictor lenet(one), heads(several);
  std::vector<float> x(4 * 784), y(64);
  std::vector<int64_t> whole(16);
  EXPECT_EQ(refusal(ErrorCode::data,
                    [&] {
                      lenet.run(view(x, {4, 784}), view(y, {4, 16}));
                    }),
            "Error [data] \"input\": must be [N, 1, 28, 28] f32, got [4, 784] f32");
  EXPECT_EQ(refusal(ErrorCode::data,
                    [&] {
                      lenet.run(view(x, {4, 1, 28, 28}), View(y.data(), {3, 10}));
                    }),
            "Error [data] \"output\": the result is [4, 10] f32, the view to write it to is [3, 10] f32");
  EXPECT_EQ(refusal(ErrorCode::data,
                    [&] {
                      lenet.run(view(x, {4, 1, 28, 28}), View(whole.data(), {4, 10}));
                    }),
            "Error [data] \"output\": the result is [4, 10] f32, the view to write it to is [4, 10] i64");
  EXPECT_EQ(refusal(ErrorCode::data,
                    [&] {
                      lenet.run({{"inptu", view(x, {4, 1, 28, 28})}}, {});
                    }),
            "Error [data] \"inptu\": is no input of this predictor; it takes input (did you mean input?)");
  EXPECT_NE(refusal(ErrorCode::data,
                    [&] {
                      heads.run(view(x, {4, 1, 28, 28}), view(y, {4, 16}));
                    })
                .find("has inputs image, imu, tag and outputs lane, steer, tag"),
            std::string::npos);
  const ConstView image(x.data(), {2, 1, 4, 4}), imu(x.data(), {2, 3}), tag(whole.data(), {2});
  EXPECT_EQ(refusal(ErrorCode::data,
                    [&] {
                      heads.run({{"image", image}, {"tag", tag}}, {});
                    }),
            "Error [data] \"imu\": is missing from what the predictor is fed with");
  EXPECT_EQ(refusal(ErrorCode::data,
                    [&] {
                      heads.run({{"image", image}, {"imu", imu.rows(0, 1)}, {"tag", tag}}, {});
                    }),
            "Error [data] \"imu\": has 1 rows, the inputs before it have 2");
  EXPECT_NE(refusal(ErrorCode::data,
                    [&] {
                      heads.run({{"image", image}, {"imu", imu}, {"tag", tag}}, {{"stear", View(y.data(), {2, 1})}});
                    })
                .find("did you mean steer?"),
            std::string::npos);
  for (const View& output : {View(static_cast<float*>(nullptr), {1, 10}), View(y.data(), {1, 10}, DType::f32, gpu(0))})
    refusal(ErrorCode::data, [&] { lenet.run(ConstView(x.data(), {1, 1, 28, 28}), output); });
  lenet.run(ConstView(x.data(), {1, 1, 28, 28}), View(y.data(), {1, 10}));  // and still works
  EXPECT_EQ(lenet.statistics().count, 1) << "refused calls are not counted";
}

TEST(Predictor, SaysWhatIsWrongWithItsOptions) {
  Model model(test::lenet, kDigit);
  EXPECT_EQ(refusal(ErrorCode::option,
                    [&] {
                      Predictor(model, {.batches = {8, 0}});
                    }),
            "Error [option] PredictorOptions.batches = 0: each must be from 1 to 2,147,483,648");
  refusal(ErrorCode::option, [&] { Predictor(model, {.concurrency = 0}); });
  refusal(ErrorCode::option, [&] { Predictor(model, {.threads = -1}); });
  refusal(ErrorCode::option, [&] { Predictor(model, {.device = gpu(0)}); });
  refusal(ErrorCode::memory, [&] { Predictor(model, {.batches = {100'000'000}}); });
  const Model moved = std::move(model);
  refusal(ErrorCode::state, [&] { Predictor{model}; });
  EXPECT_EQ(refusal(ErrorCode::option, [&] { Predictor(moved, {.batches = {8}}).plan(3); }),
            "Error [option] Predictor::plan.batch = 3: there are plans of 8, 1 rows");
}

TEST(Predictor, RefusesAModelOfAnotherStructure) {
  const auto mlp = [](int64_t width, bool rectified) {
    return Model([=](Var x) { return linear(rectified ? relu(linear(x, width)) : tanh(linear(x, width)), 2); }, {3});
  };
  Predictor predictor(mlp(8, true));
  predictor.publish(mlp(8, true));
  EXPECT_EQ(
      refusal(ErrorCode::weights, [&] { predictor.publish(mlp(9, true)); }),
      "Error [weights] model 'model': is of another structure than the one that was compiled: fc1.weight is [9, 3], "
      "wanted is [8, 3]");
  EXPECT_NE(refusal(ErrorCode::weights, [&] { predictor.publish(mlp(8, false)); }).find("it has tanh"),
            std::string::npos);
  refusal(ErrorCode::weights, [&] { predictor.publish(Model([](Var x) { return relu(linear(x, 8)); }, {3})); });
  EXPECT_EQ(predictor.version(), 1);
}

TEST(Predictor, HoldsWhatItsPlansSay) {
  Model model(test::residual_net, kColour);
  Predictor predictor(model, {.batches = {1, 64}});
  const PlanBytes bytes = predictor.plan(64).bytes();
  EXPECT_EQ(bytes.total, bytes.activations + bytes.buffers + bytes.parameters + bytes.scratch);
  EXPECT_EQ(bytes.gradients, 0);
  EXPECT_EQ(predictor.bytes(), bytes.total);
  predictor.publish(model);
  EXPECT_EQ(predictor.bytes(), bytes.total + bytes.parameters + bytes.buffers) << "two snapshots from now on";
  predictor.publish(model);
  EXPECT_EQ(predictor.bytes(), bytes.total + bytes.parameters + bytes.buffers);
}

TEST(Predictor, ManyThreadsGiveTheSameBits) {
  const test::Rows rows = test::make_rows(9, kDigit, 10, 9);
  Model model(test::lenet, kDigit);
  const Tensor alone = predict(Predictor(model, {.batches = {8}}), rows, 0, 9);
  for (const int threads : {2, 3})
    EXPECT_TRUE(same_bits(predict(Predictor(model, {.batches = {8}, .threads = threads}), rows, 0, 9), alone))
        << threads;
}

#if defined(__x86_64__)
TEST(Predictor, PutsTheCallersRoundingModeBack) {
  const test::Rows rows = test::make_rows(1, kDigit, 10, 1);
  Model model(test::lenet, kDigit);
  const Predictor predictor(model);
  const unsigned before = _mm_getcsr();
  predict(predictor, rows, 0, 1);
  EXPECT_EQ(_mm_getcsr() & ~0x3Fu, before & ~0x3Fu) << "but for the sticky flags";
}
#endif

}  // namespace
}  // namespace brisk
