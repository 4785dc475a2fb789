// Stories of building blocks: an operation, a layer and a block of one's own; a scale saved with its model; a target
// network that follows slowly.
#include <gtest/gtest.h>

#include <cmath>

#include "api/story_support.h"
#include "support/own_ops.h"

namespace {

using namespace brisk;
using story::contains;
using story::numbers;
using story::same_bits;

using test::learnt_swish;
using test::LearntSwish;

Var conv_bn(Var x, int64_t channels, int64_t kernel, int64_t stride) {
  return batch_norm(
      conv2d(x, {.bias = false, .channels = channels, .kernel = kernel, .padding = kernel / 2, .stride = stride}));
}

Var basic_block(Var x, int64_t channels, int64_t stride) {
  Var y = conv_bn(relu(conv_bn(x, channels, 3, stride)), channels, 3, 1);  // conv1 bn1 conv2 bn2: torchvision's names
  if (stride != 1 || x.dim(1) != channels) {
    Scope inner("downsample", Naming::index);  // children 0, 1 as in nn.Sequential
    x = conv_bn(x, channels, 1, stride);
  }
  return relu(x + y);
}

Var resnet18(Var x) {  // 32x32 form
  x = relu(conv_bn(x, 64, 3, 1));
  for (int64_t s = 0; s < 4; ++s)
    for (int64_t b = 0; b < 2; ++b) {
      Scope block("layer" + std::to_string(s + 1) + "." + std::to_string(b));
      x = basic_block(x, 64 << s, s > 0 && b == 0 ? 2 : 1);
    }
  return linear(global_avg_pool2d(x), 10, {.name = "fc"});
}

TEST(BlockStory, AnOperationOfOnesOwn) {
  const GradientReport report = check_gradient(LearntSwish{}, {{2, 3, 4, 4}, {3}});
  EXPECT_TRUE(report.ok) << report.text;
  Model model([](Var x) { return linear(flatten(learnt_swish(conv2d(x, {.channels = 4, .kernel = 3}))), 2); },
              {1, 6, 6});
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 8});
  EXPECT_TRUE(contains(step.plan().explain(), "learnt_swish")) << step.plan().explain();
  EXPECT_TRUE(contains(step.plan().explain(), "user op, not fused")) << step.plan().explain();
  const std::vector<float> x = numbers(8 * 36);
  const std::vector<int64_t> y = story::labels(8, 2);
  const auto loss = [&] {
    for (int i = 0; i < 20; ++i) step.run(view(x, {8, 1, 6, 6}), view(y, {8}));
    return step.read().loss;
  };
  const double first = loss();
  EXPECT_LT(loss(), first);
  EXPECT_EQ(model.parameter("b").shape(), (Shape{4}));
}

TEST(BlockStory, AResidualNetworkHasTheKnownNames) {
  const Model model(resnet18, {3, 32, 32}), known(models::resnet18_cifar(), {3, 32, 32});
  ASSERT_EQ(model.parameters().size(), known.parameters().size());
  for (const Parameter& p : known.parameters()) {
    EXPECT_EQ(model.parameter(p.name).shape(), p.shape) << p.name;
    EXPECT_TRUE(same_bits(model.parameter(p.name), known.parameter(p.name))) << p.name;  // keyed by name
  }
  EXPECT_EQ(model.parameter("layer2.0.downsample.0.weight").shape(), (Shape{128, 64, 1, 1}));
}

TEST(BlockStory, AScaleIsSavedWithItsModel) {
  InMemoryDataset train;
  train.add("input", Tensor(numbers(50 * 13), {50, 13}));
  const Standardizer scale = Standardizer::fit(train, "input");
  const auto net = [](const Standardizer& by) { return [by](Var v) { return linear(silu(linear(by(v), 64)), 1); }; };
  const story::File file("house.safetensors");
  Model model(net(scale), {13});
  save_weights(model, file.path());
  Model again(net(Standardizer(std::vector<double>(13, 0), std::vector<double>(13, 1))), {13}, {.seed = 1});
  load_weights(again, file.path());
  const std::vector<float> x = numbers(13);
  float a = 0, b = 1;
  Predictor(model).run(view(x, {1, 13}), view(&a, {1, 1}));
  Predictor(again).run(view(x, {1, 13}), view(&b, {1, 1}));
  EXPECT_EQ(a, b);
}

TEST(BlockStory, ATargetNetworkFollowsSlowly) {
  Model policy(models::mlp({4, 2}), {3}, {.seed = 1}), target(models::mlp({4, 2}), {3}, {.seed = 2});
  const Tensor from = target.parameter("fc1.weight"), to = policy.parameter("fc1.weight");
  target.copy_weights_from(policy, {.blend = 0.005});
  const Tensor now = target.parameter("fc1.weight");
  for (int64_t i = 0; i < now.count(); ++i) {
    const double start = from.data<float>()[i], goal = to.data<float>()[i];
    EXPECT_NEAR(now.data<float>()[i], start + 0.005 * (goal - start), 1e-6);
  }
  target.copy_weights_from(policy);
  EXPECT_TRUE(same_bits(target.parameter("fc1.weight"), to));
}

}  // namespace
