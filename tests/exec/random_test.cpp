// Random values in models and objectives: which numbers a step draws, and steps that need no inputs.
#include <gtest/gtest.h>

#include <cmath>

#include "support/error_text.h"
#include "support/networks.h"

namespace brisk {
namespace {

Optimizer still() { return sgd({.learning_rate = 1e-30}); }

Var shifted(Var x) { return x + parameter("shift", {1}); }

using test::error_text;

/// The sum of what one value of the objective was, per run.
double drawn(Step& step, int64_t rows) {
  step.run(rows);
  return step.read().terms[0].sum;
}

Step noise_step(const Model& model, const std::string& name = "") {
  return Step([&](const Vars&) { return sample_mean(model(random_normal({1}, {.name = name}))); }, {}, still(),
              {.batch = 32, .threads = 2});
}

// Two steps on two models: neither changes the other's, and the generator learns from noise alone.
TEST(RandomValues, AGeneratorLearnsTheMeanOfTheData) {
  Model g([](Var z) { return linear(relu(linear(z, 16)), 2); }, {8}, {.name = "g"});
  Model d([](Var x) { return linear(relu(linear(x, 16)), 1); }, {2}, {.name = "d"});
  const Inputs real = {{"point", {2}}};
  const auto adam_gan = adam({.betas = {0.5, 0.999}, .learning_rate = 5e-3});
  Step train_d(
      [&](const Vars& in) {
        return bce_with_logits(d(in["point"]), 1.0, {.name = "real"}) +
               bce_with_logits(d(g(random_normal({8}))), 0.0, {.name = "fake"});
      },
      real, adam_gan, {.batch = 32, .update = {&d}});
  Step train_g([&](const Vars&) { return bce_with_logits(d(g(random_normal({8}))), 1.0); }, {}, adam_gan,
               {.batch = 32, .update = {&g}});
  Step measure([&](const Vars&) { return sample_mean(g(random_normal({8}, {.name = "measure"}))); }, {}, still(),
               {.batch = 1000});
  std::vector<float> points(64);
  const uint64_t of_g = test::hash_of(g);
  for (size_t i = 0; i < points.size(); ++i) points[i] = 2 + 0.1f * static_cast<float>(i % 7);
  train_d.run({{"point", view(points, {32, 2})}});
  EXPECT_EQ(test::hash_of(g), of_g);
  const uint64_t of_d = test::hash_of(d);
  train_g.run(32);
  EXPECT_EQ(test::hash_of(d), of_d);
  EXPECT_NE(test::hash_of(g), of_g);
  for (int i = 0; i < 400; ++i) {
    train_d.run({{"point", view(points, {32, 2})}});
    train_g.run(32);
  }
  measure.run(1000);
  EXPECT_NEAR(measure.read().loss, 2.3, 1);
  EXPECT_EQ(train_g.clock().updates, 401);
  EXPECT_EQ(train_g.clock().samples, 401 * 32);
}

TEST(RandomValues, RowsAreGivenOnlyToAStepWithoutInputs) {
  Model model(shifted, {1});
  Step noise = noise_step(model);
  Step plain([&](const Vars& in) { return sample_mean(model(in["x"])); }, {{"x", {1}}}, still(), {.batch = 4});
  EXPECT_EQ(error_text([&] { plain.run(4); }),
            "Error [data] Step::run: (rows) suits a step without inputs; this one takes x: run({{\"x\", view}, ...})");
  EXPECT_EQ(error_text([&] { noise.run(Feed{}); }),
            "Error [data] Step::run: a feed suits a step with inputs; this one takes no input: run(64)");
  const std::vector<float> x(4, 1.0f);
  EXPECT_NE(error_text([&] {
              noise.run(view(x, {4, 1}), view(x, {4, 1}));
            }).find("this one takes no input: run(64)"),
            std::string::npos);
  EXPECT_EQ(error_text([&] { noise.run(33); }),
            "Error [data] Step::run.rows = 33: must be from 1 to StepOptions.batch = 32");
  EXPECT_NE(error_text([&] { noise.run(int64_t{0}); }).find("Step::run.rows = 0"), std::string::npos);
  EXPECT_EQ(noise.clock().samples, 0);
}

TEST(RandomValues, EachUpdateDrawsAnewAndEachRunRepeatsIt) {
  Model model(shifted, {1}, {.seed = 3}), same(shifted, {1}, {.seed = 3}), other(shifted, {1}, {.seed = 4});
  Step a = noise_step(model), b = noise_step(same), c = noise_step(other), renamed = noise_step(model, "z");
  const double first = drawn(a, 32), second = drawn(a, 32);
  EXPECT_NE(first, second);
  EXPECT_EQ(drawn(b, 32), first);
  EXPECT_EQ(drawn(b, 32), second);
  EXPECT_NE(drawn(c, 32), first) << "another seed";
  EXPECT_NE(drawn(renamed, 32), first) << "another name";
}

TEST(RandomValues, AWindowDrawsTheSameForAnySplit) {
  Model model(shifted, {1}, {.seed = 3});
  Step whole = noise_step(model);
  const auto objective = [&](const Vars&) { return sample_mean(model(random_normal({1}))); };
  Step split(objective, {}, still(), {.accumulate = 3, .batch = 17});
  const double first = drawn(whole, 32), second = drawn(whole, 32);
  for (const double wanted : {first, second}) {
    for (const int64_t rows : {5, 17, 10}) split.run(rows);
    EXPECT_NEAR(split.read().terms[0].sum, wanted, 1e-5);
  }
}

TEST(RandomValues, EvaluationDrawsTooAndCountsItsOwnSamples) {
  Model model(shifted, {1});
  Step step([&](const Vars& in) { return sample_mean(model(in["x"] * random_uniform({1}))); }, {{"x", {1}}}, still(),
            {.batch = 32});
  const std::vector<float> x(32, 1.0f);
  const auto evaluated = [&](std::vector<int64_t> parts) {
    for (const int64_t rows : parts) step.evaluate({{"x", view(x, {32, 1}).rows(0, rows)}});
    return step.read_evaluation().terms[0].sum;
  };
  const double whole = evaluated({32});
  EXPECT_GT(whole, 8);
  EXPECT_LT(whole, 24);
  EXPECT_NEAR(evaluated({7, 25}), whole, 1e-5);
  EXPECT_GT(std::abs(evaluated({16, 16}) - 2 * evaluated({16})), 1e-3) << "later rows draw other numbers";
}

TEST(RandomValues, ASecondCallOfAModelDrawsOtherNumbers) {
  Model noisy([](Var x) { return x * 0.0 + random_normal({1}) + parameter("shift", {1}); }, {1});
  const auto difference = [](Var a, Var b) { return sample_mean((a - b) * (a - b)); };
  Step step([&](const Vars& in) { return difference(noisy(in["x"]), noisy(in["x"])); }, {{"x", {1}}}, still(),
            {.batch = 32});
  const std::vector<float> x(32, 1.0f);
  step.run({{"x", view(x, {32, 1})}});
  EXPECT_GT(step.read().loss, 0.5);
}

TEST(RandomValues, DroppedSamplesAreScaledInTrainingAndWholeInEvaluation) {
  Model model([](Var x) { return stochastic_depth(x, 0.25) + parameter("shift", {3}); }, {3});
  Step step([&](const Vars& in) { return sample_mean(model(in["x"])); }, {{"x", {3}}}, still(), {.batch = 1000});
  const std::vector<float> x(3000, 1.0f);
  const Feed feed = {{"x", view(x, {1000, 3})}};
  step.run(feed);
  EXPECT_NEAR(step.read().loss, 1, 0.08);
  step.evaluate(feed);
  EXPECT_NEAR(step.read_evaluation().terms[0].value(), 1, 1e-6);
}

}  // namespace
}  // namespace brisk
