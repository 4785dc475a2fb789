// Inputs of every element type, and objectives made of functions, comparisons and choices, through whole steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/networks.h"
#include "support/random.h"

namespace brisk {
namespace {

constexpr int64_t kBatch = 19;  // a full block and a tail of every vector width

Optimizer still() { return sgd({.learning_rate = 1e-30}); }

/// Whole numbers from 0 to 255.
std::vector<uint8_t> bytes(int64_t count) {
  test::Random random(3);
  std::vector<uint8_t> made(static_cast<size_t>(count));
  for (uint8_t& byte : made) byte = static_cast<uint8_t>(random.below(256));
  return made;
}

TEST(ElementTypes, AnImageOfBytesTrainsAsOneOfFloats) {
  const Shape shape = {5, 7, 3};
  const auto network = [](Var x) { return linear(tanh(linear(flatten(x) * (1 / 255.0) - 0.5, 8)), 10); };
  Model of_bytes([&](Var x) { return network(cast(x, DType::f32)); }, Inputs{{"input", shape, DType::u8}});
  Model of_floats(network, shape);
  Step narrow(of_bytes, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = kBatch, .threads = 2});
  Step wide(of_floats, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = kBatch, .threads = 2});
  const std::vector<uint8_t> image = bytes(kBatch * shape.count());
  const std::vector<float> floats(image.begin(), image.end());
  const test::Rows rows = test::make_rows(kBatch, {1}, 10, 3);
  for (int update = 0; update < 3; ++update) {
    narrow.run(view(image, {kBatch, 5, 7, 3}), rows.labels(0, kBatch));
    wide.run(view(floats, {kBatch, 5, 7, 3}), rows.labels(0, kBatch));
  }
  EXPECT_EQ(test::hash_of(of_bytes), test::hash_of(of_floats));
  const auto loaded_bytes = [](const Step& step) {
    for (const PlanStep& each : step.plan().steps())
      if (each.op.find("'input'") != std::string::npos) return each.bytes;
    return 0.0;
  };
  EXPECT_EQ(loaded_bytes(wide), 2.0 * 4 * kBatch * 105) << "read and written";
  EXPECT_EQ(loaded_bytes(narrow), 2.0 * kBatch * 105);
  try {
    narrow.run(view(floats, {kBatch, 5, 7, 3}), rows.labels(0, kBatch));
    FAIL() << "floats taken for bytes";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("\"input\": must be [N, 5, 7, 3] u8"), std::string::npos) << error.what();
  }
}

TEST(ElementTypes, IntegersOfEveryWidthReachThePlan) {
  const Inputs inputs = {{"wide", {3}, DType::i64}, {"narrow", {3}, DType::i32}, {"byte", {}, DType::u8}};
  Step step(
      [](const Vars& in) {
        const Var same = equal(cast(in["wide"], DType::f32), cast(cast(in["narrow"], DType::i64), DType::f32));
        return sample_mean(reduce_sum(same) + cast(in["byte"], DType::f32));
      },
      inputs, still(), {.batch = kBatch});
  std::vector<int64_t> wide;
  std::vector<int32_t> narrow;
  double sum = 0;
  const std::vector<uint8_t> byte = bytes(kBatch);
  for (int64_t i = 0; i < 3 * kBatch; ++i) {
    wide.push_back(i - 20);
    narrow.push_back(static_cast<int32_t>(i % 4 == 1 ? 7 : i - 20));
    sum += wide.back() == narrow.back() ? 1 : 0;
  }
  for (const uint8_t value : byte) sum += value;
  step.run({{"wide", view(wide, {kBatch, 3})}, {"narrow", view(narrow, {kBatch, 3})}, {"byte", view(byte, {kBatch})}});
  EXPECT_NEAR(step.read().loss, sum / static_cast<double>(kBatch), 1e-4);
}

TEST(ElementTypes, BytesArePredicted) {
  const Model model([](Var x) { return cast(clamp(cast(x, DType::f32) * 1.5 + 0.5, 0, 255), DType::u8); },
                    Inputs{{"input", {2, 3}, DType::u8}});
  const Predictor predictor(model, {.batches = {1, 16}});
  const std::vector<uint8_t> in = bytes(kBatch * 6);
  std::vector<uint8_t> out(in.size());
  predictor.run(view(in, {kBatch, 2, 3}), view(out, {kBatch, 2, 3}));
  for (size_t i = 0; i < in.size(); ++i) {
    EXPECT_EQ(out[i], std::min(255, static_cast<int>(in[i] * 1.5 + 0.5))) << int{in[i]};
  }
}

