// Steps on a device whose memory is not the host's and whose runs end later: the same kernels give the same bits as on
// the CPU, whenever the device comes to compute them.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "exec/step_impl.h"
#include "support/error_text.h"
#include "support/late_device.h"
#include "support/networks.h"

namespace brisk {
namespace {

using test::LateDevice;
using Values = std::vector<double>;

/// What happened on the CPU and what happens on late devices of several seeds.
void expect_the_same(const std::function<Values(Device)>& story) {
  const Values expected = story(cpu());
  for (const uint64_t seed : {1, 2, 3, 4, 5}) {
    const LateDevice device(seed);
    EXPECT_EQ(story(gpu(0)), expected) << "seed " << seed;
    EXPECT_EQ(device.held_bytes(), 0) << "all memory is given back";
    EXPECT_GT(device.late_runs(), 0) << "nothing was late";
  }
}

double bits(const Model& model) { return static_cast<double>(test::hash_of(model) >> 12); }
double value(const Model& model, const char* name) { return model.parameter(name).data<float>()[0]; }

void add_totals(Values& story, const StepTotals& totals) {
  story.insert(story.end(),
               {totals.loss, totals.gradient_norm, totals.learning_rate, static_cast<double>(totals.samples),
                static_cast<double>(totals.clock.updates), static_cast<double>(totals.clock.samples)});
}

TEST(LateDevice, TrainsEvaluatesAndReadsAsTheCpuDoes) {
  const test::Rows rows = test::make_rows(16, {3, 8, 8}, 10, 5);
  expect_the_same([&](Device device) {
    Values story;
    Model model(test::residual_net, {3, 8, 8});
    Step step(model, cross_entropy(), adam({.learning_rate = warmup(3_updates).then(constant(0.01))}),
              {.batch = 8, .clip_norm = 1.0, .device = device, .threads = 1});
    for (int i = 0; i < 300; ++i) {  // more updates than are scheduled at once
      const int64_t count = i % 7 == 3 ? 5 : 8;
      step.run(rows.inputs(i % 8, count), rows.labels(i % 8, count));
      if (i % 50 == 9) add_totals(story, step.read());
      if (i % 80 == 10) step.evaluate({{"input", rows.inputs(0, 3)}, {"target", rows.labels(0, 3)}});
      if (i % 80 == 12) add_totals(story, step.read_evaluation());
      if (i % 100 == 20) story.push_back(bits(model));
    }
    add_totals(story, step.read());
    story.push_back(bits(model));
    return story;
  });
}

// Matrices read shadows of the parameters there: who changes a parameter from outside makes them anew.
TEST(LateDevice, ShadowsFollowWhoeverChangesAParameter) {
  const test::Rows rows = test::make_rows(8, {3, 8, 8}, 10, 5);
  for (const Precision precision : {Precision::bf16, Precision::fp16})
    expect_the_same([&](Device device) {
      Values story;
      Model model(test::residual_net, {3, 8, 8});
      StepOptions options = {.batch = 8, .device = device, .precision = precision, .threads = 1};
      Step step(model, cross_entropy(), sgd({.learning_rate = 0.1, .momentum = 0.9}), options);
      options.precision = Precision::f32;
      Step other(model, cross_entropy(), sgd({.learning_rate = 0.05}), options);
      EXPECT_EQ(step.plan().bytes().shadows > 0, device == gpu(0));
      const auto run = [&](Step& which, int times) {
        for (int i = 0; i < times; ++i) which.run(rows.inputs(0, 8), rows.labels(0, 8));
        add_totals(story, which.read());
        story.push_back(bits(model));
      };
      run(step, 4);
      run(other, 1);
      run(step, 2);
      model.set_parameter("fc1.weight", Tensor(model.parameter("fc1.weight").shape()));
      step.evaluate({{"input", rows.inputs(0, 8)}, {"target", rows.labels(0, 8)}});
      add_totals(story, step.read_evaluation());
      run(step, 2);
      model.freeze({"fc1.*"});
      run(step, 1);
      model.set_parameter("fc1.bias", Tensor(std::vector<float>(10, 0.5f), {10}));
      run(step, 2);
      return story;
    });
}

// A gradient that overflows is skipped where it is computed; the host learns of it later.
TEST(LateDevice, SkipsOfALossScaleAreTheDevicesOwn) {
  const test::Rows rows = test::make_rows(8, {3, 8, 8}, 10, 5);
  test::Rows large = rows;
  for (float& element : large.input) element *= 1e6f;
  expect_the_same([&](Device device) {
    Values story;
    Model model(test::residual_net, {3, 8, 8});
    Step step(model, cross_entropy(), adam({.learning_rate = warmup(9_updates).then(constant(0.01))}),
              {.batch = 8, .device = device, .precision = Precision::fp16, .threads = 1});
    for (int i = 0; i < 12; ++i) {
      const test::Rows& now = i % 5 == 2 ? large : rows;
      step.run(now.inputs(0, 8), now.labels(0, 8));
    }
    const StepTotals totals = step.read();
    EXPECT_EQ(totals.clock.updates, 10);
    EXPECT_EQ(totals.skipped, 2);
    story = {totals.loss_scale, totals.gradient_norm, totals.learning_rate, bits(model)};
    return story;
  });
}

Var one_weight(Var x) { return x * parameter("w", {1}); }
Mean half_square(Var out, Var target) { return 0.5 * mse(out, target); }

TEST(LateDevice, WindowsFlushAndEvaluationInsideThem) {
  const test::Rows rows = test::make_rows(16, {3, 8, 8}, 10, 5);
  expect_the_same([&](Device device) {
    Values story;
    Model model(test::residual_net, {3, 8, 8});
    Step step(model, cross_entropy(), sgd({.learning_rate = 0.1, .momentum = 0.9}),
              {.accumulate = 3, .batch = 4, .device = device, .threads = 1});
    for (int i = 0; i < 20; ++i) {
      step.run(rows.inputs(i % 12, 4), rows.labels(i % 12, 4));
      step.evaluate({{"input", rows.inputs(0, 3)}, {"target", rows.labels(0, 3)}});
      if (i % 5 == 1) step.flush();
      if (i % 4 == 2) add_totals(story, step.read_evaluation());
    }
    step.flush();
    add_totals(story, step.read());
    story.push_back(bits(model));
    return story;
  });
}

Var logits(Var x) { return x + parameter("bias", {2}); }

TEST(LateDevice, CountsAreCheckedBeforeTheUpdate) {
  const std::vector<float> x(8, 0.0f);
  const std::vector<int64_t> first = {0, -1, -1, -1}, second = {1, 1, 0, 0};
  expect_the_same([&](Device device) {
    Values story;
    Model model(logits, {2});
    Step step(model, cross_entropy({.ignore_index = -1, .name = "lane"}), sgd({.learning_rate = 1.0}),
              {.accumulate = 2, .batch = 4, .device = device, .threads = 1});
    for (const double told : {5.0, 6.0, 5.0}) {
      step.expect({{"lane", told}, {"samples", 8}});
      step.run(view(x, {4, 2}), view(first, {4}));
      step.evaluate({{"input", view(x, {4, 2})}, {"target", view(second, {4})}});
      if (told == 6) {
        EXPECT_THROW(step.run(view(x, {4, 2}), view(second, {4})), Error);
      } else {
        step.run(view(x, {4, 2}), view(second, {4}));
      }
      story.push_back(value(model, "bias"));
    }
    add_totals(story, step.read());
    return story;
  });
}

TEST(LateDevice, PartsOfARunAndGradients) {
  const test::Rows rows = test::make_rows(8, {1, 28, 28}, 10, 5);
  expect_the_same([&](Device device) {
    Values story;
    Model model(test::lenet, {1, 28, 28});
    Step step(model, cross_entropy(), sgd({.learning_rate = 0.1, .momentum = 0.9}),
              {.accumulate = 2, .batch = 4, .device = device, .threads = 1});
    for (int i = 0; i < 4; ++i) {
      step.forward_backward(rows.inputs(0, 4), rows.labels(0, 4));
      step.forward_backward(rows.inputs(4, 4), rows.labels(4, 4));
      const Tensor gradient = step.gradient("conv2.weight");
      story.push_back(gradient.data<float>()[7]);
      step.set_gradient("fc2.bias", Tensor(std::vector<float>(10, 0.5f), {10}));
      step.update();
    }
    story.push_back(bits(model));
    return story;
  });
}

Var two_weights(Var x) { return x * parameter("a", {1}) + parameter("b", {1}); }

TEST(LateDevice, FreezingKeepsMomentsAndCounts) {
  const float x = 2, y = 3;
  expect_the_same([&](Device device) {
    Values story;
    Model model(two_weights, {1});
    Step step(model, mse(), adam({.learning_rate = 0.1}), {.batch = 1, .device = device, .threads = 1});
    const auto updates = [&](int count) {
      for (int i = 0; i < count; ++i) step.run(ConstView(&x, {1, 1}), ConstView(&y, {1, 1}));
      story.push_back(value(model, "a"));
      story.push_back(value(model, "b"));
    };
    model.freeze({"b"});
    updates(3);
    model.unfreeze({"b"});
    updates(4);
    model.freeze({"a"});
    updates(2);
    model.unfreeze({"a"});
    updates(3);
    add_totals(story, step.read());
    return story;
  });
}

TEST(LateDevice, TwoStepsShareTheirModels) {
  const std::vector<float> real(8 * 2, 0.75f);
  expect_the_same([&](Device device) {
    Values story;
    Model maker([](Var z) { return linear(relu(linear(z, 8)), 2); }, {4}, {.name = "maker"});
    Model judge([](Var x) { return linear(relu(linear(x, 8)), 1); }, {2}, {.name = "judge"});
    const auto fooled = [](Var out, float wanted) {
      return mse(out, 0.0f * out + wanted, {.name = wanted > 0 ? "real" : "made"});
    };
    Step judging([&](const Vars& in) { return fooled(judge(in["x"]), 1) + fooled(judge(maker(in["z"])), 0); },
                 {{"x", {2}}, {"z", {4}}}, adam({.learning_rate = 0.01}),
                 {.batch = 8, .device = device, .threads = 1, .update = {&judge}});
    Step making([&](const Vars& in) { return fooled(judge(maker(in["z"])), 1); }, {{"z", {4}}},
                adam({.learning_rate = 0.01}), {.batch = 8, .device = device, .threads = 1, .update = {&maker}});
    const test::Rows noise = test::make_rows(8, {4}, 2, 9);
    for (int i = 0; i < 20; ++i) {
      judging.run({{"x", view(real, {8, 2})}, {"z", noise.inputs(0, 8)}});
      making.run({{"z", noise.inputs(0, 8)}});
    }
    add_totals(story, judging.read());
    add_totals(story, making.read());
    story.push_back(bits(maker));
    story.push_back(bits(judge));
    return story;
  });
}

TEST(LateDevice, AStepOnTheCpuAndOneOnTheDeviceTakeTurns) {
  const test::Rows rows = test::make_rows(8, {3, 8, 8}, 10, 5);
  expect_the_same([&](Device device) {
    Model model(test::residual_net, {3, 8, 8});
    const StepOptions there = {.batch = 8, .device = device, .threads = 1}, here = {.batch = 8, .threads = 1};
    Step first(model, cross_entropy(), sgd({.learning_rate = 0.1}), there);
    Step second(model, cross_entropy(), sgd({.learning_rate = 0.05}), here);
    for (int i = 0; i < 6; ++i) {
      first.run(rows.inputs(0, 8), rows.labels(0, 8));
      first.run(rows.inputs(0, 8), rows.labels(0, 8));
      if (i % 2 == 0) second.run(rows.inputs(0, 8), rows.labels(0, 8));
    }
    return Values{bits(model), first.read().loss, second.read().loss};
  });
}

TEST(LateDevice, WeightsAreReadWrittenSavedAndCopiedBetweenRuns) {
  const test::Rows rows = test::make_rows(8, {1, 28, 28}, 10, 5);
  const std::string path = testing::TempDir() + "late_device." + std::to_string(getpid()) + ".safetensors";
  expect_the_same([&](Device device) {
    Values story;
    Model model(test::lenet, {1, 28, 28}), slow = model.clone("slow");
    Step step(model, cross_entropy(), sgd({.learning_rate = 0.1, .momentum = 0.9}),
              {.batch = 8, .device = device, .threads = 1});
    const auto run = [&](int times) {
      for (int i = 0; i < times; ++i) step.run(rows.inputs(0, 8), rows.labels(0, 8));
    };
    run(3);
    save_weights(model, path);
    run(3);
    slow.copy_weights_from(model, {.blend = 0.25});
    const Model copy = model.clone();
    run(1);
    story.insert(story.end(), {bits(copy), bits(slow), bits(model)});
    load_weights(model, path);
    run(1);
    model.set_parameter("fc2.bias", Tensor(std::vector<float>(10, 0.5f), {10}));
    run(2);
    const Predictor predictor(model, {.batches = {8}});
    std::vector<float> out(80);
    predictor.run(rows.inputs(0, 8), view(out, {8, 10}));
    story.insert(story.end(), out.begin(), out.end());
    story.push_back(bits(model));
    return story;
  });
  std::filesystem::remove(path);
}

/// Runs until the error comes, at most two runs late; how many runs were late.
int raised(const std::function<void()>& bad, const std::function<void()>& good, std::string& text) {
  for (int late = 0; late <= 2; ++late) {
    try {
      late == 0 ? bad() : good();
    } catch (const Error& error) {
      text = error.what();
      return late;
    }
  }
  ADD_FAILURE() << "no error within two runs";
  return -1;
}

TEST(LateDevice, ALabelOutsideIsRaisedWithItsRowAndMovesNothing) {
  const test::Rows rows = test::make_rows(8, {3, 8, 8}, 10, 5);
  std::vector<int64_t> labels(rows.label);
  labels[5] = 10;
  for (const uint64_t seed : {1, 2, 3}) {
    for (const int64_t accumulate : {1, 2}) {
      const LateDevice device(seed);
      Model model(test::residual_net, {3, 8, 8}), wanted = model.clone();
      Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}),
                {.accumulate = accumulate, .batch = 8, .device = gpu(0)});
      Step reference(wanted, cross_entropy(), sgd({.learning_rate = 0.1}),
                     {.accumulate = accumulate, .batch = 8, .threads = 1});
      const auto good = [&] { step.run(rows.inputs(0, 8), rows.labels(0, 8)); };
      for (int i = 0; i < 4; ++i) {
        good();
        reference.run(rows.inputs(0, 8), rows.labels(0, 8));
      }
      std::string text;
      const int late = raised([&] { step.run(rows.inputs(0, 8), view(labels, {8})); }, good, text);
      EXPECT_EQ(late, accumulate == 1 ? 2 : 1) << "the host waits to count a window's rows, and not for a run";
      const std::string row = "row 5 of the micro-batch before the last ";
      EXPECT_NE(text.find(accumulate == 1 ? row + "2 has label 10" : row + "has label 10"), std::string::npos) << text;
      // Its window is lost, and those behind it count.
      EXPECT_THROW(reference.run(rows.inputs(0, 8), view(labels, {8})), Error);
      for (int i = 0; accumulate == 1 && i < late; ++i) reference.run(rows.inputs(0, 8), rows.labels(0, 8));
      for (int64_t i = 0; i < accumulate; ++i) {
        good();
        reference.run(rows.inputs(0, 8), rows.labels(0, 8));
      }
      EXPECT_EQ(step.read().clock.updates, reference.read().clock.updates);
      EXPECT_EQ(bits(model), bits(wanted));
    }
  }
}

