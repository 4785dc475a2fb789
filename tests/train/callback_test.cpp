// Callbacks, what they may ask for, metrics on the host, and all that ends a run before its duration does.
#include "brisk/callback.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <thread>

#include "brisk/log.h"
#include "train_support.h"

namespace brisk {
namespace {

FitOptions in_order(Duration duration) {
  FitOptions options = quiet(duration);
  options.shuffle = false;
  return options;
}

Trainer still_trainer(Model& model, int64_t batch = 2) {
  return Trainer(model, half_square, sgd({.learning_rate = 0}), {.batch = batch});
}

// ---- on_update

TEST(Callback, ReportsAreMeansSinceTheLastOne) {
  Model model = weight_model();
  Trainer trainer = still_trainer(model);
  std::vector<UpdateReport> twos;
  std::vector<double> ones;
  trainer.on_update([&](const UpdateReport& report, Control&) { twos.push_back(report); }, {.every = 2_updates});
  trainer.on_update([&](const UpdateReport& report, Control&) { ones.push_back(report.loss); });
  const FitResult result = trainer.fit(counting(7), in_order(1_epochs));
  ASSERT_EQ(twos.size(), 2U);
  EXPECT_NEAR(twos[0].loss, 0.5 * (1 + 4 + 9 + 16) / 4, 1e-5);
  EXPECT_EQ(twos[0].samples, 4);
  EXPECT_EQ(twos[0].clock.updates, 2);
  EXPECT_NEAR(twos[1].loss, 0.5 * (25 + 36 + 49) / 3, 1e-5);
  EXPECT_EQ(twos[1].samples, 3);
  EXPECT_EQ(twos[1].clock.epochs, 1);
  ASSERT_EQ(ones.size(), 4U);
  EXPECT_NEAR(ones[1], 0.5 * (9 + 16) / 2, 1e-5);
  EXPECT_NEAR(result.train.loss, 0.5 * 140 / 7, 1e-5);
}

TEST(Callback, OnceAWindowInOrderInTheCallersThread) {
  Model model = weight_model();
  Trainer trainer(model, half_square, sgd({.learning_rate = 0.1}), {.accumulate = 3, .batch = 2});
  std::string calls;
  const std::thread::id thread = std::this_thread::get_id();
  trainer.on_update([&](const UpdateReport& report, Control&) {
    EXPECT_EQ(std::this_thread::get_id(), thread);
    calls += "a" + std::to_string(report.clock.updates);
  });
  trainer.on_update([&](const UpdateReport&, Control&) { calls += "b "; }, {.every = 6_samples});
  trainer.on_evaluation([&](const EvaluationReport& report, Control&) {
    EXPECT_EQ(std::this_thread::get_id(), thread);
    calls += "e" + std::to_string(report.clock.updates) + " ";
  });
  trainer.fit(counting(13), counting(3), in_order(2_epochs));  // windows of 6, 6, 1
  EXPECT_EQ(calls, "a1b a2b a3e3 a4b a5b a6e6 ");
  trainer.fit(counting(13), in_order(3_epochs));
  EXPECT_EQ(calls, "a1b a2b a3e3 a4b a5b a6e6 a7b a8b a9");
}

TEST(Callback, MayReadSetAndEvaluateWithoutAChangeToTheRun) {
  const auto run = [](bool calls) {
    Model model = weight_model();
    Trainer trainer(model, half_square, sgd({.learning_rate = 0.1}), {.accumulate = 2, .batch = 2});
    if (calls)
      trainer.on_update([&](const UpdateReport&, Control&) {
        model.set_parameter("fc1.weight", model.parameter("fc1.weight"));
        EXPECT_EQ(trainer.evaluate(counting(5)).samples, 5);
      });
    trainer.fit(counting(7), quiet(5_epochs));
    return weight(model);
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(Callback, StopsWithItsMessage) {
  Model model = weight_model();
  Trainer trainer = still_trainer(model);
  trainer.on_update([&](const UpdateReport& report, Control& control) {
    if (report.clock.updates < 3) return;
    control.stop("battery");
    control.stop("a later one");
  });
  const FitResult result = trainer.fit(counting(7), counting(7), quiet(9_epochs));
  EXPECT_EQ(result.reason, StopReason::requested);
  EXPECT_EQ(result.message, "battery");
  EXPECT_EQ(result.clock.updates, 3);
  EXPECT_EQ(result.evaluation.samples, 7);  // the last evaluation is made
  EXPECT_EQ(result.exit_code(), 0);
  EXPECT_EQ(result.text().find("requested: "), 0U) << result.text();
}

TEST(Callback, EvaluatesWhenAsked) {
  Model model = weight_model();
  Trainer trainer = still_trainer(model);
  trainer.on_update([](const UpdateReport& report, Control& control) {
    if (report.clock.updates == 2) control.evaluate();
  });
  std::vector<int64_t> at;
  trainer.on_evaluation([&](const EvaluationReport& report, Control& control) {
    at.push_back(report.clock.updates);
    if (report.clock.updates == 2) control.evaluate();  // once more after the next update
    EXPECT_NEAR(report.metric("loss"), 0.5 * 140 / 7, 1e-5);
  });
  trainer.fit(counting(8), counting(7), quiet(2_epochs));
  EXPECT_EQ(at, (std::vector<int64_t>{2, 3, 4, 8}));
  EXPECT_NE(error_text([&] { still_trainer(model).fit(counting(8), quiet(1_epochs)); }).find("nothing"),
            std::string::npos);
  Trainer alone = still_trainer(model);
  alone.on_update([](const UpdateReport&, Control& control) { control.evaluate(); });
  EXPECT_NE(error_text([&] { alone.fit(counting(8), quiet(1_epochs)); }).find("has no validation data set"),
            std::string::npos);
}

TEST(Callback, WhatItThrowsLeavesFitAsItIs) {
  Model model = weight_model();
  Trainer trainer(model, half_square, sgd({.learning_rate = 0.1}), {.accumulate = 2, .batch = 2});
  bool throws = true;
  trainer.on_update([&](const UpdateReport&, Control&) {
    if (throws) throw Error(ErrorCode::numeric, "mine", "thrown by the program");
  });
  trainer.on_evaluation([&](const EvaluationReport&, Control&) {
    if (!throws) throw std::runtime_error("also mine");
  });
  EXPECT_EQ(error_text([&] { trainer.fit(counting(8), counting(3), quiet(1_epochs)); }),
            "Error [numeric] mine: thrown by the program");
  EXPECT_EQ(trainer.clock().updates, 1);
  throws = false;
  EXPECT_THROW(trainer.fit(counting(8), counting(3), quiet(1_epochs)), std::runtime_error);
  EXPECT_EQ(trainer.clock().updates, 2);
  EXPECT_EQ(trainer.fit(counting(8), quiet(4_epochs)).reason, StopReason::finished);
  EXPECT_EQ(trainer.clock().updates, 8);
}

TEST(Callback, WrongUseIsRefused) {
  Model model = weight_model();
  Trainer trainer = still_trainer(model);
  EXPECT_NE(error_text([&] { trainer.on_update({}); }).find("the function is empty"), std::string::npos);
  EXPECT_NE(error_text([&] { trainer.on_evaluation({}); }).find("the function is empty"), std::string::npos);
  const auto nothing = [](const UpdateReport&, Control&) {};
  for (const Duration& every : {0_updates, Duration(NAN, Duration::Unit::updates), Duration()})
    EXPECT_NE(error_text([&] { trainer.on_update(nothing, {.every = every}); }).find("UpdateCallbackOptions.every = "),
              std::string::npos);
  trainer.on_update([&](const UpdateReport&, Control&) { trainer.fit(counting(2), quiet(9_epochs)); });
  EXPECT_NE(error_text([&] { trainer.fit(counting(8), quiet(1_epochs)); }).find("Trainer::fit: is running already"),
            std::string::npos);
}

// ---- metrics on the host

TEST(HostMetric, SeesAllRowsOnceInOrder) {
  Model model = weight_model();
  model.set_parameter("fc1.weight", Tensor(std::vector<float>{2}, {1, 1}));
  Trainer trainer = still_trainer(model);
  int calls = 0;
  trainer.add_host_metric("largest", [&](ConstView out, ConstView target) -> double {
    ++calls;
    EXPECT_EQ(out.shape(), (Shape{7, 1}));
    EXPECT_EQ(target.shape(), (Shape{7, 1}));
    double largest = 0;
    for (int64_t i = 0; i < 7; ++i) {
      EXPECT_EQ(out.data<float>()[i], 2);
      EXPECT_EQ(target.data<float>()[i], static_cast<float>(i + 1));
      largest = std::max<double>(largest, target.data<float>()[i] - out.data<float>()[i]);
    }
    return largest;
  });
  trainer.add_metric("mean", [](Var out, Var target) { return sample_mean(target - out); });
  const EvaluationResult found = trainer.evaluate(counting(7));
  EXPECT_EQ(found.metric("largest"), 5);
  EXPECT_NEAR(found.metric("mean"), 2, 1e-6);
  EXPECT_EQ(found.metric("loss.loss"), found.terms[0].value());
  EXPECT_EQ(calls, 1);
  const FitResult result = trainer.fit(counting(7), counting(7), quiet(2_epochs));
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(result.evaluation.metric("largest"), 5);
  EXPECT_EQ(result.train.metrics.size(), 1U);  // not in training
  EXPECT_NE(error_text([&] { found.metric("larges"); }).find("did you mean largest?"), std::string::npos);
}

TEST(HostMetric, SeveralOutputsByName) {
  Model model(
      [](const Vars& in) -> Vars {
        return {{"twice", in["x"] + in["x"]}, {"wide", linear(in["x"], 3, {.bias = false})}};
      },
      {{"x", {2}}});
  InMemoryDataset data;
  data.add("x", Tensor(std::vector<float>{1, 2, 3, 4, 5, 6}, {3, 2}));
  data.add("y", Tensor(std::vector<float>(9, 1), {3, 3}));
  data.add("other", Tensor(std::vector<int64_t>{7, 8, 9}, {3}));
  Trainer trainer(model,
                  [](const Vars& out, const Vars& target) {
                    return mse(out["wide"], target["y"]) + 0 * sample_mean(out["twice"], {.name = "twice"});
                  },
                  sgd({.learning_rate = 0.1}), {.batch = 2});
  trainer.add_host_metric("sum", [](const Feed& out, const Feed& target) {
    EXPECT_EQ(out["wide"].shape(), (Shape{3, 3}));
    EXPECT_EQ(target["other"].data<int64_t>()[2], 9);
    double sum = 0;
    for (int64_t i = 0; i < 6; ++i) sum += out["twice"].data<float>()[i];
    return sum;
  });
  EXPECT_EQ(trainer.evaluate(data).metric("sum"), 42);
  EXPECT_NE(error_text([&] { Feed()["x"]; }).find("no value \"x\"; it has none"), std::string::npos);
}

TEST(HostMetric, WhatItThrowsIsNoDivergence) {
  Model model = weight_model();
  Trainer trainer = still_trainer(model);
  trainer.add_host_metric("mine",
                          [](ConstView, ConstView) -> double { throw Error(ErrorCode::numeric, "mine", "no"); });
  EXPECT_EQ(error_text([&] { trainer.fit(counting(4), counting(4), quiet(1_epochs)); }), "Error [numeric] mine: no");
  EXPECT_NE(error_text([&] {
              trainer.add_host_metric("late", [](ConstView, ConstView) { return 0.0; });
            }).find("before the first"),
            std::string::npos);
}

// ---- early stopping

/// A trainer whose evaluations' metric "v" takes the values given, one an epoch.
struct Scripted {
  explicit Scripted(std::vector<double> values) {
    trainer.add_host_metric("v", [values = std::move(values), next = size_t{0}](ConstView, ConstView) mutable {
      return values[std::min(next++, values.size() - 1)];
    });
  }
  FitResult fit(const EarlyStop& stop, Duration duration = 20_epochs) {
    FitOptions options = quiet(duration);
    options.early_stop = stop;
    return trainer.fit(counting(4), counting(4), options);
  }
  Model model = weight_model();
  Trainer trainer{model, half_square, sgd({.learning_rate = 0.1}), {.batch = 4}};
};

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(EarlyStop, AfterPatienceEvaluationsInARow) {
  Scripted run({0.5, 0.7, 0.6, 0.8, 0.8, kNan, 0.7});
  std::vector<bool> best;
  run.trainer.on_evaluation([&](const EvaluationReport& report, Control&) { best.push_back(report.is_best); });
  const FitResult result = run.fit({.monitor = highest("v"), .patience = 3});
  EXPECT_EQ(result.reason, StopReason::early_stop);
  EXPECT_EQ(result.clock.epochs, 7);
  EXPECT_EQ(result.message, "v 0.8 not beaten for 3 evaluations");
  EXPECT_EQ(result.best.metric("v"), 0.8);
  EXPECT_EQ(result.best.clock.epochs, 4);
  EXPECT_EQ(result.evaluation.metric("v"), 0.7);
  EXPECT_EQ(best, (std::vector<bool>{true, true, false, true, false, false, false}));
}

TEST(EarlyStop, LowestWithMinimumDeltaAndWarmup) {
  EXPECT_EQ(Scripted({5, 4.9, 4.8, 4.4}).fit({.min_delta = 0.5, .monitor = lowest("v"), .patience = 3}).clock.epochs,
            7);
  EXPECT_EQ(Scripted({1, 1, 9, 8, 8}).fit({.monitor = lowest("v"), .patience = 1, .warmup = 2}).clock.epochs, 5);
  EXPECT_EQ(Scripted({kNan, kNan}).fit({.monitor = lowest("v"), .patience = 2}).best.samples, 0);
}

TEST(EarlyStop, TargetReached) {
  const FitResult result = Scripted({3, 2, 0.5}).fit({.monitor = lowest("v"), .patience = 9, .target = 0.5});
  EXPECT_EQ(result.reason, StopReason::target_reached);
  EXPECT_EQ(result.clock.epochs, 3);
  EXPECT_EQ(result.message, "v 0.5 reaches the target 0.5");
  // Also when it is reached by the last evaluation of the run.
  EXPECT_EQ(Scripted({3, 0.1}).fit({.monitor = lowest("v"), .patience = 9, .target = 0.5}, 2_epochs).reason,
            StopReason::target_reached);
}

TEST(EarlyStop, RestoresTheBestParameters) {
  const std::vector<double> values = {3, 2, 4, 5};
  Scripted kept(values), restored(values);
  double at_best = 0;
  restored.trainer.on_evaluation([&](const EvaluationReport& report, Control&) {
    if (report.is_best) at_best = weight(restored.model);
  });
  kept.fit({.monitor = lowest("v"), .patience = 2});
  restored.fit({.monitor = lowest("v"), .patience = 2, .restore_best = true});
  EXPECT_NE(at_best, 0);
  EXPECT_EQ(weight(restored.model), at_best);
  EXPECT_NE(weight(kept.model), at_best);
}

TEST(EarlyStop, WrongFieldsAreRefusedBeforeTraining) {
  const auto refused = [](const EarlyStop& stop) {
    Scripted run({1});
    const std::string text = error_text([&] { run.fit(stop); });
    EXPECT_EQ(run.trainer.clock().updates, 0) << text;
    return text;
  };
  const Monitor v = lowest("v");
  EXPECT_NE(refused({.patience = 2}).find("FitOptions.early_stop.monitor: missing"), std::string::npos);
  EXPECT_NE(refused({.monitor = v}).find("FitOptions.early_stop.patience = 0: must be at least 1"), std::string::npos);
  EXPECT_NE(refused({.min_delta = -1, .monitor = v, .patience = 1}).find("min_delta = -1"), std::string::npos);
  EXPECT_NE(refused({.min_delta = kNan, .monitor = v, .patience = 1}).find("min_delta = nan"), std::string::npos);
  EXPECT_NE(refused({.monitor = v, .patience = 1, .target = kNan}).find("target = nan"), std::string::npos);
  EXPECT_NE(refused({.monitor = v, .patience = 1, .warmup = -1}).find("warmup = -1"), std::string::npos);
  EXPECT_NE(refused({.monitor = lowest("w"), .patience = 1}).find("there is none of this name; there are loss, v"),
            std::string::npos);
  EXPECT_NE(error_text([] { highest(""); }).find("needs the name of a value"), std::string::npos);
  Model model = weight_model();
  FitOptions options = quiet(1_epochs);
  options.early_stop = {.monitor = lowest("loss"), .patience = 1};
  EXPECT_NE(error_text([&] { still_trainer(model).fit(counting(4), options); }).find("watches the validation set"),
            std::string::npos);
}

TEST(EarlyStop, WithoutOneTheLossSaysWhichIsBest) {
  Model model = weight_model();
  Trainer trainer(model, half_square, sgd({.learning_rate = 0.1}), {.batch = 4});
  int best = 0;
  trainer.on_evaluation([&](const EvaluationReport& report, Control&) { best += report.is_best; });
  const FitResult result = trainer.fit(counting(4), counting(4), quiet(5_epochs));
  EXPECT_EQ(best, 5);
  EXPECT_EQ(result.best.clock.epochs, 5);
}

// ---- signals and files

std::atomic<int> program_got{0};

TEST(StopSignals, EndTheRunAndTheProgramsHandlerComesBack) {
  struct sigaction mine = {}, before = {};
  mine.sa_handler = [](int signal) { program_got = signal; };
  sigaction(SIGTERM, &mine, &before);
  Model model = weight_model();
  Trainer trainer = still_trainer(model);
  trainer.on_update([](const UpdateReport& report, Control&) {
    if (report.clock.updates == 3) raise(SIGTERM);
  });
  FitOptions options = quiet(9_epochs);
  options.stop_on_signals = true;
  const FitResult result = trainer.fit(counting(8), counting(4), options);
  EXPECT_EQ(result.reason, StopReason::signal);
  EXPECT_EQ(result.message, "SIGTERM");
  EXPECT_EQ(result.exit_code(), 143);
  EXPECT_EQ(result.clock.updates, 3);
  EXPECT_EQ(result.evaluation.samples, 0);  // there may be no time
  EXPECT_EQ(program_got, 0);
  raise(SIGTERM);
  EXPECT_EQ(program_got, SIGTERM);
  program_got = 0;
  EXPECT_EQ(trainer.fit(counting(8), options).reason, StopReason::finished);  // noted once, not for ever
  options.stop_on_signals = false;
  Trainer other = still_trainer(model);
  other.on_update([](const UpdateReport&, Control&) { raise(SIGTERM); });
  EXPECT_EQ(other.fit(counting(2), quiet(1_epochs)).reason, StopReason::finished);
  EXPECT_EQ(program_got, SIGTERM);
  sigaction(SIGTERM, &before, nullptr);
}

TEST(StopFile, EndsTheRun) {
  const TemporaryFolder folder;
  Model model = weight_model();
  Trainer trainer = still_trainer(model);
  FitOptions options = quiet(2_epochs);
  options.stop_when_file_exists = folder.path() + "/stop";
  EXPECT_EQ(trainer.fit(counting(8), options).reason, StopReason::finished);
  std::ofstream(options.stop_when_file_exists) << "now";
  options.duration = 9_epochs;
  const FitResult result = trainer.fit(counting(8), options);
  EXPECT_EQ(result.reason, StopReason::requested);
  EXPECT_EQ(result.message, options.stop_when_file_exists + " exists");
  EXPECT_EQ(result.clock.updates, 9);
}

// ---- the program's logger

TEST(ProgramLogger, HasTheLinesAndStdoutHasNone) {
  Model model = weight_model();
  Trainer trainer = still_trainer(model);
  FitOptions options;
  options.duration = 1_epochs;
  std::vector<std::pair<LogLevel, std::string>> lines;
  set_logger([&](LogLevel level, std::string_view line) { lines.emplace_back(level, line); });
  testing::internal::CaptureStdout();
  trainer.fit(counting(20), counting(4), options);
  set_logger({});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  ASSERT_EQ(lines.size(), 12U);  // ten reports, an evaluation, the end
  for (const auto& [level, line] : lines) EXPECT_EQ(level, LogLevel::info) << line;
  EXPECT_EQ(lines[0].second.find("epoch 0.10, 1 updates: loss "), 0U) << lines[0].second;
  EXPECT_EQ(lines[10].second.find("validation after 1 epoch, "), 0U) << lines[10].second;
  EXPECT_EQ(lines[11].second.find("finished: 1 epoch, 10 updates in "), 0U) << lines[11].second;
  options.duration = 2_epochs;
  testing::internal::CaptureStdout();
  trainer.fit(counting(20), options);
  EXPECT_NE(testing::internal::GetCapturedStdout().find("finished: 2 epochs"), std::string::npos);
  EXPECT_EQ(lines.size(), 12U);
}

}  // namespace
}  // namespace brisk
