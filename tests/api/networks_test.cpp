// Stories of networks: two inputs and two heads, two networks against each other, a pretrained network.
#include <gtest/gtest.h>

#include <cmath>

#include "api/story_support.h"

namespace {

using namespace brisk;
using story::contains;
using story::error_text;
using story::labels;
using story::numbers;
using story::same_bits;

Vars driver(const Vars& in) {
  Var image = models::resnet18_features(in["image"]);
  Var both = relu(linear(concat({flatten(image), relu(linear(in["imu"], 64))}, {.axis = 1}), 256));
  return {{"lane", linear(both, 5, {.name = "lane"})}, {"steer", linear(both, 1, {.name = "steer"})}};
}

InMemoryDataset drives(int64_t n, const std::string& steer) {
  InMemoryDataset out;
  out.add("image", Tensor(numbers(n * 3 * 32 * 32), {n, 3, 32, 32}));
  out.add("imu", Tensor(numbers(n * 12), {n, 12}));
  std::vector<int64_t> lane = labels(n, 5);
  lane[0] = -1;
  out.add("lane", Tensor(std::move(lane), {n}));
  out.add(steer, Tensor(numbers(n), {n, 1}));
  out.set_name("drives");
  return out;
}

TEST(NetworkStory, TwoInputsTwoHeadsTwoLosses) {
  Model model(driver, {{"image", {3, 32, 32}}, {"imu", {12}}});
  LossFunction loss = [](const Vars& out, const Vars& target) -> Mean {
    return cross_entropy(out["lane"], target["lane"], {.ignore_index = -1, .name = "lane"}) +
           0.3 * huber(out["steer"], target["steer"], {.delta = 0.1, .name = "steer"});
  };
  Trainer trainer(model, loss, adamw({.learning_rate = 1e-3}), {.batch = 4});
  trainer.add_metric("lane_accuracy", [](const Vars& out, const Vars& target) {
    return accuracy(out["lane"], target["lane"], {.ignore_index = -1});
  });
  EXPECT_EQ(error_text([&] { trainer.fit(drives(8, "angle"), {.duration = 1_epochs}); }),
            "Error [data] data set \"drives\" has no field \"steer\"; it has image, imu, lane, angle");
  EXPECT_EQ(error_text([&] { trainer.fit(drives(8, "stear"), {.duration = 1_epochs}); }),
            "Error [data] data set \"drives\" has no field \"steer\"; it has image, imu, lane, stear (did you mean "
            "stear?)");
  const InMemoryDataset data = drives(8, "steer"), held_out = drives(6, "steer");
  const FitResult r = trainer.fit(data, held_out, {.duration = 1_epochs, .progress = false});
  EXPECT_EQ(r.clock.updates, 2);
  const EvaluationResult& e = r.evaluation;
  EXPECT_NEAR(e.loss, e.metric("loss.lane") + 0.3 * e.metric("loss.steer"), 1e-9);
  EXPECT_EQ(e.terms[0].count, 5);  // each term is divided by its own count
  EXPECT_EQ(e.terms[1].count, 6);
  EXPECT_TRUE(std::isfinite(e.loss));
}

Var generator(Var z) { return reshape(sigmoid(linear(relu(linear(z, 64)), 784)), {-1, 1, 28, 28}); }
Var discriminator(Var image) { return linear(leaky_relu(linear(flatten(image), 64), 0.2), 1); }

TEST(NetworkStory, TwoNetworksAgainstEachOther) {
  InMemoryDataset digits;
  digits.add("image", Tensor(numbers(160 * 784), {160, 1, 28, 28}));
  Model g(generator, {64}, {.name = "g"}), d(discriminator, {1, 28, 28}, {.name = "d"});
  const Inputs real = {{"image", {1, 28, 28}}};
  StepOptions on_d = {.batch = 64, .update = {&d}}, on_g = {.batch = 64, .update = {&g}};
  auto adam_gan = adam({.betas = {0.5, 0.999}, .learning_rate = 2e-4});
  Step train_d(
      [&](const Vars& in) {  // a step's objective may call several models
        return bce_with_logits(d(in["image"]), 1.0, {.name = "real"}) +
               bce_with_logits(d(g(random_normal({64}))), 0.0, {.name = "made"});
      },
      real, adam_gan, on_d);  // only d changes: no gradient is made or kept for g
  Step train_g([&](const Vars&) { return bce_with_logits(d(g(random_normal({64}))), 1.0); }, {}, adam_gan, on_g);
  Loader loader(digits, {.batch = 64, .shuffle = true});
  const Tensor of_g = g.parameter("fc1.weight");
  int64_t batches = 0;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    for (const Batch& batch : loader.epoch(epoch)) {
      const Tensor g_before = g.parameter("fc1.weight"), d_before = d.parameter("fc1.weight");
      train_d.run({{"image", batch["image"]}});
      EXPECT_TRUE(same_bits(g.parameter("fc1.weight"), g_before));
      const Tensor d_after = d.parameter("fc1.weight");
      EXPECT_FALSE(same_bits(d_after, d_before));
      train_g.run(batch.size());
      EXPECT_TRUE(same_bits(d.parameter("fc1.weight"), d_after));
      ++batches;
    }
  }
  EXPECT_EQ(batches, 6);
  EXPECT_FALSE(same_bits(g.parameter("fc1.weight"), of_g));
  EXPECT_LT(train_d.plan().bytes().gradients, 4 * (d.parameter_count() + 1000));
  EXPECT_TRUE(std::isfinite(train_d.read().loss) && std::isfinite(train_g.read().loss));
}