TEST(LateDevice, AGradientThatIsNotFiniteMovesNothing) {
  const LateDevice device(7);
  Model model(one_weight, {1}), wanted = model.clone();
  Step step(model, LossFunction(half_square), adam({.learning_rate = 0.1}),
            {.batch = 2, .device = gpu(0), .targets = {{"target", {1}}}});
  Step reference(wanted, LossFunction(half_square), adam({.learning_rate = 0.1}),
                 {.batch = 2, .targets = {{"target", {1}}}});
  const std::vector<float> x = {1, 1}, good = {1, 2}, bad = {1, NAN};
  const auto run_good = [&] { step.run(view(x, {2, 1}), view(good, {2, 1})); };
  for (int i = 0; i < 3; ++i) run_good();
  for (int i = 0; i < 6; ++i) reference.run(view(x, {2, 1}), view(good, {2, 1}));
  std::string text;
  EXPECT_EQ(raised([&] { step.run(view(x, {2, 1}), view(bad, {2, 1})); }, run_good, text), 2);
  EXPECT_NE(text.find("not finite at update 3 (learning rate 0.1)"), std::string::npos) << text;
  EXPECT_EQ(step.read().clock.updates, 5);
  run_good();
  EXPECT_EQ(step.read().clock.updates, 6);
  EXPECT_EQ(value(model, "w"), value(wanted, "w")) << "the device has counted the updates that it made";
  step.run(view(x, {2, 1}), view(bad, {2, 1}));
  EXPECT_EQ(test::error_text([&] { step.read(); }).rfind("Error [numeric] w", 0), 0u) << "who waits for all is told";
  step.run(view(x, {2, 1}), view(bad, {2, 1}));
  const Step moved = std::move(step);  // and a step may end with errors that nobody has asked for
}

