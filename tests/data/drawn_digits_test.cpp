// Drawn digits: pure, complete, and neither trivial nor noise.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "brisk/data.h"

namespace brisk::data {
namespace {

struct Digits {
  explicit Digits(int64_t count, uint64_t seed) {
    const InMemoryDataset set = drawn_digits(count, seed);
    std::vector<int64_t> indices(static_cast<size_t>(count));
    std::iota(indices.begin(), indices.end(), 0);
    Batch batch(set.fields(), count);
    set.rows(indices, batch);
    pixels.assign(batch["input"].data<float>(), batch["input"].data<float>() + count * 784);
    labels.assign(batch["target"].data<int64_t>(), batch["target"].data<int64_t>() + count);
  }
  std::vector<float> pixels;
  std::vector<int64_t> labels;
};

TEST(DrawnDigits, HaveTheFieldsOfImages) {
  const InMemoryDataset set = drawn_digits(10, 1);
  ASSERT_EQ(set.fields().size(), 2u);
  EXPECT_EQ(set.fields()[0].name, "input");
  EXPECT_EQ(set.fields()[0].shape.text(), "[1, 28, 28]");
  EXPECT_EQ(set.fields()[1].name, "target");
  EXPECT_EQ(set.fields()[1].dtype, DType::i64);
  EXPECT_THROW(drawn_digits(0), Error);
}

TEST(DrawnDigits, ArePureInSeedAndIndex) {
  const Digits small(50, 3);
  const Digits large(80, 3);
  EXPECT_TRUE(std::equal(small.pixels.begin(), small.pixels.end(), large.pixels.begin()));
  EXPECT_TRUE(std::equal(small.labels.begin(), small.labels.end(), large.labels.begin()));
  EXPECT_NE(Digits(50, 4).pixels, small.pixels);
}

TEST(DrawnDigits, ShowEveryDigitEvenlyWithInkInTheMiddle) {
  const Digits digits(2000, 5);
  std::vector<int> counts(10);
  for (size_t i = 0; i < digits.labels.size(); ++i) {
    ++counts[static_cast<size_t>(digits.labels[i])];
    const float* image = &digits.pixels[i * 784];
    EXPECT_GT(*std::max_element(image, image + 784), 0.5f) << i;
    EXPECT_LT(std::accumulate(image, image + 784, 0.f), 784 * 0.5f) << i;
    EXPECT_TRUE(std::all_of(image, image + 784, [](float v) { return v >= 0 && v <= 1; }));
  }
  for (const int count : counts) EXPECT_NEAR(count, 200, 5 * 14);
}

// Softmax regression, the best linear rule: learns something, but strokes are no linear thing.
TEST(DrawnDigits, AreLearntButNotSolvedByALinearModel) {
  const Digits train(1500, 1);
  const Digits test(500, 2);
  std::vector<float> weights(7850);
  const auto scores = [&](const float* image) {
    std::vector<float> z(10);
    for (size_t k = 0; k < 10; ++k) {
      z[k] = weights[7840 + k];
      const float* row = &weights[k * 784];
      for (size_t j = 0; j < 784; ++j) z[k] += row[j] * image[j];
    }
    return z;
  };
  for (int epoch = 0; epoch < 5; ++epoch) {
    for (size_t i = 0; i < train.labels.size(); ++i) {
      const float* image = &train.pixels[i * 784];
      std::vector<float> z = scores(image);
      const float most = *std::max_element(z.begin(), z.end());
      float sum = 0;
      for (float& value : z) sum += value = std::exp(value - most);
      for (size_t k = 0; k < 10; ++k) {
        const float step = 0.02f * (z[k] / sum - (k == static_cast<size_t>(train.labels[i]) ? 1.f : 0.f));
        float* row = &weights[k * 784];
        for (size_t j = 0; j < 784; ++j) row[j] -= step * image[j];
        weights[7840 + k] -= step;
      }
    }
  }
  int right = 0;
  for (size_t i = 0; i < test.labels.size(); ++i) {
    const std::vector<float> z = scores(&test.pixels[i * 784]);
    right += std::max_element(z.begin(), z.end()) - z.begin() == test.labels[i];
  }
  RecordProperty("right_of_500", right);
  EXPECT_GT(right, 200);
  EXPECT_LT(right, 475);
}

}  // namespace
}  // namespace brisk::data
