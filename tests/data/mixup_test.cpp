// Samples mixed in pairs.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "brisk/augment.h"
#include "brisk/loader.h"
#include "scripted_set.h"
#include "support/error_text.h"

namespace brisk {
namespace {

/// Sample i: input i, i and a noise of its own; target i mod 5; tag i.
template <class T>
class Numbers : public Dataset {
 public:
  int64_t size() const override { return 50; }
  std::vector<Field> fields() const override {
    const DType dtype = std::is_same_v<T, float> ? DType::f32 : DType::u8;
    return {{"input", {3}, dtype}, {"target", {}, DType::i64}, {"tag", {}, DType::i64}};
  }
  std::string name() const override { return "Numbers"; }
  void read(int64_t index, Sample& out, Random& random) const override {
    T* x = out["input"].data<T>();
    x[0] = x[1] = static_cast<T>(index);
    x[2] = static_cast<T>(100 * random.uniform());
    out["target"].data<int64_t>()[0] = index % 5;
    out["tag"].data<int64_t>()[0] = index;
  }
};

using test::error_text;

TEST(Mixup, MixesInputsAndClassesByTheSameShare) {
  const Numbers<float> numbers;
  const Mixup mixup(numbers, {.alpha = 1, .classes = 5});
  EXPECT_EQ(mixup.fields()[1].shape.text(), "[5]");
  EXPECT_EQ(mixup.fields()[1].dtype, DType::f32);
  Loader plain(numbers, {.batch = 50, .seed = 3}), mixed(mixup, {.batch = 50, .seed = 3});
  const Batch& a = *plain.next();
  const Batch& b = *mixed.next();
  std::set<float> shares;
  for (int64_t i = 0; i < 50; ++i) {
    const float* x = b["input"].data<float>() + 3 * i;
    const float* target = b["target"].data<float>() + 5 * i;
    EXPECT_EQ(b["tag"].data<int64_t>()[i], i);
    EXPECT_NEAR(target[0] + target[1] + target[2] + target[3] + target[4], 1, 1e-6);
    // The other sample is known when its class is another one: x = share i + (1 - share) other.
    const double share = target[i % 5];
    if (share > 0.999) continue;
    const double other = (x[0] - share * static_cast<double>(i)) / (1 - share);
    EXPECT_NEAR(other, std::round(other), 1e-3);
    EXPECT_GT(target[std::lround(other) % 5], 0);
    EXPECT_EQ(x[0], x[1]);
    // The first sample was read as it is without mixing.
    const double noise = (x[2] - share * static_cast<double>(a["input"].data<float>()[3 * i + 2])) / (1 - share);
    EXPECT_TRUE(noise > -0.01 && noise < 100.01) << noise;
    shares.insert(static_cast<float>(share));
  }
  EXPECT_GT(shares.size(), 20u);
}

TEST(Mixup, SharesAreOfBetaAlphaAlpha) {
  const Numbers<float> numbers;
  for (const double alpha : {0.2, 1.0, 5.0}) {
    const Mixup mixup(numbers, {.alpha = alpha, .classes = 5});
    Loader loader(mixup, {.batch = 50});
    double sum = 0, squares = 0;
    int64_t count = 0;
    for (int64_t epoch = 0; epoch < 60; ++epoch) {
      for (const Batch& batch : loader.epoch(epoch)) {
        for (int64_t i = 0; i < batch.size(); ++i) {
          const float* target = batch["target"].data<float>() + 5 * i;
          const int64_t own = batch["tag"].data<int64_t>()[i] % 5;
          const float* x = batch["input"].data<float>() + 3 * i;
          // Pairs of one class tell no share.
          if (target[own] == 1 && x[0] != static_cast<float>(batch["tag"].data<int64_t>()[i])) continue;
          sum += target[own];
          squares += static_cast<double>(target[own]) * target[own];
          ++count;
        }
      }
    }
    const double mean = sum / static_cast<double>(count), variance = squares / static_cast<double>(count) - mean * mean;
    EXPECT_NEAR(mean, 0.5, 0.05) << alpha;
    EXPECT_NEAR(variance, 1 / (4 * (2 * alpha + 1)), 0.02) << alpha;
  }
}

TEST(Mixup, BytesAreRounded) {
  const Numbers<uint8_t> numbers;
  const Mixup mixup(numbers, {.alpha = 1, .classes = 5});
  Loader loader(mixup, {.batch = 50});
  const Batch& batch = *loader.next();
  for (int64_t i = 0; i < 50; ++i) {
    const float share = batch["target"].data<float>()[5 * i + i % 5];
    if (share == 1) continue;  // of one class: tells no share
    const double least = std::floor(static_cast<double>(share * static_cast<float>(i))),
                 x = batch["input"].data<uint8_t>()[3 * i];
    EXPECT_TRUE(x >= least && x <= least + (1 - static_cast<double>(share)) * 49 + 1.5) << x << " " << share;
  }
}

TEST(Mixup, SamplesDoNotDependOnWorkersAndDifferByEpoch) {
  const Numbers<float> numbers;
  const Mixup mixup(numbers, {.classes = 5});
  const auto hashes = [&](int64_t workers) {
    return test::two_epochs(mixup, {.batch = 8, .seed = 1, .shuffle = true, .workers = workers});
  };
  const auto expected = hashes(0);
  EXPECT_EQ(std::set<uint64_t>(expected.begin(), expected.end()).size(), 14u);
  for (const int64_t workers : {1, 3}) EXPECT_EQ(hashes(workers), expected);
}

TEST(Mixup, RefusesWhatItCannotMix) {
  const Numbers<float> numbers;
  const auto refused = [&](const MixupOptions& options) {
    return error_text([&] { const Mixup mixup(numbers, options); });
  };
  EXPECT_EQ(refused({}),
            "Error [option] MixupOptions.classes = 0: must be the number of classes, at least 1 and below 2^31");
  EXPECT_EQ(refused({.alpha = 0, .classes = 5}),
            "Error [option] MixupOptions.alpha = 0: must be finite and more than 0");
  EXPECT_EQ(refused({.classes = 5, .input = "tag"}), "Error [data] \"tag\": is i64; f32 and u8 are mixed");
  EXPECT_EQ(refused({.classes = 5, .target = "input"}), "Error [data] \"input\": is f32 [3]; class numbers are i64 []");
  const Mixup mixup(numbers, {.classes = 4});
  Loader loader(mixup, {.batch = 50});
  const std::string text = error_text([&] { loader.next(); });
  EXPECT_NE(text.find("of Numbers: class 4: must be 0 to 3"), std::string::npos) << text;
}

}  // namespace
}  // namespace brisk