TEST(LateDevice, AFaultInAnEvaluationLeavesTheOpenWindow) {
  const LateDevice device(3);
  const test::Rows rows = test::make_rows(8, {1, 28, 28}, 10, 5);
  std::vector<int64_t> labels(rows.label);
  labels[2] = -5;
  Model model(test::lenet, {1, 28, 28});
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.accumulate = 2, .batch = 4, .device = gpu(0)});
  step.run(rows.inputs(0, 4), rows.labels(0, 4));
  step.evaluate({{"input", rows.inputs(0, 4)}, {"target", view(labels, {8}).rows(0, 4)}});
  EXPECT_EQ(test::error_text([&] { step.read_evaluation(); }).rfind("Error [data]", 0), 0u);
  EXPECT_EQ(step.read_evaluation().samples, 0);
  step.run(rows.inputs(4, 4), rows.labels(4, 4));
  EXPECT_EQ(step.read().clock.updates, 1);
}

TEST(LateDevice, TakesWhatThePlanSaysAndChecksFirst) {
  const LateDevice device(1, 14'000'000);
  Model model(test::lenet, {1, 28, 28});
  Step step(model, cross_entropy(), adam({.learning_rate = 1e-3}), {.batch = 16, .device = gpu(0)});
  const PlanBytes bytes = step.plan().bytes();
  EXPECT_EQ(device.held_bytes(), 0) << "a plan is arithmetic";
  step.prepare();
  EXPECT_EQ(step.impl().held_bytes(), bytes.total);
  EXPECT_EQ(device.held_bytes(), bytes.total - bytes.scratch) << "the workers' scratch is the CPU's";
  const test::Rows rows = test::make_rows(16, {1, 28, 28}, 10, 5);
  for (int i = 0; i < 3; ++i) step.run(rows.inputs(0, 16), rows.labels(0, 16));
  EXPECT_EQ(step.impl().held_bytes(), bytes.total);
  Step second(model, cross_entropy(), sgd({.learning_rate = 1e-3}), {.batch = 16, .device = gpu(0)});
  const int64_t before = device.held_bytes();
  second.prepare();
  const PlanBytes more = second.plan().bytes();
  EXPECT_EQ(device.held_bytes() - before, more.total - more.scratch - more.parameters - more.buffers)
      << "two steps share one copy of the values";
  Model other(test::lenet, {1, 28, 28});
  Step large(other, cross_entropy(), sgd({.learning_rate = 1e-3}), {.batch = 512, .device = gpu(0)});
  const std::string text = test::error_text([&] { large.prepare(); });
  EXPECT_NE(text.find("Error [memory] batch 512: needs "), std::string::npos) << text;
  EXPECT_NE(text.find(" bytes on gpu 0, "), std::string::npos) << text;
  EXPECT_NE(text.find(" are free; largest batch that fits: "), std::string::npos) << text;
}

