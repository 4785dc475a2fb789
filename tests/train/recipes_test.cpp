// Training in 16 bits is as good as in f32.
#include <gtest/gtest.h>

#include "support/networks.h"

namespace brisk {
namespace {

TEST(Recipes, LeNetLearnsDigitsInAllOfThem) {
  const InMemoryDataset train = data::drawn_digits(960), held_out = data::drawn_digits(200, 1);
  const auto accuracy_in = [&](Precision precision) {
    Model model(test::lenet, {1, 28, 28});
    Trainer trainer(model, cross_entropy(), adamw({.learning_rate = 2e-3}), {.batch = 32, .precision = precision});
    trainer.add_metric("accuracy",
                       [](const Vars& out, const Vars& target) { return accuracy(out["output"], target["target"]); });
    const FitResult result = trainer.fit(train, held_out, {.duration = 6_epochs, .progress = false});
    EXPECT_EQ(result.reason, StopReason::finished) << result.text();
    return result.evaluation.metric("accuracy");
  };
  const double f32 = accuracy_in(Precision::f32);
  EXPECT_GT(f32, 0.8);
  EXPECT_NEAR(accuracy_in(Precision::bf16), f32, 0.05);
  EXPECT_NEAR(accuracy_in(Precision::fp16), f32, 0.05);
}

}  // namespace
}  // namespace brisk
