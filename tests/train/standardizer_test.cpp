// A Standardizer as the first layer of a model: the numbers go with the weights.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "brisk/brisk.h"

namespace brisk {
namespace {

constexpr int64_t kRows = 40;

/// Three columns, the last of which is always 7; a target that follows from them.
InMemoryDataset table() {
  std::vector<float> x, y;
  for (int i = 0; i < kRows; ++i) {
    const auto t = static_cast<float>(i);
    x.insert(x.end(), {1000 + 50 * t, 0.001f * static_cast<float>(i % 7), 7});
    y.push_back(t / 40 + static_cast<float>(i % 7) / 7);
  }
  InMemoryDataset set;
  set.add("input", Tensor(std::move(x), {kRows, 3}));
  set.add("target", Tensor(std::move(y), {kRows, 1}));
  return set;
}

std::vector<float> predict(const Model& model, const std::vector<float>& x) {
  const auto rows = static_cast<int64_t>(x.size()) / 3;
  std::vector<float> y(static_cast<size_t>(rows));
  Predictor(model, {.batches = {8}}).run(view(x, {rows, 3}), view(y, {rows, 1}));
  return y;
}

TEST(StandardizerLayer, IsWhatItAppliesToTables) {
  const InMemoryDataset set = table();
  const Standardizer scale = Standardizer::fit(set);
  const Model model([&](Var v) { return scale(v); }, {3});
  const std::vector<Parameter> parameters = model.parameters();
  ASSERT_EQ(parameters.size(), 2u);
  EXPECT_EQ(parameters[0].name, "scale.mean");
  EXPECT_EQ(parameters[1].name, "scale.deviation");
  EXPECT_TRUE(parameters[0].buffer && parameters[1].buffer);
  EXPECT_EQ(model.parameter("scale.deviation").data<float>()[2], 0);
  std::vector<float> x = {1234, 0.002f, 7, 5, -1, 9}, y(6);
  Predictor(model, {.batches = {2}}).run(view(x, {2, 3}), view(y, {2, 3}));
  scale.apply(view(x, {2, 3}));
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(y[i], x[i], 1e-5 * std::abs(x[i])) << i;
  EXPECT_EQ(y[2], 0);
  EXPECT_EQ(y[5], 0) << "a column without deviation says nothing";
}

TEST(StandardizerLayer, IsSavedWithTheWeightsAndNeverTrained) {
  const InMemoryDataset set = table();
  const auto network = [](const Standardizer& scale) {
    return Model([&](Var v) { return linear(silu(linear(scale(v), 16)), 1); }, {3});
  };
  const Standardizer scale = Standardizer::fit(set);
  Model model = network(scale);
  Trainer trainer(model, mse(), adamw({.learning_rate = 0.01}), {.batch = 8});
  trainer.fit(set, {.duration = 5_epochs});
  const Tensor mean = model.parameter("scale.mean");
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(mean.data<float>()[i], static_cast<float>(scale.mean()[static_cast<size_t>(i)]));
  const std::string path = (std::filesystem::path(testing::TempDir()) / "standardizer.safetensors").string();
  save_weights(model, path);
  Model other = network(Standardizer({0, 0, 0}, {1, 1, 1}));
  const std::vector<float> x = {1500, 0.003f, 7, 1100, 0.001f, 7};
  EXPECT_NE(predict(other, x), predict(model, x));
  load_weights(other, path);
  EXPECT_EQ(predict(other, x), predict(model, x));
  std::filesystem::remove(path);
}

TEST(StandardizerLayer, RefusesAnotherNumberOfElements) {
  const Standardizer scale({1, 2}, {1, 1});
  const auto error = [&](Shape sample, bool twice = false) {
    try {
      Model(
          [&](Var v) {
            v = scale(v, Where{"net.cpp", 5});
            return twice ? scale(v) : v;
          },
          sample);
    } catch (const Error& caught) {
      return std::string(caught.what());
    }
    return std::string();
  };
  EXPECT_EQ(error({3}),
            "Error [shape] Standardizer (net.cpp:5): input must be f32 with 2 elements a sample, got f32 [N, 3]");
  EXPECT_EQ(error({2}), "");
  EXPECT_EQ(error({1, 2}), "");
  EXPECT_NE(error({2}, true).find("two parameters have this name"), std::string::npos);
}

}  // namespace
}  // namespace brisk