TEST(ElementTypes, RelativeErrorAsAnObjective) {
  Model model([](Var x) { return linear(x, 1); }, {3});
  Step step(model, [](Var out, Var target) { return sample_mean(abs((out - target) / target)); }, still(),
            {.batch = kBatch, .targets = {{"target", {1}}}});
  const test::Rows rows = test::make_rows(kBatch, {3}, 10, 5);
  std::vector<float> target;
  for (int64_t i = 0; i < kBatch; ++i) target.push_back(static_cast<float>(i % 2 == 0 ? i + 1 : -i));
  step.run(rows.inputs(0, kBatch), view(target, {kBatch, 1}));
  const Tensor weight = model.parameter("fc1.weight"), bias = model.parameter("fc1.bias");
  double sum = 0;
  for (int64_t i = 0; i < kBatch; ++i) {
    double out = static_cast<double>(bias.data<float>()[0]);
    for (int64_t k = 0; k < 3; ++k) {
      out += static_cast<double>(weight.data<float>()[k]) *
             static_cast<double>(rows.input[static_cast<size_t>(3 * i + k)]);
    }
    const auto wanted = static_cast<double>(target[static_cast<size_t>(i)]);
    sum += std::fabs((out - wanted) / wanted);
  }
  EXPECT_NEAR(step.read().loss, sum / static_cast<double>(kBatch), 1e-5);
}

// The clipped surrogate of proximal policy optimization, on values of one number a sample.
TEST(ElementTypes, ClippedRatioAsAnObjective) {
  Model policy([](Var x) { return reduce_sum(linear(x, 1, {.bias = false})); }, {1});
  const float one = 1;
  policy.set_parameter("fc1.weight", ConstView(&one, {1, 1}));
  Step step(
      [&](const Vars& in) {
        const Var ratio = exp(policy(in["state"]) - in["old"]);
        const Var gain = minimum(ratio * in["advantage"], clamp(ratio, 0.8, 1.2) * in["advantage"]);
        return sample_mean(-gain, {.name = "policy"});
      },
      {{"state", {1}}, {"old", {}}, {"advantage", {}}}, still(), {.batch = kBatch, .update = {&policy}});
  test::Random random(9);
  std::vector<float> state, old, advantage;
  double loss = 0, slope = 0;
  for (int64_t i = 0; i < kBatch; ++i) {
    for (std::vector<float>* list : {&state, &old, &advantage})
      list->push_back(static_cast<float>(random.uniform(-1, 1)));
    const auto x = static_cast<double>(state.back()), a = static_cast<double>(advantage.back());
    const double ratio = std::exp(x - static_cast<double>(old.back())), held = std::clamp(ratio, 0.8, 1.2);
    loss -= std::min(ratio * a, held * a) / static_cast<double>(kBatch);
    // Inside, both products are equal and pass one gradient together; outside, only the ratio itself passes one.
    if (ratio == held || ratio * a < held * a) slope -= a * ratio * x / static_cast<double>(kBatch);
  }
  step.forward_backward(
      {{"state", view(state, {kBatch, 1})}, {"old", view(old, {kBatch})}, {"advantage", view(advantage, {kBatch})}});
  EXPECT_NEAR(static_cast<double>(step.gradient("fc1.weight").data<float>()[0]), slope, 1e-5);
  step.update();
  EXPECT_NEAR(step.read().loss, loss, 1e-5);
}

TEST(ElementTypes, WhatIsNotChosenGetsNoGradient) {
  Model model(
      [](const Vars& in) {
        const Var taken = in["x"] * parameter("taken", {2}, {.init = init::ones()});
        const Var hidden = log(in["x"]) + parameter("hidden", {2}, {.init = init::ones()});
        return Vars{{"y", where(in["x"] < 1.0, taken, hidden)}};
      },
      Inputs{{"x", {2}}});
  Step step(
      [&](const Vars& in) {
        return sample_mean(model({{"x", in["x"]}})["y"]);
      },
      {{"x", {2}}}, still(), {.batch = 2, .update = {&model}});
  const std::vector<float> x = {-1, 0, 0.5, -2};  // log gives NaN and -infinity
  step.forward_backward({{"x", view(x, {2, 2})}});
  EXPECT_EQ(step.gradient("hidden").data<float>()[0], 0.0f);
  EXPECT_EQ(step.gradient("hidden").data<float>()[1], 0.0f);
  EXPECT_EQ(step.gradient("taken").data<float>()[0], -0.5f / 4);
  step.update();
}

}  // namespace
}  // namespace brisk