TEST(NetworkStory, TransferLearning) {
  const story::File file("resnet18.safetensors");
  save_weights(Model(models::resnet18({.classes = 10}), {3, 32, 32}, {.seed = 3}), file.path());
  InMemoryDataset data;
  data.add("input", Tensor(numbers(8 * 3 * 32 * 32), {8, 3, 32, 32}));
  data.add("target", Tensor(labels(8, 7), {8}));

  Model model(models::resnet18({.classes = 7}), {3, 32, 32});
  LoadReport got = load_weights(model, file.path(), {.skip = {"fc.*"}});  // fc keeps its fresh initial values
  EXPECT_EQ(got.skipped.size(), 2u);
  EXPECT_EQ(got.loaded.size(), 100u);              // 60 parameters and 40 running statistics
  model.freeze({"conv1.*", "bn1.*", "layer1.*"});  // gradients stop, batch-norm statistics and dropout too
  Trainer trainer(
      model, cross_entropy(),
      adamw({.groups = {{.learning_rate_scale = 10, .match = "fc.*"}, {.match = "layer2.*", .weight_decay = 0}},
             .learning_rate = cosine(1e-4)}),
      {.batch = 4});
  EXPECT_TRUE(contains(trainer.summary(), "frozen in 15")) << trainer.summary();
  EXPECT_TRUE(contains(trainer.summary(), "rate x 10 on 2")) << trainer.summary();
  const Tensor conv1 = model.parameter("conv1.weight"), mean = model.parameter("bn1.running_mean"),
               deep = model.parameter("layer4.1.conv2.weight");
  EXPECT_EQ(trainer.fit(data, {.duration = 1_epochs, .progress = false}).clock.updates, 2);
  EXPECT_TRUE(same_bits(model.parameter("conv1.weight"), conv1));
  EXPECT_TRUE(same_bits(model.parameter("bn1.running_mean"), mean));
  EXPECT_FALSE(same_bits(model.parameter("layer4.1.conv2.weight"), deep));
  model.unfreeze({"*"});
  const FitResult r = trainer.fit(data, {.duration = 2_epochs, .progress = false});  // 1 more
  EXPECT_EQ(r.clock.updates, 4);
  EXPECT_FALSE(same_bits(model.parameter("conv1.weight"), conv1));
  EXPECT_FALSE(same_bits(model.parameter("bn1.running_mean"), mean));
  EXPECT_TRUE(contains(error_text([&] { model.freeze({"layer9.*"}); }), "\"layer9.*\" matches no parameter"));
}

}  // namespace
