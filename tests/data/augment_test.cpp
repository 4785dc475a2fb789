// Changes to images: what they do to each pixel, that all places are reached, and that streams decide alone.
#include "brisk/augment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "brisk/loader.h"

namespace brisk {
namespace {

Tensor counting(Shape shape) {
  Tensor out(shape);
  std::iota(out.data<float>(), out.data<float>() + out.count(), 1.0f);
  return out;
}
Tensor bytes(Shape shape, int first = 1) {
  Tensor out(shape, DType::u8);
  for (int64_t i = 0; i < out.count(); ++i) out.data<uint8_t>()[i] = static_cast<uint8_t>(first + i);
  return out;
}
std::vector<float> values(const Tensor& tensor) {
  return {tensor.data<float>(), tensor.data<float>() + tensor.count()};
}
std::vector<int> ints(const Tensor& tensor) {
  return {tensor.data<uint8_t>(), tensor.data<uint8_t>() + tensor.count()};
}

// Every place of the window is a shift of the padded image, and each is reached.
TEST(Augment, CropsEveryPlaceOfThePaddedImage) {
  const Tensor image = counting({2, 3, 4});
  std::set<std::vector<float>> allowed;
  for (int64_t top = -2; top <= 3; ++top) {
    for (int64_t left = -2; left <= 4; ++left) {
      std::vector<float> out;
      for (int64_t c = 0; c < 2; ++c) {
        for (int64_t y = top; y < top + 2; ++y) {
          for (int64_t x = left; x < left + 2; ++x) {
            const bool inside = y >= 0 && y < 3 && x >= 0 && x < 4;
            out.push_back(inside ? static_cast<float>(1 + (c * 3 + y) * 4 + x) : 0.0f);
          }
        }
      }
      allowed.insert(out);
    }
  }
  std::set<std::vector<float>> seen;
  for (int64_t index = 0; index < 2000; ++index) {
    Random random(1, 0, index);
    Tensor out({2, 2, 2});
    augment::random_crop(image, out, 2, random);
    ASSERT_TRUE(allowed.count(values(out))) << index;
    seen.insert(values(out));
  }
  EXPECT_EQ(seen, allowed);
}

TEST(Augment, CropsBytesAndWholeImages) {
  Random random(1, 0, 0);
  const Tensor image = bytes({3, 2, 2});
  Tensor same({3, 2, 2}, DType::u8);
  augment::random_crop(image, same, 0, random);
  EXPECT_EQ(ints(same), ints(image));
  Tensor large({3, 4, 4}, DType::u8);
  augment::random_crop(image, large, 1, random);
  EXPECT_EQ(large.data<uint8_t>()[0], 0);
  EXPECT_EQ(large.data<uint8_t>()[5], 1);
  EXPECT_EQ(large.data<uint8_t>()[16 + 10], 8);
}

TEST(Augment, FlipsHalfOfTheTime) {
  const std::vector<float> plain = {1, 2, 3, 4, 5, 6};
  const std::vector<float> mirrored = {3, 2, 1, 6, 5, 4};
  int flips = 0;
  for (int64_t index = 0; index < 1000; ++index) {
    Random random(3, 1, index);
    Tensor image = counting({1, 2, 3});
    augment::random_flip(image, random);
    const bool flipped = values(image) == mirrored;
    ASSERT_TRUE(flipped || values(image) == plain);
    flips += flipped;
  }
  EXPECT_NEAR(flips, 500, 80);  // five deviations
  Random random(3, 1, 0);
  Tensor never = bytes({1, 1, 3});
  augment::random_flip(never, random, 0);
  EXPECT_EQ(ints(never), (std::vector<int>{1, 2, 3}));
  augment::random_flip(never, random, 1);
  EXPECT_EQ(ints(never), (std::vector<int>{3, 2, 1}));
}

TEST(Augment, CutsOutSquaresAroundEachPixel) {
  std::set<std::vector<float>> seen;
  for (int64_t index = 0; index < 1000; ++index) {
    Random random(1, 0, index);
    Tensor image = counting({2, 4, 5});
    augment::cutout(image, 3, random);
    const std::vector<float> out = values(image);
    seen.insert(out);
    bool fits = false;
    for (int64_t cy = 0; cy < 4 && !fits; ++cy) {
      for (int64_t cx = 0; cx < 5 && !fits; ++cx) {
        bool same = true;
        for (int64_t i = 0; i < 40 && same; ++i) {
          const bool zero = std::abs(i / 5 % 4 - cy) <= 1 && std::abs(i % 5 - cx) <= 1;
          same = out[static_cast<size_t>(i)] == (zero ? 0.0f : static_cast<float>(i + 1));
        }
        fits = same;
      }
    }
    ASSERT_TRUE(fits) << index;
  }
  EXPECT_EQ(seen.size(), 20u);
  Random random(1, 0, 0);
  Tensor all = bytes({3, 4, 4});
  augment::cutout(all, INT64_MAX, random);
  EXPECT_EQ(ints(all), std::vector<int>(48, 0));
}

TEST(Augment, NormalizesEachChannel) {
  Tensor image = counting({2, 1, 2});
  augment::normalize(image, {.deviation = {2, 0.5}, .mean = {1, 3}});
  EXPECT_EQ(values(image), (std::vector<float>{0, 0.5f, 0, 2}));
  Tensor one = counting({2, 1, 2});
  augment::normalize(one, {.deviation = {2}, .mean = {1}});
  EXPECT_EQ(values(one), (std::vector<float>{0, 0.5f, 1, 1.5f}));
}

TEST(Augment, JittersBrightness) {
  std::set<float> factors;
  for (int64_t index = 0; index < 200; ++index) {
    Random random(1, 0, index);
    Tensor image(std::vector<float>{0.25f, 0.5f, 1.0f}, {1, 1, 3});
    augment::color_jitter(image, {.brightness = 0.5}, random);
    const float factor = image.data<float>()[0] / 0.25f;
    EXPECT_GE(factor, 0.5f);
    EXPECT_LE(factor, 1.5f);
    EXPECT_FLOAT_EQ(image.data<float>()[1], std::min(0.5f * factor, 1.0f));
    EXPECT_FLOAT_EQ(image.data<float>()[2], std::min(factor, 1.0f));
    factors.insert(factor);
  }
  EXPECT_GT(factors.size(), 190u);
  EXPECT_LT(*factors.begin(), 0.6f);
  EXPECT_GT(*factors.rbegin(), 1.4f);
}

// Contrast keeps the mean grey, saturation each pixel's grey, where nothing is cut off.
TEST(Augment, JittersContrastAndSaturationAroundGrey) {
  const auto grey = [](const Tensor& image, int64_t pixel) {
    const float* x = image.data<float>();
    return 0.299f * x[pixel] + 0.587f * x[2 + pixel] + 0.114f * x[4 + pixel];
  };
  const std::vector<float> start = {0.4f, 0.5f, 0.6f, 0.45f, 0.55f, 0.5f};
  const Tensor before(std::vector<float>(start), {3, 1, 2});
  int changed = 0;
  for (int64_t index = 0; index < 50; ++index) {
    Random random(1, 0, index);
    Tensor contrast(before);
    augment::color_jitter(contrast, {.contrast = 0.5}, random);
    EXPECT_NEAR(grey(contrast, 0) + grey(contrast, 1), grey(before, 0) + grey(before, 1), 1e-5);
    Tensor saturation(before);
    augment::color_jitter(saturation, {.saturation = 0.5}, random);
    for (const int64_t pixel : {0, 1}) EXPECT_NEAR(grey(saturation, pixel), grey(before, pixel), 1e-5);
    changed += values(contrast) != start && values(saturation) != start && values(contrast) != values(saturation);
  }
  EXPECT_GT(changed, 45);
  Random random(1, 0, 0);
  Tensor bright = bytes({3, 2, 2}, 240);
  augment::color_jitter(bright, {.brightness = 1, .contrast = 1, .saturation = 1}, random);  // bytes stay bytes
  Tensor same = bytes({3, 2, 2});
  augment::color_jitter(same, {}, random);
  EXPECT_EQ(ints(same), ints(bytes({3, 2, 2})));
}

TEST(Augment, BytesAreRoundedAndCut) {
  for (int64_t index = 0; index < 50; ++index) {
    Random random(1, 0, index);
    Random twin(1, 0, index);
    Tensor image(std::vector<uint8_t>{10, 100, 250}, {1, 1, 3});
    augment::color_jitter(image, {.brightness = 0.9}, random);
    const float factor = twin.uniform(static_cast<float>(1 - 0.9), static_cast<float>(1 + 0.9));
    for (const auto& [i, x] : {std::pair{0, 10.0f}, {1, 100.0f}, {2, 250.0f}}) {
      EXPECT_EQ(image.data<uint8_t>()[i], std::lround(std::min(x * factor, 255.0f)));
    }
  }
}

TEST(Augment, RefusesWhatCannotBe) {
  Random random(1, 0, 0);
  Tensor image({3, 4, 4});
  Tensor flat({4, 4});
  Tensor none({3, 0, 4});
  Tensor numbers({3, 4, 4}, DType::i64);
  Tensor whole({3, 4, 4}, DType::u8);
  Tensor large({3, 7, 4});
  Tensor grey({1, 4, 4});
  EXPECT_THROW(augment::random_flip(flat, random), Error);
  EXPECT_THROW(augment::random_flip(none, random), Error);
  EXPECT_THROW(augment::random_flip(numbers, random), Error);
  EXPECT_THROW(augment::random_flip(image, random, 1.5), Error);
  EXPECT_THROW(augment::random_flip(image, random, NAN), Error);
  EXPECT_THROW(augment::random_crop(image, whole, 0, random), Error);
  EXPECT_THROW(augment::random_crop(image, large, 1, random), Error);
  EXPECT_THROW(augment::random_crop(image, grey, 1, random), Error);
  EXPECT_THROW(augment::random_crop(image, image, -1, random), Error);
  EXPECT_THROW(augment::cutout(image, 0, random), Error);
  EXPECT_THROW(augment::normalize(whole, {.deviation = {1}, .mean = {0}}), Error);
  EXPECT_THROW(augment::normalize(image, {.deviation = {0}, .mean = {0}}), Error);
  EXPECT_THROW(augment::normalize(image, {.deviation = {1, 1}, .mean = {0}}), Error);
  EXPECT_THROW(augment::normalize(image, {.deviation = {1}, .mean = {INFINITY}}), Error);
  EXPECT_THROW(augment::normalize(image, {}), Error);
  EXPECT_THROW(augment::color_jitter(image, {.brightness = -0.1}, random), Error);
  EXPECT_THROW(augment::color_jitter(image, {.contrast = 1.1}, random), Error);
  EXPECT_THROW(augment::color_jitter(grey, {.saturation = 0.1}, random), Error);
}

// Through a loader: the same pixels for any number of workers, others in another epoch, the stored ones untouched.
TEST(Augment, IsTheSameForAnyNumberOfWorkers) {
  InMemoryDataset set;
  set.add("input", counting({20, 1, 4, 4}));
  const Augmented changed(set, "input", [](View image, Random& random) {
    augment::random_flip(image, random);
    augment::cutout(image, 2, random);
  });
  EXPECT_THROW(Augmented(set, "image", [](View, Random&) {}), Error);
  const auto pixels = [&](int64_t workers, int64_t epoch) {
    std::vector<float> out;
    Loader loader(changed, {.batch = 6, .seed = 4, .shuffle = true, .workers = workers});
    for (const Batch& batch : loader.epoch(epoch)) {
      const float* x = batch["input"].data<float>();
      out.insert(out.end(), x, x + batch["input"].count());
    }
    return out;
  };
  const std::vector<float> first = pixels(0, 0);
  for (const int64_t workers : {1, 2, 8}) EXPECT_EQ(pixels(workers, 0), first);
  EXPECT_NE(pixels(0, 1), first);
  Batch batch(set.fields(), 20);
  std::vector<int64_t> all(20);
  std::iota(all.begin(), all.end(), 0);
  set.rows(all, batch);
  EXPECT_EQ(batch["input"].data<float>()[319], 320.0f);
}

}  // namespace
}  // namespace brisk
