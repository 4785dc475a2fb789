// The story of errors: the line, and the whole message.
#include <gtest/gtest.h>

#include <concepts>

#include "api/story_support.h"

namespace {

using namespace brisk;
using story::contains;
using story::error_text;
using story::labels;
using story::numbers;

TEST(ErrorStory, ForgottenFlatten) {
  int line = 0;
  const auto net = [&](Var x) {
    x = max_pool2d(relu(conv2d(x, {.channels = 20, .kernel = 5})), {.kernel = 2});
    x = relu(conv2d(x, {.channels = 50, .kernel = 5}));
    line = __LINE__ + 1;
    return linear(max_pool2d(x, {.kernel = 2}), 500);
  };
  const std::string text = error_text([&] { Model(net, {1, 28, 28}); }), at = "errors_test.cpp:" + std::to_string(line);
  EXPECT_EQ(text, "Error [shape] linear 'fc1' (" + at +
                      "): input must be [N, features], got [N, 50, 4, 4] from max_pool2d 'pool2' (" + at +
                      "); put flatten() between them");
  try {
    Model(net, {1, 28, 28});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::shape);
    EXPECT_EQ(error.field(), "linear 'fc1'");
    EXPECT_EQ(error.where().line, line);
  }
}

TEST(ErrorStory, BatchesThatDoNotFit) {
  Model model(models::mlp({10}), {4});
  const auto refused = [&](StepOptions options) {
    return error_text([&] { Step(model, cross_entropy(), sgd({.learning_rate = 0.1}), options); });
  };
  EXPECT_EQ(refused({.batch = 0}),
            "Error [option] StepOptions.batch = 0: must be at least 1; it is the micro-batch of one rank, for example "
            ".batch = 64");
  EXPECT_EQ(refused({.batch = 64, .global_batch = 100}),
            "Error [option] StepOptions.global_batch = 100: must be a multiple of batch 64 x ranks 1; nearest 64 or "
            "128");
}

TEST(ErrorStory, LabelsThatBeginAtOne) {
  InMemoryDataset train;
  train.add("input", Tensor(numbers(20 * 4), {20, 4}));
  std::vector<int64_t> of_ten = labels(20, 9);
  for (int64_t& label : of_ten) ++label;
  of_ten[17] = 10;
  train.add("target", Tensor(std::move(of_ten), {20}));
  train.set_name("train");
  Model model(models::mlp({10}), {4});
  const std::string at = "errors_test.cpp:" + std::to_string(__LINE__ + 1);
  Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 5});
  EXPECT_EQ(error_text([&] { trainer.fit(train, {.duration = 1_epochs, .progress = false}); }),
            "Error [data] cross_entropy 'loss' (" + at +
                "): sample 17 of \"train\" has label 10, allowed 0..9 or ignore_index -100; are the labels 1-based?");
}

TEST(ErrorStory, WeightsOfAnotherNumberOfClasses) {
  const story::File file("resnet18.safetensors");
  save_weights(Model(models::resnet18(), {3, 32, 32}), file.path());
  Model model(models::resnet18({.classes = 7}), {3, 32, 32});
  const Tensor before = model.parameter("conv1.weight");
  EXPECT_EQ(error_text([&] { load_weights(model, file.path()); }),
            "Error [weights] fc.weight: file has [1000, 512], model has [7, 512] (1 more: fc.bias); skip them with "
            "{.skip = {\"fc.*\"}}; nothing was loaded");
  EXPECT_TRUE(story::same_bits(model.parameter("conv1.weight"), before));
}

TEST(ErrorStory, AScheduleWithoutAnEnd) {
  Model model(models::mlp({10}), {4});
  EXPECT_EQ(error_text([&] {
              Step step(model, cross_entropy(), sgd({.learning_rate = cosine(0.1)}), {.batch = 1});
              const std::vector<float> x = numbers(4);
              const int64_t y = 0;
              step.run(view(x, {1, 4}), ConstView(&y, {1}));
            }),
            "Error [schedule] sgd.learning_rate: cosine(0.1) lasts to the end of the run, and a Step has none; give "
            "cosine(0.1, {.over = 10000_updates})");
}

template <class T>
concept Viewable = requires(T data) {
  view(std::forward<T>(data), Shape{3});
};

TEST(ErrorStory, ATemporaryHasNoView) {
  static_assert(Viewable<std::vector<float>&> && Viewable<const std::vector<float>&>);
  static_assert(!Viewable<std::vector<float>>);  // it dies at the end of the line
  std::vector<float> v = {1, 2, 3};
  EXPECT_EQ(view(v, {3}).count(), 3);
  EXPECT_TRUE(contains(error_text([&] { view(v, {4}); }), "Error [shape]"));
}

}  // namespace
