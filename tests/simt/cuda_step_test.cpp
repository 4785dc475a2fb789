// What steps and trainers promise, on the emulated device, whose runs end later: windows, freezing, several steps on
// one model, weights, errors, evaluation. The CPU says what comes out; sums are added in another order there.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "brisk/brisk.h"
#include "support/error_text.h"
#include "support/networks.h"

namespace brisk::test {
namespace {

using Values = std::vector<double>;

void expect_near(const std::function<Values(Device)>& story, double tolerance) {
  const Values got = story(gpu(0)), want = story(cpu());
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance * (1 + std::fabs(want[i]))) << i;
}

Var network(Var x) {
  x = relu(batch_norm(conv2d(x, {.bias = false, .channels = 6, .kernel = 3, .padding = 1})));
  return linear(dropout(global_avg_pool2d(x), 0.25), 10);
}
const Shape kSample = {3, 6, 6};

void add_values(Values& story, const Model& model) {
  for (const Parameter& parameter : model.parameters()) {
    const Tensor value = model.parameter(parameter.name);
    story.insert(story.end(), value.data<float>(), value.data<float>() + value.count());
  }
}
void add_totals(Values& story, const StepTotals& totals) {
  story.insert(story.end(), {totals.loss, totals.gradient_norm, totals.learning_rate,
                             static_cast<double>(totals.samples), static_cast<double>(totals.clock.updates)});
}

TEST(CudaStep, WindowsTailsAndEvaluationsInsideThem) {
  const Rows rows = make_rows(16, kSample, 10, 5);
  expect_near(
      [&](Device device) {
        Values story;
        Model model(network, kSample);
        Step step(model, cross_entropy(), adam({.learning_rate = warmup(4_updates).then(constant(0.01))}),
                  {.accumulate = 2, .batch = 4, .clip_norm = 0.5, .device = device});
        for (int i = 0; i < 11; ++i) {
          const int64_t count = i % 4 == 3 ? 3 : 4;
          step.run(rows.inputs(i, count), rows.labels(i, count));
          step.evaluate({{"input", rows.inputs(0, 3)}, {"target", rows.labels(0, 3)}});
          if (i % 5 == 2) step.flush();
          if (i % 4 == 1) add_totals(story, step.read_evaluation());
        }
        step.flush();
        add_totals(story, step.read());
        add_values(story, model);
        return story;
      },
      2e-4);
}

TEST(CudaStep, FreezingKeepsMomentsAndCounts) {
  const Rows rows = make_rows(4, kSample, 10, 5);
  expect_near(
      [&](Device device) {
        Values story;
        Model model(network, kSample);
        Step step(model, cross_entropy(), adam({.learning_rate = 0.01}), {.batch = 4, .device = device});
        const auto updates = [&](int count) {
          for (int i = 0; i < count; ++i) step.run(rows.inputs(0, 4), rows.labels(0, 4));
        };
        model.freeze({"conv*"});
        updates(3);
        model.unfreeze({"conv*"});
        updates(3);
        model.freeze({"fc1.*"});
        updates(2);
        add_totals(story, step.read());
        add_values(story, model);
        return story;
      },
      2e-4);
}

TEST(CudaStep, GradientsAndPartsOfARun) {
  const Rows rows = make_rows(8, kSample, 10, 5);
  expect_near(
      [&](Device device) {
        Values story;
        Model model(network, kSample);
        Step step(model, cross_entropy(), sgd({.learning_rate = 0.1, .momentum = 0.9}),
                  {.accumulate = 2, .batch = 4, .device = device});
        for (int i = 0; i < 3; ++i) {
          step.forward_backward(rows.inputs(0, 4), rows.labels(0, 4));
          step.forward_backward(rows.inputs(4, 4), rows.labels(4, 4));
          const Tensor gradient = step.gradient("conv1.weight");
          story.insert(story.end(), gradient.data<float>(), gradient.data<float>() + gradient.count());
          step.set_gradient("fc1.bias", Tensor(std::vector<float>(10, 0.5f), {10}));
          step.update();
        }
        add_values(story, model);
        return story;
      },
      2e-4);
}

TEST(CudaStep, TwoStepsShareTheirModels) {
  const Rows noise = make_rows(8, {4}, 2, 9), real = make_rows(8, {2}, 2, 8);
  expect_near(
      [&](Device device) {
        Values story;
        Model maker([](Var z) { return linear(relu(linear(z, 8)), 2); }, {4}, {.name = "maker"});
        Model judge([](Var x) { return linear(relu(linear(x, 8)), 1); }, {2}, {.name = "judge"});
        const auto is = [](Var out, float wanted, const char* name) {
          return mse(out, 0.0f * out + wanted, {.name = name});
        };
        Step judging(
            [&](const Vars& in) { return is(judge(in["x"]), 1, "real") + is(judge(maker(in["z"])), 0, "made"); },
            {{"x", {2}}, {"z", {4}}}, adam({.learning_rate = 0.01}),
            {.batch = 8, .device = device, .update = {&judge}});
        Step making([&](const Vars& in) { return is(judge(maker(in["z"])), 1, "made"); }, {{"z", {4}}},
                    adam({.learning_rate = 0.01}), {.batch = 8, .device = device, .update = {&maker}});
        for (int i = 0; i < 8; ++i) {
          judging.run({{"x", real.inputs(0, 8)}, {"z", noise.inputs(0, 8)}});
          making.run({{"z", noise.inputs(0, 8)}});
        }
        add_totals(story, judging.read());
        add_totals(story, making.read());
        add_values(story, maker);
        add_values(story, judge);
        return story;
      },
      2e-4);
}

TEST(CudaStep, WeightsAreReadWrittenSavedAndCopiedBetweenRuns) {
  const Rows rows = make_rows(4, kSample, 10, 5);
  const std::string path = testing::TempDir() + "cuda_step." + std::to_string(getpid()) + ".safetensors";
  expect_near(
      [&](Device device) {
        Values story;
        Model model(network, kSample), slow = model.clone("slow");
        Step step(model, cross_entropy(), sgd({.learning_rate = 0.1, .momentum = 0.9}), {.batch = 4, .device = device});
        Step other(model, cross_entropy(), sgd({.learning_rate = 0.05}), {.batch = 4, .threads = 1});
        const auto run = [&](Step& which, int times) {
          for (int i = 0; i < times; ++i) which.run(rows.inputs(0, 4), rows.labels(0, 4));
        };
        run(step, 3);
        save_weights(model, path);
        run(step, 2);
        slow.copy_weights_from(model, {.blend = 0.25});
        add_values(story, slow);
        load_weights(model, path);
        run(step, 1);
        run(other, 1);  // on the CPU
        run(step, 2);
        model.set_parameter("fc1.bias", Tensor(std::vector<float>(10, 0.5f), {10}));
        run(step, 2);
        add_values(story, model);
        return story;
      },
      2e-4);
  std::filesystem::remove(path);
}

// With weights of 0 the loss is ln(10): not so while matrices read what they were before.
TEST(CudaStep, ShadowsFollowWhoeverChangesAParameter) {
  const Rows rows = make_rows(4, kSample, 10, 5);
  const Feed evaluation = {{"input", rows.inputs(0, 4)}, {"target", rows.labels(0, 4)}};
  for (const Precision precision : {Precision::bf16, Precision::fp16}) {
    Model model(network, kSample);
    Step step(model, cross_entropy(), sgd({.learning_rate = 0.5}),
              {.batch = 4, .device = gpu(0), .precision = precision});
    EXPECT_GT(step.plan().bytes().shadows, 0);
    for (int i = 0; i < 3; ++i) step.run(rows.inputs(0, 4), rows.labels(0, 4));
    step.evaluate(evaluation);
    EXPECT_GT(std::fabs(step.read_evaluation().loss - std::log(10.0)), 1e-3);
    model.set_parameter("fc1.weight", Tensor(model.parameter("fc1.weight").shape()));
    model.set_parameter("fc1.bias", Tensor(Shape{10}));
    step.evaluate(evaluation);
    EXPECT_NEAR(step.read_evaluation().loss, std::log(10.0), 1e-5) << name(precision);
    Step other(model, cross_entropy(), sgd({.learning_rate = 0.5}), {.batch = 4, .device = gpu(0)});
    for (int i = 0; i < 3; ++i) other.run(rows.inputs(0, 4), rows.labels(0, 4));
    other.evaluate(evaluation);
    step.evaluate(evaluation);
    EXPECT_NEAR(step.read_evaluation().loss, other.read_evaluation().loss, 5e-3) << name(precision);
  }
}

/// Runs until the error comes, at most two runs late.
std::string raised(const std::function<void()>& bad, const std::function<void()>& good) {
  std::string text = error_text(bad);
  for (int late = 0; late < 2 && text.rfind("Error", 0) != 0; ++late) text = error_text(good);
  return text;
}

TEST(CudaStep, ABadLabelAndABadGradientHoldTheirUpdateBackAndNoOther) {
  const Rows rows = make_rows(4, kSample, 10, 5);
  std::vector<int64_t> labels(rows.label);
  labels[2] = 10;
  std::vector<float> input(rows.input);
  input[5] = NAN;
  Model model([](Var x) { return linear(flatten(x), 10); }, kSample), wanted = model.clone();
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 4, .device = gpu(0)});
  Step reference(wanted, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 4, .threads = 1});
  const auto good = [&] { step.run(rows.inputs(0, 4), rows.labels(0, 4)); };
  for (int i = 0; i < 3; ++i) good();
  std::string text = raised([&] { step.run(rows.inputs(0, 4), view(labels, {4})); }, good);
  EXPECT_NE(text.find("row 2 of the micro-batch before the last 2 has label 10, allowed 0..9"), std::string::npos)
      << text;
  text = raised([&] { step.run(view(input, {4, 3, 6, 6}), rows.labels(0, 4)); }, good);
  EXPECT_NE(text.find("Error [numeric] fc1.weight: its gradient is not finite at update 5 (learning rate 0.1)"),
            std::string::npos)
      << text;
  good();
  EXPECT_EQ(step.read().clock.updates, 8);
  for (int i = 0; i < 8; ++i) reference.run(rows.inputs(0, 4), rows.labels(0, 4));
  Values got, want;
  add_values(got, model);
  add_values(want, wanted);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5);
}

