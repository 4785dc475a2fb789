// fit() on a device that runs ahead: the run of the CPU bit for bit, with lines and callbacks in the same order.
#include <gtest/gtest.h>

#include <functional>

#include "brisk/brisk.h"
#include "support/late_device.h"
#include "support/networks.h"
#include "train_support.h"

namespace brisk {
namespace {

using test::LateDevice;

/// What a program sees of a run.
struct Story {
  std::vector<double> values;
  std::string text;
  void add(const Clock& clock) {
    values.insert(values.end(), {clock.epochs, static_cast<double>(clock.samples), static_cast<double>(clock.updates)});
  }
  bool operator==(const Story& other) const = default;
};

void PrintTo(const Story& story, std::ostream* out) { *out << story.text << testing::PrintToString(story.values); }

void expect_the_same(const std::function<Story(Device)>& run) {
  const Story expected = run(cpu());
  for (const uint64_t seed : {1, 2, 3}) {
    const LateDevice device(seed);
    EXPECT_EQ(run(gpu(0)), expected) << "seed " << seed;
    EXPECT_GT(device.late_runs(), 0);
    EXPECT_EQ(device.held_bytes(), 0);
  }
}

InMemoryDataset images(int64_t count, uint64_t seed) {
  const test::Rows rows = test::make_rows(count, {3, 8, 8}, 10, seed);
  InMemoryDataset out;
  out.add("input", Tensor(rows.inputs(0, count)));
  out.add("target", Tensor(rows.labels(0, count)));
  out.set_name("images");
  return out;
}

void train(Story& story, const StepOptions& step, FitOptions options) {
  Model model(test::residual_net, {3, 8, 8});
  Trainer trainer(model, cross_entropy(), sgd({.learning_rate = cosine(0.05), .momentum = 0.9}), step);
  trainer.add_metric("accuracy", accuracy());
  const auto listen = [&](const char* name) {
    return [&story, name](const UpdateReport& report, Control&) {
      story.text += name;
      story.add(report.clock);
      story.values.insert(story.values.end(), {report.loss, report.gradient_norm, report.learning_rate,
                                               static_cast<double>(report.samples), report.metrics[0].value()});
    };
  };
  trainer.on_update(listen("a"));
  trainer.on_update(listen("b"), {.every = 3_updates});
  trainer.on_evaluation([&](const EvaluationReport& report, Control&) {
    story.text += report.is_best ? "E" : "e";
    story.add(report.clock);
    story.values.push_back(report.loss);
    story.values.push_back(static_cast<double>(test::hash_of(model) >> 12));
  });
  const TemporaryFolder folder;
  options.progress = false;
  options.run_folder = folder.path();
  const FitResult result = trainer.fit(images(50, 1), images(11, 2), options);
  for (const auto& event : read_events(folder.path() + "/events.jsonl")) {
    story.text += " " + event["type"].get<std::string>() + std::to_string(event["updates"].get<int64_t>());
    if (event.contains("loss")) story.values.push_back(event["loss"].get<double>());
  }
  story.text += name(result.reason);
  story.add(result.clock);
  story.values.insert(story.values.end(), {result.train.loss, result.evaluation.loss, result.best.loss});
  story.values.push_back(static_cast<double>(test::hash_of(model) >> 12));
}

TEST(LateDevice, ARunIsThatOfTheCpu) {
  expect_the_same([](Device device) {
    Story story;
    train(story, {.batch = 8, .device = device, .threads = 1}, {.duration = 3_epochs, .log_every = 4_updates});
    return story;
  });
}

TEST(LateDevice, WindowsAndEvaluationsInTheMiddleOfAnEpoch) {
  expect_the_same([](Device device) {
    Story story;
    train(story, {.accumulate = 3, .batch = 4, .device = device, .threads = 1},
          {.duration = 12_updates, .evaluate_every = 2_updates, .log_every = 3_updates, .workers = 2});
    return story;
  });
}

TEST(LateDevice, StoppingEarlyRestoresTheBest) {
  expect_the_same([](Device device) {
    Story story;
    train(story, {.batch = 8, .device = device, .threads = 1},
          {.duration = 40_epochs, .early_stop = {.monitor = lowest("loss"), .patience = 2, .restore_best = true}});
    return story;
  });
}

TEST(LateDevice, CallbacksMayEvaluateAndSetParameters) {
  expect_the_same([](Device device) {
    Story story;
    Model model = weight_model();
    Trainer trainer(model, half_square, sgd({.learning_rate = 0.1}),
                    {.accumulate = 2, .batch = 2, .device = device, .threads = 1});
    trainer.on_update([&](const UpdateReport& report, Control&) {
      story.add(report.clock);
      story.values.push_back(report.loss);
      model.set_parameter("fc1.weight", model.parameter("fc1.weight"));
      EXPECT_EQ(trainer.evaluate(counting(5)).samples, 5);
    });
    trainer.fit(counting(7), quiet(5_epochs));
    story.values.push_back(weight(model));
    return story;
  });
}

TEST(LateDevice, AStopThatACallbackAsksForComesAtMostTwoUpdatesLate) {
  const LateDevice device(2);
  Model model = weight_model();
  Trainer trainer(model, half_square, sgd({.learning_rate = 0.1}), {.batch = 1, .device = gpu(0)});
  trainer.on_update([&](const UpdateReport& report, Control& control) {
    if (report.clock.updates == 5) control.stop("enough");
  });
  const FitResult result = trainer.fit(counting(100), quiet(1_epochs));
  EXPECT_EQ(result.reason, StopReason::requested);
  EXPECT_EQ(result.message, "enough");
  EXPECT_EQ(result.clock.updates, 7);
}

TEST(LateDevice, ABadLabelIsNamedByItsSample) {
  for (const bool shuffle : {false, true}) {
    const LateDevice device(4);
    InMemoryDataset data = images(48, 3);
    const test::Rows rows = test::make_rows(48, {3, 8, 8}, 10, 3);
    std::vector<int64_t> labels = rows.label;
    labels[17] = 10;
    InMemoryDataset bad;
    bad.add("input", Tensor(rows.inputs(0, 48)));
    bad.add("target", Tensor(std::move(labels), {48}));
    bad.set_name("train");
    Model model(test::residual_net, {3, 8, 8});
    Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 4, .device = gpu(0)});
    FitOptions options = quiet(1_epochs);
    options.shuffle = shuffle;
    const std::string text = error_text([&] { trainer.fit(bad, options); });
    EXPECT_NE(text.find("sample 17 of \"train\" has label 10"), std::string::npos) << text;
    EXPECT_EQ(trainer.fit(data, quiet(3_epochs)).reason, StopReason::finished) << "the trainer can be used on";
  }
}

TEST(LateDevice, DivergenceEndsTheRun) {
  const LateDevice device(5);
  Model model = weight_model();
  Trainer trainer(model, half_square, sgd({.learning_rate = 1e30}), {.batch = 1, .device = gpu(0)});
  const FitResult result = trainer.fit(counting(50), quiet(1_epochs));
  EXPECT_EQ(result.reason, StopReason::diverged);
  EXPECT_NE(result.message.find("fc1.weight"), std::string::npos) << result.message;
  EXPECT_LT(result.clock.updates, 6);
}

TEST(LateDevice, ATrainerPredictsWithWhatTheDeviceHasTrained) {
  expect_the_same([](Device device) {
    Story story;
    Model model(test::residual_net, {3, 8, 8});
    Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.05}), {.batch = 8, .device = device, .threads = 1});
    trainer.fit(images(30, 1), quiet(1_epochs));
    const Tensor out = trainer.predict(images(9, 2));
    story.values.assign(out.data<float>(), out.data<float>() + out.count());
    return story;
  });
}

}  // namespace
}  // namespace brisk
