// The reference itself against numbers worked out by hand or published, and against definitions that it does not use.
#include "oracle/oracle.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <stdexcept>

#include "support/run_node.h"

namespace brisk::test {
namespace {

using graph::Attributes;
using Numbers = std::vector<double>;
using Sizes = std::vector<int64_t>;

Operand batch(Shape shape, Numbers data, int64_t rows = 1) { return {{DType::f32, rows, shape}, std::move(data)}; }
Operand weight(Shape shape, Numbers data) { return {{DType::f32, 0, shape}, std::move(data)}; }
Operand labels(Numbers data) { return {{DType::i64, 1, {}}, std::move(data)}; }

Numbers run(const std::string& op, Attributes attributes, std::vector<Operand> inputs, int64_t samples,
            size_t output = 0) {
  return expected({op, std::move(attributes), std::move(inputs), samples})[output].data;
}

void expect_near(const Numbers& got, const Numbers& want, double error = 1e-12) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], error) << "element " << i;
}

// Published with the generator: Random123's known answers for ten rounds of Philox 4x32.
TEST(Oracle, PhiloxKnownAnswers) {
  const uint32_t zeros[] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  const uint32_t ones[] = {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
  const uint32_t pi[] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
  for (int lane = 0; lane < 4; ++lane) {
    EXPECT_EQ(oracle::random_word(0, 0, 0, 0, lane), zeros[lane]);
    EXPECT_EQ(oracle::random_word(UINT64_MAX, UINT64_MAX, UINT32_MAX, UINT32_MAX, lane), ones[lane]);
    EXPECT_EQ(oracle::random_word(0x299f31d0a4093822, 0x85a308d3243f6a88, 0x13198a2e, 0x03707344, lane), pi[lane]);
  }
}

TEST(Oracle, Convolution) {
  // Input 0..8 as 3 x 3, kernel [[1, 2], [3, 4]]: each output is x + 2 right + 3 below + 4 diagonal.
  const Attributes plain = {{"activation", std::string("none")},
                            {"stride", Sizes{1, 1}},
                            {"padding", Sizes{0, 0}},
                            {"dilation", Sizes{1, 1}},
                            {"groups", int64_t{1}}};
  const Operand x = batch({1, 3, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8}), w = weight({1, 2, 2, 1}, {1, 2, 3, 4});
  expect_near(run("conv2d", plain, {x, w}, 1), {27, 37, 57, 67});
  Attributes padded = plain;
  padded.set("padding", Sizes{1, 0});
  padded.set("stride", Sizes{2, 1});
  expect_near(run("conv2d", padded, {x, w}, 1), {4, 11, 57, 67});
  Attributes dilated = plain;
  dilated.set("dilation", Sizes{2, 2});
  expect_near(run("conv2d", dilated, {x, w, weight({1}, {0.5})}, 1), {0 + 2 * 2 + 3 * 6 + 4 * 8 + 0.5});
  // Two groups: each output channel sees its own input channel; weights are O, H, W, I.
  Attributes grouped = plain;
  grouped.set("groups", int64_t{2});
  expect_near(run("conv2d", grouped, {batch({2, 1, 1}, {5, 7}), weight({2, 1, 1, 1}, {2, 3})}, 1), {10, 21});
  expect_near(run("conv2d", plain, {batch({2, 1, 1}, {5, 7}), weight({1, 1, 1, 2}, {2, 3})}, 1), {31});
}

TEST(Oracle, GradientsOfProductsAreTheirTransposes) {
  // <dy, conv(x)> = <dx, x> = <dw, w>, for any dy.
  const Attributes geometry = {
      {"stride", Sizes{2, 1}}, {"padding", Sizes{1, 0}}, {"dilation", Sizes{1, 2}}, {"groups", int64_t{1}}};
  Attributes forward = geometry, input = geometry, kernel = geometry;
  forward.set("activation", std::string("none"));
  input.set("input", Sizes{1, 3, 4});
  kernel.set("kernel", Sizes{2, 2});
  const Operand x = batch({1, 3, 4}, {1, -2, 3, 5, 8, -1, 0, 2, 4, 4, -3, 6}),
                w = weight({1, 2, 2, 1}, {1, -2, 0.5, 3});
  const Operand dy = batch({1, 2, 2}, {2, -1, 0.5, 4});
  const auto dot = [](const Numbers& a, const Numbers& b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  const double value = dot(dy.data, run("conv2d", forward, {x, w}, 1));
  EXPECT_NE(value, 0);
  EXPECT_NEAR(dot(x.data, run("conv2d_input_gradient", input, {dy, w}, 1)), value, 1e-12);
  EXPECT_NEAR(dot(w.data, run("conv2d_weight_gradient", kernel, {x, dy}, 1)), value, 1e-12);
}

TEST(Oracle, LinearAndMatmul) {
  const Operand x = batch({2}, {1, 2, 3, 4}), w = weight({3, 2}, {1, 0, 0, 1, 1, 1});
  expect_near(run("linear", {{"activation", std::string("relu")}}, {x, w, weight({3}, {0, -3, 1})}, 2),
              {1, 0, 4, 3, 1, 8});
  expect_near(run("matmul", {{"transpose_a", false}, {"transpose_b", true}},
                  {weight({1, 2}, {1, 2}), weight({2, 2}, {3, 4, 5, 6})}, 1),
              {11, 17});
  expect_near(run("matmul", {{"transpose_a", true}, {"transpose_b", false}},
                  {weight({2, 1}, {1, 2}), batch({2, 1}, {3, 4, 5, 6})}, 2),
              {11, 17});
}

TEST(Oracle, BroadcastingKeepsRowsApart) {
  // Two rows a sample: the row is no dimension of the shape that the other operand aligns with.
  expect_near(run("add", {}, {batch({2, 1}, {1, 2, 3, 4}, 2), batch({2}, {10, 20, 30, 40}, 2)}, 1),
              {11, 21, 12, 22, 33, 43, 34, 44});
  expect_near(run("mul", {}, {batch({2}, {1, 2, 3, 4}), weight({2}, {10, 100})}, 2), {10, 200, 30, 400});
}

TEST(Oracle, PoolingChoosesTheFirstMaximumAndTheFirstNaN) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Attributes attributes = {{"kernel", Sizes{1, 3}}, {"stride", Sizes{1, 3}}, {"padding", Sizes{0, 0}}};
  const Operand x = batch({1, 1, 9}, {1, 5, 5, 7, nan, nan, -3, -2, -4});
  expect_near(run("max_pool2d", attributes, {x}, 1, 1), {1, 4, 7});
  expect_near(run("avg_pool2d", {{"kernel", Sizes{2, 2}}, {"stride", Sizes{2, 2}}, {"padding", Sizes{1, 1}}},
                  {batch({1, 2, 2}, {4, 8, 12, 16})}, 1),
              {1, 2, 3, 4});
}

TEST(Oracle, BatchNorm) {
  const Attributes attributes = {{"activation", std::string("none")}, {"epsilon", 1e-12}, {"momentum", 0.1}};
  const std::vector<Operand> inputs = {batch({1}, {1, 2, 3, 4}), weight({1}, {2}), weight({1}, {1}), weight({1}, {0}),
                                       weight({1}, {1})};
  const double deviation = std::sqrt(1.25);
  expect_near(run("batch_norm", attributes, inputs, 4),
              {1 - 3 / deviation, 1 - 1 / deviation, 1 + 1 / deviation, 1 + 3 / deviation}, 1e-9);
  expect_near(run("batch_norm", attributes, inputs, 4, 1), {2.5});
  expect_near(run("batch_norm", attributes, inputs, 4, 3), {5.0 / 3});
  expect_near(run("batch_norm_commit", {{"chained", false}, {"momentum", 0.25}},
                  {weight({1}, {8}),
                   weight({1}, {4}),
                   {{DType::f32, 0, {1}}, {0}, graph::Place::buffer, 0},
                   {{DType::f32, 0, {1}}, {1}, graph::Place::buffer, 1}},
                  1, 1),
              {1.75});
}

TEST(Oracle, CrossEntropy) {
  const Attributes attributes = {
      {"class_weights", Numbers{1, 2, 3}}, {"ignore_index", int64_t{-100}}, {"label_smoothing", 0.3}};
  const std::vector<Operand> inputs = {batch({3}, {0, 0, 0, 1, 2, 3}), labels({1, -100})};
  // All classes equally likely: each costs log 3; (0.7 x 2 + 0.1 x (1 + 2 + 3)) log 3.
  expect_near(run("softmax_cross_entropy", attributes, inputs, 2), {2 * std::log(3.0), 0});
  expect_near(run("softmax_cross_entropy", attributes, inputs, 2, 1), {2, 0});
  oracle::Fault fault;
  expected({"softmax_cross_entropy", attributes, {batch({3}, {0, 0, 0, 1, 2, 3}), labels({1, 3})}, 2}, &fault);
  EXPECT_EQ(fault.kind, oracle::Fault::label);
  EXPECT_EQ(fault.sample, 1);
  EXPECT_EQ(fault.value, 3);
}

TEST(Oracle, Updates) {
  const auto scalar = [](int32_t slot, double value) {
    return Operand{{DType::f32, 0, {}}, {value}, graph::Place::scalar, slot};
  };
  const auto memory = [](graph::Place place, double value) { return Operand{{DType::f32, 0, {1}}, {value}, place, 0}; };
  const Attributes sgd = {{"dampening", 0.5},
                          {"momentum", 0.5},
                          {"nesterov", true},
                          {"rate_scale", Numbers{2}},
                          {"shadow", std::string("none")},
                          {"shadowed", std::vector<int64_t>()},
                          {"weight_decay", Numbers{0.25}}};
  // g = 2 x 1 + 0.25 x 4 = 3; buffer = 0.5 x 2 + 0.5 x 3 = 2.5; step = 3 + 0.5 x 2.5; rate 0.1 x 2.
  const std::vector<Operand> inputs = {scalar(0, 0.1),
                                       scalar(1, 2),
                                       scalar(2, 0),
                                       weight({4}, {1, 0, 1, -1}),
                                       memory(graph::Place::parameter, 4),
                                       memory(graph::Place::gradient, 1),
                                       memory(graph::Place::moment1, 2)};
  expect_near(run("sgd_walk", sgd, inputs, 1), {4 - 0.2 * 4.25});
  expect_near(run("sgd_walk", sgd, inputs, 1, 1), {2.5});
  std::vector<Operand> skipped = inputs;
  skipped[3].data[1] = 1;  // a gradient was not finite: nothing moves
  expect_near(run("sgd_walk", sgd, skipped, 1), {4});
  expect_near(run("sgd_walk", sgd, skipped, 1, 1), {2});
}

TEST(Oracle, RefusesWhatItDoesNotKnow) {
  EXPECT_FALSE(oracle::knows("no_such_operation"));
  const graph::Graph graph = build({"relu", {}, {batch({2}, {1, 2})}, 1});
  EXPECT_THROW(oracle::evaluate(graph, 1, {}), std::logic_error);
  EXPECT_THROW(oracle::evaluate(graph, 1, {{0, {{1, 3}, {1, 2, 3}}}}), std::logic_error);
}

}  // namespace
}  // namespace brisk::test
