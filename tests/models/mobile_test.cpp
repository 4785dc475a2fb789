// MobileNetV2 and EfficientNet: torchvision's names, shapes and sizes; that each trains.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "brisk/brisk.h"
#include "brisk/models.h"
#include "models/trains.h"

namespace brisk {
namespace {

TEST(Mobile, HasTorchvisionsParameters) {
  const std::vector<Published> all = {{"mobilenet_v2", models::mobilenet_v2(), 3'504'872, 262},
                                      {"efficientnet_b0", models::efficientnet_b0(), 5'288'548, 311},
                                      {"efficientnet_b1", models::efficientnet_b1(), 7'794'184, 439},
                                      {"efficientnet_b2", models::efficientnet_b2(), 9'109'994, 439},
                                      {"efficientnet_b3", models::efficientnet_b3(), 12'233'232, 496},
                                      {"efficientnet_b4", models::efficientnet_b4(), 19'341'616, 610}};
  for (const Published& row : all) expect_sizes(row);
}

TEST(Mobile, MobilenetHasTorchvisionsNames) {
  const std::map<std::string, Shape> shapes = shapes_of(Model(models::mobilenet_v2(), {3, 64, 64}));
  EXPECT_EQ(shapes.at("features.0.0.weight"), Shape({32, 3, 3, 3}));
  EXPECT_EQ(shapes.at("features.0.1.running_var"), Shape({32}));
  EXPECT_EQ(shapes.at("features.1.conv.0.0.weight"), Shape({32, 1, 3, 3}));
  EXPECT_EQ(shapes.at("features.1.conv.1.weight"), Shape({16, 32, 1, 1}));
  EXPECT_EQ(shapes.at("features.1.conv.2.bias"), Shape({16}));
  EXPECT_EQ(shapes.at("features.17.conv.1.0.weight"), Shape({960, 1, 3, 3}));
  EXPECT_EQ(shapes.at("features.17.conv.3.running_mean"), Shape({320}));
  EXPECT_EQ(shapes.at("features.18.0.weight"), Shape({1280, 320, 1, 1}));
  EXPECT_EQ(shapes.at("classifier.1.weight"), Shape({1000, 1280}));
}

TEST(Mobile, EfficientnetHasTorchvisionsNames) {
  const std::map<std::string, Shape> shapes = shapes_of(Model(models::efficientnet_b0(), {3, 64, 64}));
  EXPECT_EQ(shapes.at("features.0.0.weight"), Shape({32, 3, 3, 3}));
  EXPECT_EQ(shapes.at("features.1.0.block.0.0.weight"), Shape({32, 1, 3, 3}));
  EXPECT_EQ(shapes.at("features.1.0.block.1.fc1.weight"), Shape({8, 32, 1, 1}));
  EXPECT_EQ(shapes.at("features.1.0.block.1.fc2.bias"), Shape({32}));
  EXPECT_EQ(shapes.at("features.2.0.block.3.0.weight"), Shape({24, 96, 1, 1}));
  EXPECT_EQ(shapes.at("features.6.3.block.1.0.weight"), Shape({1152, 1, 5, 5}));
  EXPECT_EQ(shapes.at("features.8.1.running_mean"), Shape({1280}));
  EXPECT_EQ(shapes.at("classifier.1.weight"), Shape({1000, 1280}));
}

TEST(Mobile, WidthsAreMultiplesOfEight) {
  const std::map<std::string, Shape> shapes =
      shapes_of(Model(models::mobilenet_v2({.classes = 5, .width = 0.3}), {3, 32, 32}));
  EXPECT_EQ(shapes.at("features.0.0.weight"), Shape({16, 3, 3, 3})) << "9.6 less a tenth is more than 8";
  EXPECT_EQ(shapes.at("features.2.conv.2.weight"), Shape({8, 48, 1, 1}));
  EXPECT_EQ(shapes.at("classifier.1.weight"), Shape({5, 1280})) << "the last width is never less";
  EXPECT_THROW(models::mobilenet_v2({.width = 0}), Error);
  EXPECT_THROW(models::efficientnet_b0({.width = -1}), Error);
}

class MobileTrains : public testing::TestWithParam<Form> {};

TEST_P(MobileTrains, LossFallsOnOneBatch) { expect_falling_loss(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Mobile, MobileTrains,
    testing::Values(Form{"mobilenet_v2", models::mobilenet_v2({.classes = 10, .dropout = 0, .width = 0.25}), 64},
                    Form{"efficientnet_b0", models::efficientnet_b0({.classes = 10, .dropout = 0, .width = 0.25}), 64}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace brisk
