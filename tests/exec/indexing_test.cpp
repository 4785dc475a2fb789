// Indices in whole steps: what a bad one says, and gradients that add up over micro-batches.
#include <gtest/gtest.h>

#include <cmath>

#include "support/networks.h"

namespace brisk {
namespace {

const Inputs kTokens = {{"words", {3}, DType::i64}, {"action", {}, DType::i64}};

Vars policy(const Vars& in) {
  const Var tokens = layer_norm(embedding(in["words"], {.count = 9, .features = 20}));
  return {{"logits", linear(flatten(transpose(tokens, 1, 2)), 4)}};
}

Mean likelihood(const Model& model, const Vars& in) {
  return sample_mean(-1.0 * gather(log_softmax(model(Vars{{"words", in["words"]}, {"action", in["action"]}})["logits"]),
                                   in["action"]));
}

struct Batch {
  std::vector<int64_t> words, action;
  explicit Batch(int64_t rows) {
    for (int64_t i = 0; i < 3 * rows; ++i) words.push_back(i * i % 9);
    for (int64_t i = 0; i < rows; ++i) action.push_back(i * 7 % 4);
  }
  Feed feed(int64_t first, int64_t rows) const {
    const int64_t all = static_cast<int64_t>(action.size());
    return {{"words", view(words, {all, 3}).rows(first, rows)}, {"action", view(action, {all}).rows(first, rows)}};
  }
};

TEST(Indexing, MicroBatchesAddUpToTheGradientOfTheWhole) {
  Model model(policy, kTokens);
  const auto objective = [&](const Vars& in) { return likelihood(model, in); };
  const Batch batch(21);
  Step whole(objective, kTokens, sgd({.learning_rate = 0.1}), {.batch = 21});
  whole.forward_backward(batch.feed(0, 21));
  Step split(objective, kTokens, sgd({.learning_rate = 0.1}), {.accumulate = 3, .batch = 19});
  split.expect({{"samples", 21}});
  for (const auto& [first, rows] : {std::pair{0, 1}, {1, 17}, {18, 3}}) split.forward_backward(batch.feed(first, rows));
  for (const char* name : {"embedding1.weight", "ln1.weight", "ln1.bias", "fc1.weight"}) {
    const Tensor wanted = whole.gradient(name), got = split.gradient(name);
    double norm = 0, difference = 0;
    for (int64_t i = 0; i < wanted.count(); ++i) {
      norm += std::pow(wanted.data<float>()[i], 2);
      difference += std::pow(wanted.data<float>()[i] - got.data<float>()[i], 2);
    }
    EXPECT_GT(norm, 0) << name;
    EXPECT_LT(std::sqrt(difference), 1e-5 * std::sqrt(norm)) << name;
  }
}

TEST(Indexing, TheSameBitsForAnyNumberOfThreads) {
  const Batch batch(67);
  const auto trained = [&](int threads) {
    Model model(policy, kTokens, {.seed = 5});
    Step step([&](const Vars& in) { return likelihood(model, in); }, kTokens, adam({.learning_rate = 0.01}),
              {.batch = 67, .threads = threads});
    for (int i = 0; i < 10; ++i) step.run(batch.feed(0, 67));
    EXPECT_LT(step.read().loss, 2.0);
    return test::hash_of(model);
  };
  const uint64_t one = trained(1);
  EXPECT_EQ(trained(2), one);
  EXPECT_EQ(trained(3), one);
}

TEST(Indexing, ABadIndexNamesRowAndRangeAndMovesNothing) {
  Model model(policy, kTokens);
  Step step([&](const Vars& in) { return likelihood(model, in); }, kTokens, sgd({.learning_rate = 0.1}), {.batch = 21});
  const auto refused = [&](const Batch& batch) -> std::string {
    const uint64_t before = test::hash_of(model);
    try {
      step.run(batch.feed(0, 21));
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::data);
      EXPECT_EQ(test::hash_of(model), before);
      return error.what();
    }
    return {};
  };
  Batch words(21), action(21);
  words.words[3 * 17 + 1] = 9;
  action.action[18] = -1;
  const std::string of_words = refused(words), of_action = refused(action);
  EXPECT_EQ(of_words.rfind("Error [data] embedding 'embedding1' (", 0), 0u) << of_words;
  EXPECT_NE(of_words.find("row 17 of the micro-batch has index 9, allowed 0..8; are the indices 1-based?"),
            std::string::npos)
      << of_words;
  EXPECT_NE(of_action.find("gather 'gather1'"), std::string::npos) << of_action;
  EXPECT_NE(of_action.find("row 18 of the micro-batch has index -1, allowed 0..3; the update is skipped"),
            std::string::npos)
      << of_action;
  step.run(Batch(21).feed(0, 21));
  EXPECT_EQ(step.clock().updates, 1);
}

TEST(FixedNumbers, PixelsBecomeNormalisedImages) {
  const NormalizeOptions options = {.deviation = {0.25, 0.5, 0.2}, .mean = {0.5, 0.25, 0.4}};
  const Model model([&](Var x) { return flatten(normalize(to_channels_first(x), options)) + parameter("zero", {12}); },
                    Inputs{{"input", {2, 2, 3}, DType::u8}});
  std::vector<uint8_t> pixels(2 * 12);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 255 / 23);
  std::vector<float> images(pixels.size());
  Predictor(model, {.batches = {2}}).run(view(pixels, {2, 2, 2, 3}), view(images, {2, 12}));
  for (size_t n = 0; n < 2; ++n) {
    for (size_t place = 0; place < 4; ++place) {
      for (size_t channel = 0; channel < 3; ++channel) {
        const double pixel = pixels[n * 12 + place * 3 + channel] / 255.0;
        EXPECT_NEAR(images[n * 12 + channel * 4 + place], (pixel - options.mean[channel]) / options.deviation[channel],
                    1e-6);
      }
    }
  }
}

}  // namespace
}  // namespace brisk
