// What the case table does not show of the losses: which bad label is reported, and large logits.
#include <gtest/gtest.h>

#include <cmath>

#include "support/run_node.h"

namespace brisk::test {
namespace {

graph::Attributes attributes(double smoothing = 0, std::vector<double> weights = {}) {
  return {{"class_weights", std::move(weights)}, {"ignore_index", int64_t{-100}}, {"label_smoothing", smoothing}};
}

NodeCase cross_entropy(int64_t samples, int64_t classes, std::vector<double> logits, std::vector<double> labels,
                       graph::Attributes made = attributes()) {
  const graph::ValueType by_class{DType::f32, 1, Shape{classes}}, by_row{DType::i64, 1, Shape{}};
  return {
      "softmax_cross_entropy", std::move(made), {{by_class, std::move(logits)}, {by_row, std::move(labels)}}, samples};
}

TEST(Labels, FirstBadRowIsReported) {
  for (const int64_t samples : {40, 2000}) {  // checked within the only unit, and in a phase of its own
    std::vector<double> labels(static_cast<size_t>(samples), 3);
    labels[5] = -100;
    labels[static_cast<size_t>(samples) - 3] = 10;
    labels[17] = -1;
    labels[18] = 99;
    const Outcome outcome =
        run_native(cross_entropy(samples, 10, std::vector<double>(labels.size() * 10, 0.5), labels));
    EXPECT_EQ(outcome.status, cpu::Status::label);
    EXPECT_EQ(outcome.sample, 17);
    EXPECT_EQ(outcome.value, -1);
    EXPECT_EQ(outcome.outputs[0].data[17], 0);
    EXPECT_EQ(outcome.outputs[0].data[5], 0);
    EXPECT_NEAR(outcome.outputs[0].data[0], std::log(10.0), 1e-6);
  }
}

TEST(Labels, AWideLabelDoesNotWrap) {
  const Outcome outcome = run_native(cross_entropy(1, 4, {0, 0, 0, 0}, {4294967297.0}));
  EXPECT_EQ(outcome.status, cpu::Status::label);
  EXPECT_EQ(outcome.value, 4294967297);
}

TEST(CrossEntropy, LargeLogitsKeepTheirDifferences) {
  const Outcome outcome = run_native(cross_entropy(2, 3, {10000, 10001, 9999, -10000, -10001, -9999}, {0, 2}));
  const double expected = 1 + std::log(1 + std::exp(-1.0) + std::exp(-2.0));
  EXPECT_EQ(outcome.status, cpu::Status::none);
  EXPECT_NEAR(outcome.outputs[0].data[0], expected, 1e-6);
  EXPECT_NEAR(outcome.outputs[0].data[1], expected - 1, 1e-6);
}

TEST(CrossEntropy, AClassThatWeighsNothingMayBeImpossible) {
  const Outcome outcome = run_native(cross_entropy(1, 3, {-HUGE_VAL, 1, 1}, {1}, attributes(0.1, {0, 1, 1})));
  EXPECT_NEAR(outcome.outputs[0].data[0], (0.9 + 0.1 * 2 / 3) * std::log(2.0), 1e-6);
}

}  // namespace
}  // namespace brisk::test
