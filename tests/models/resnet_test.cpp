// Residual networks: torchvision's names, shapes and sizes; that each form trains.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "brisk/brisk.h"
#include "brisk/models.h"
#include "models/trains.h"

namespace brisk {
namespace {

TEST(Resnet, HasTorchvisionsParameters) {
  const std::vector<Published> all = {{"resnet18", models::resnet18(), 11'689'512, 102},
                                      {"resnet34", models::resnet34(), 21'797'672, 182},
                                      {"resnet50", models::resnet50(), 25'557'032, 267},
                                      {"resnet101", models::resnet101(), 44'549'160, 522}};
  for (const Published& row : all) expect_sizes(row);
}

TEST(Resnet, HasTorchvisionsNamesAndShapes) {
  const std::map<std::string, Shape> basic = shapes_of(Model(models::resnet18(), {3, 64, 64}));
  EXPECT_EQ(basic.at("conv1.weight"), Shape({64, 3, 7, 7}));
  EXPECT_EQ(basic.at("bn1.running_var"), Shape({64}));
  EXPECT_EQ(basic.at("layer1.0.conv2.weight"), Shape({64, 64, 3, 3}));
  EXPECT_EQ(basic.at("layer4.0.downsample.0.weight"), Shape({512, 256, 1, 1}));
  EXPECT_EQ(basic.at("layer4.1.bn2.bias"), Shape({512}));
  EXPECT_EQ(basic.at("fc.weight"), Shape({1000, 512}));
  EXPECT_FALSE(basic.contains("layer1.0.downsample.0.weight"));
  const std::map<std::string, Shape> deep = shapes_of(Model(models::resnet50(), {3, 64, 64}));
  EXPECT_EQ(deep.at("layer1.0.downsample.0.weight"), Shape({256, 64, 1, 1}));
  EXPECT_EQ(deep.at("layer2.0.conv1.weight"), Shape({128, 256, 1, 1}));
  EXPECT_EQ(deep.at("layer2.0.conv2.weight"), Shape({128, 128, 3, 3}));
  EXPECT_EQ(deep.at("layer4.2.conv3.weight"), Shape({2048, 512, 1, 1}));
  EXPECT_EQ(deep.at("layer4.2.bn3.running_mean"), Shape({2048}));
  EXPECT_EQ(deep.at("fc.weight"), Shape({1000, 2048}));
}

TEST(Resnet, SmallFormsHaveTheirStem) {
  const std::map<std::string, Shape> small = shapes_of(Model(models::resnet34_cifar(), {3, 32, 32}));
  EXPECT_EQ(small.at("conv1.weight"), Shape({64, 3, 3, 3}));
  EXPECT_EQ(small.at("layer3.5.conv2.weight"), Shape({256, 256, 3, 3}));
  EXPECT_EQ(small.at("fc.bias"), Shape({10}));
  const std::map<std::string, Shape> nine = shapes_of(Model(models::resnet9(), {3, 32, 32}));
  EXPECT_EQ(nine.at("prep.conv1.weight"), Shape({64, 3, 3, 3}));
  EXPECT_EQ(nine.at("layer3.conv1.weight"), Shape({512, 256, 3, 3}));
  EXPECT_EQ(nine.at("layer3.residual.conv2.weight"), Shape({512, 512, 3, 3}));
  EXPECT_EQ(nine.at("fc.weight"), Shape({10, 512}));
  EXPECT_FALSE(nine.contains("layer2.residual.conv1.weight"));
}

TEST(Resnet, FeaturesJoinOtherInputs) {
  const Model model(
      [](const Vars& in) -> Vars {
        const Var image = models::resnet18_features(in["image"]);
        EXPECT_EQ(image.text(), "[N, 512]");
        return {{"steer", linear(concat({flatten(image), in["imu"]}), 1)}};
      },
      {{"image", {3, 32, 64}}, {"imu", {12}}});
  EXPECT_EQ(shapes_of(model).at("fc1.weight"), Shape({1, 524}));
}

std::vector<Form> narrow_forms() {
  return {{"resnet9", models::resnet9({.channels = 5}), 19},
          {"resnet18_cifar", models::resnet18_cifar({.channels = 6}), 9},
          {"resnet18", models::resnet18({.channels = 5, .classes = 10}), 45},
          {"resnet50", models::resnet50({.channels = 4, .classes = 10}), 37}};
}

class Trains : public testing::TestWithParam<Form> {};

TEST_P(Trains, LossFallsOnOneBatch) { expect_falling_loss(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Resnet, Trains, testing::ValuesIn(narrow_forms()),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace brisk