InMemoryDataset images(int64_t count, uint64_t seed) {
  const Rows rows = make_rows(count, kSample, 10, seed);
  InMemoryDataset out;
  out.add("input", Tensor(rows.inputs(0, count)));
  out.add("target", Tensor(rows.labels(0, count)));
  return out;
}

TEST(CudaStep, ATrainerFollowsTheCpu) {
  expect_near(
      [](Device device) {
        Values story;
        Model model(network, kSample);
        Trainer trainer(model, cross_entropy(), sgd({.learning_rate = cosine(0.05), .momentum = 0.9}),
                        {.batch = 4, .device = device});
        trainer.add_metric("accuracy", accuracy());
        trainer.on_update([&](const UpdateReport& report, Control&) {
          story.insert(story.end(), {report.loss, report.learning_rate, static_cast<double>(report.clock.updates),
                                     static_cast<double>(report.clock.samples), report.clock.epochs});
        });
        FitOptions options;
        options.duration = 3_epochs;
        options.progress = false;
        const FitResult result = trainer.fit(images(14, 1), images(5, 2), options);
        story.insert(story.end(), {result.train.loss, result.evaluation.loss, result.best.loss});
        const Tensor out = trainer.predict(images(5, 2));
        story.insert(story.end(), out.data<float>(), out.data<float>() + out.count());
        return story;
      },
      5e-4);
}

}  // namespace
}  // namespace brisk::test
