// From a folder of files to a trained model: bytes reach the plan as the decoder wrote them.
#include <gtest/gtest.h>

#include "brisk/images.h"
#include "brisk/ops/conv.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/norm.h"
#include "brisk/ops/pool.h"
#include "brisk/ops/shape.h"
#include "brisk/trainer.h"
#include "data/files.h"
#include "encode.h"

namespace brisk {
namespace {

TEST(ImageTraining, ClassesOfColourAreLearntFromBytes) {
  const test::TemporaryFolder folder;
  for (int i = 0; i < 30; ++i) {
    test::Picture picture = test::picture(30 + i, 40, i);
    const size_t strong = static_cast<size_t>(i % 3);
    for (size_t k = 0; k < picture.rgb.size(); ++k) picture.rgb[k] = k % 3 == strong ? 220 : picture.rgb[k] / 4;
    const char* const classes[] = {"red", "green", "blue"};
    folder.put(std::string(classes[strong]) + "/" + std::to_string(i) + ".jpg", test::encode_jpeg(picture));
  }
  const ImageFolder training = data::image_folder(folder.path(), {.form = ImageForm::random_resized_crop, .size = 16});
  const ImageFolder evaluation = training.with({.size = 16});
  std::vector<double> losses;
  for (const int64_t workers : {0, 3}) {
    Model model(
        [](Var x) {
          x = normalize(to_channels_first(x), {.deviation = {0.229, 0.224, 0.225}, .mean = {0.485, 0.456, 0.406}});
          return linear(global_avg_pool2d(conv2d(x, {.channels = 4, .kernel = 3})), 3);
        },
        Inputs{{"input", {16, 16, 3}, DType::u8}});
    Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.1, .momentum = 0.9}), {.batch = 10});
    trainer.add_metric("accuracy", accuracy());
    FitOptions options;
    options.duration = 10_epochs;
    options.progress = false;
    options.workers = workers;
    const FitResult result = trainer.fit(training, evaluation, options);
    EXPECT_EQ(result.evaluation.metric("accuracy"), 1);
    losses.push_back(result.evaluation.loss);
  }
  EXPECT_EQ(losses[0], losses[1]);
}

}  // namespace
}  // namespace brisk
