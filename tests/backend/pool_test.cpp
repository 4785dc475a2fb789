// Pooling: which element is chosen, and what gradients get it.
#include <gtest/gtest.h>

#include <cmath>

#include "support/run_node.h"

namespace brisk::test {
namespace {

using Ints = std::vector<int64_t>;

graph::ValueType image(int64_t height, int64_t width, DType dtype = DType::f32) {
  return {dtype, 1, Shape{1, height, width}};
}

graph::Attributes window(int64_t kernel, int64_t stride, int64_t padding) {
  return {{"kernel", Ints{kernel, kernel}}, {"stride", Ints{stride, stride}}, {"padding", Ints{padding, padding}}};
}

TEST(Pool, TheFirstMaximumIsChosen) {
  const Outcome outcome = run_native({"max_pool2d", window(2, 2, 0), {{image(2, 4), {5, 5, 1, 2, 5, 1, 2, 2}}}, 1});
  EXPECT_EQ(outcome.outputs[0].data, (std::vector<double>{5, 2}));
  EXPECT_EQ(outcome.outputs[1].data, (std::vector<double>{0, 3}));
}

TEST(Pool, NaNWins) {
  const double nan = std::nan("");
  const Outcome outcome =
      run_native({"max_pool2d", window(2, 2, 0), {{image(2, 4), {nan, 9, 1, 2, nan, 1, nan, HUGE_VAL}}}, 1});
  EXPECT_TRUE(std::isnan(outcome.outputs[0].data[0]) && std::isnan(outcome.outputs[0].data[1]));
  EXPECT_EQ(outcome.outputs[1].data, (std::vector<double>{0, 6}));
}

TEST(Pool, PaddingIsNeverChosen) {
  const Outcome outcome = run_native({"max_pool2d", window(3, 2, 1), {{image(2, 2), {-4, -3, -2, -5}}}, 1});
  EXPECT_EQ(outcome.outputs[0].data, (std::vector<double>{-2}));
  EXPECT_EQ(outcome.outputs[1].data, (std::vector<double>{2}));
}

TEST(Pool, OverlappingWindowsAddTheirGradients) {
  graph::Attributes attributes = window(2, 1, 0);
  attributes.set("input", Ints{1, 2, 3});
  const Operand dy{image(1, 2), {10, 1}}, index{image(1, 2, DType::i32), {4, 4}};
  EXPECT_EQ(run_native({"max_pool2d_gradient", attributes, {dy, index}, 1}).outputs[0].data,
            (std::vector<double>{0, 0, 0, 0, 11, 0}));
}

TEST(Pool, TheAverageCountsPadding) {
  const NodeCase node{"avg_pool2d", window(2, 2, 1), {{image(2, 2), {4, 8, 12, 16}}}, 1};
  EXPECT_EQ(run_native(node).outputs[0].data, (std::vector<double>{1, 2, 3, 4}));
}

}  // namespace
}  // namespace brisk::test