TEST(LateDevice, TheBestDeviceIsTheOneThatIsThere) {
  std::string line;
  set_logger([&](LogLevel, std::string_view text) { line = text; });
  {
    const LateDevice device(1);
    EXPECT_EQ(best_device(), gpu(0));
    EXPECT_NE(line.find("training on gpu 0: late cpu"), std::string::npos) << line;
  }
  std::string why_not;
  if (exec::usable_devices(why_not).front() == cpu()) {
    EXPECT_EQ(best_device(), cpu());
    EXPECT_EQ(line.rfind("gpu: " + why_not + "; training on cpu ", 0), 0u) << line;
    EXPECT_FALSE(why_not.empty());
    Model model(one_weight, {1});
    const std::string text = test::error_text([&] {
      Step step(model, mse(), sgd({.learning_rate = 0.1}), {.batch = 1, .device = gpu(0)});
      step.prepare();
    });
    EXPECT_EQ(text.rfind("Error [backend] gpu 0: ", 0), 0u) << text;
  }
  set_logger(nullptr);
}

TEST(LateDevice, PredictorsComputeOnTheCpu) {
  const LateDevice device(1);
  Model model(one_weight, {1});
  const std::string text = test::error_text([&] { Predictor(model, {.device = gpu(0)}); });
  EXPECT_EQ(text.rfind("Error [option] PredictorOptions.device = gpu 0: ", 0), 0u) << text;
}

}  // namespace
}  // namespace brisk
