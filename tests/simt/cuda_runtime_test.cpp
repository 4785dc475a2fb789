// The CUDA backend's runtime on the emulated device: runs, reports, replays and memory of a small plan.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "brisk/brisk.h"
#include "simt/device_buffer.h"
#include "simt/emulated_device.h"
#include "simt/plan_by_hand.h"

namespace brisk::backend::cuda {
namespace {

TEST(CudaRuntime, RunsUpdateTheParameter) {
  simt::for_each_schedule([] {
    Fixture f;
    f.run(kBoth, 2);
    const Report report = f.report();
    EXPECT_EQ(report.fault.kind, Fault::Kind::none);
    EXPECT_EQ(report.totals[0], 10);
    EXPECT_EQ(report.totals[1], 5);
    ASSERT_NE(report.stats, nullptr);
    EXPECT_EQ(report.stats[0], 10);
    EXPECT_EQ(report.counters[0], 1);
    EXPECT_EQ(*report.scale, 2);
    EXPECT_EQ(f.parameter(), -5);
  });
}

TEST(CudaRuntime, WhatARunIsToldIsReadAnewInEachReplay) {
  simt::for_each_schedule([] {
    Fixture f;
    float expected = 0;
    for (int run = 0; run < 7; ++run) {
      f.attempt = run;
      f.scalars[0] = 0.25f * static_cast<float>(run + 1);
      f.run(kBoth, static_cast<float>(run));
      f.scalars[0] = 1000;  // the run has its own
      expected -=
          0.25f * static_cast<float>(run + 1) * (5.0f * static_cast<float>(run) + 100.0f * static_cast<float>(run));
      EXPECT_EQ(f.report().totals[0], 5 * run);
      EXPECT_EQ(f.parameter(), expected);
    }
  });
}

TEST(CudaRuntime, AWindowAccumulatesAndClosesApart) {
  simt::for_each_schedule([] {
    Fixture f;
    f.run(StepList::micro_batch, 1);
    f.run(StepList::micro_batch, 2, true);
    f.report();
    const Report second = f.report();
    EXPECT_EQ(second.totals[0], 10);
    EXPECT_EQ(second.stats, nullptr);
    const void* const gone[] = {reinterpret_cast<const void*>(1)};  // what was fed is no longer there
    f.scalars[0] = 0.25f;
    f.program->run(StepList::update, {.inputs = gone, .attempt = 3});
    const Report update = f.report();
    EXPECT_EQ(update.totals[0], 0) << "an update alone brings no sums";
    EXPECT_EQ(update.stats[0], 15);
    EXPECT_EQ(f.parameter(), -3.75f);
  });
}

TEST(CudaRuntime, ReplayEqualsLaunchingOneByOne) {
  std::vector<float> parameters;
  for (const bool graphs : {true, false}) {
    Fixture f(graphs);
    for (int run = 0; run < 5; ++run) {
      f.run(StepList::micro_batch, 0.1f * static_cast<float>(run));
      f.run(kBoth, 0.3f, true);
      f.report();
      f.report();
    }
    parameters.push_back(f.parameter());
    EXPECT_EQ(f.runtime.entries(), graphs ? 10 : 5 * (5 + 6));
  }
  EXPECT_EQ(parameters[0], parameters[1]);
  EXPECT_NE(parameters[0], 0);
}

TEST(CudaRuntime, ReportsComeInTheOrderOfRunsAndLate) {
  simt::for_each_schedule([] {
    Fixture f;
    Report report;
    EXPECT_FALSE(f.runtime.report(0, report)) << "nothing was run";
    int next = 0, reported = 0;
    for (; next < 20; ++next) {
      f.run(kBoth, static_cast<float>(next));
      while (f.runtime.report(2, report)) EXPECT_EQ(report.totals[0], 5 * reported++);
      EXPECT_LE(next + 1 - reported, 2);
    }
    while (f.runtime.report(0, report)) EXPECT_EQ(report.totals[0], 5 * reported++);
    EXPECT_EQ(reported, next);
  });
}

TEST(CudaRuntime, RunsThatNobodyAsksForKeepTheirInputs) {
  simt::for_each_schedule([] {
    Fixture f;
    for (int run = 0; run < 4; ++run) f.run(kBoth, static_cast<float>(run));
    for (int run = 0; run < 4; ++run) EXPECT_EQ(f.report().totals[0], 5 * run);
  });
}

TEST(CudaRuntime, PlansThatTakeTurnsDoNotOverwriteEachOther) {
  simt::for_each_schedule(
      [] {
        Fixture f;
        f.evaluate(0);
        f.report();
        const std::vector<float> rows(kEvaluated, 2);
        const void* const inputs[] = {rows.data()};
        for (int turn = 0; turn < 6; ++turn) {
          f.run(kBoth, 1);
          f.evaluation->run(StepList::micro_batch, {.inputs = inputs});
          f.run(kBoth, 3);
          EXPECT_EQ(f.report().totals[0], 5);
          EXPECT_EQ(f.report().totals[0], 200);
          EXPECT_EQ(f.report().totals[0], 15);
        }
        EXPECT_EQ(f.parameter(), -60);
      },
      12);
}

TEST(CudaRuntime, MoreUnreportedRunsThanTheRingHoldsAreRefused) {
  Fixture f;
  for (int run = 0; run < 4; ++run) f.run(kBoth, 1);
  EXPECT_THROW(f.run(kBoth, 1), Error);
  for (int run = 0; run < 4; ++run) f.report();
  f.run(kBoth, 3);
  EXPECT_EQ(f.report().totals[0], 15);
}

TEST(CudaRuntime, AFaultHoldsItsWindowsUpdateBackAndNoOther) {
  simt::for_each_schedule([] {
    Fixture f;
    f.run(StepList::micro_batch, -3);
    f.evaluate(1);
    f.run(kBoth, 1, true);
    const Report first = f.report(2);
    EXPECT_EQ(first.fault.kind, Fault::Kind::label);
    EXPECT_EQ(first.fault.sample, 0);
    EXPECT_EQ(first.fault.value, -3);
    EXPECT_EQ(f.graph.nodes[static_cast<size_t>(first.fault.node)].op->name, "total");
    EXPECT_EQ(f.report(1).fault.kind, Fault::Kind::none) << "the evaluation between the two";
    f.run(kBoth, 1);
    const Report closing = f.report(1);
    EXPECT_EQ(closing.fault.kind, Fault::Kind::label);
    EXPECT_EQ(closing.counters[0], 0);
    const Report next = f.report();
    EXPECT_EQ(next.fault.kind, Fault::Kind::none);
    EXPECT_EQ(next.counters[0], 1);
    EXPECT_EQ(f.parameter(), -2.5f);
  });
}

TEST(CudaRuntime, EvaluationBringsOutputsBetweenUpdates) {
  simt::for_each_schedule([] {
    Fixture f;
    for (int turn = 0; turn < 3; ++turn) {
      f.run(kBoth, 1);
      EXPECT_EQ(f.evaluate(7), std::vector<float>(kEvaluated, 7));
      EXPECT_EQ(f.report().totals[0], 5);
      EXPECT_EQ(f.report().totals[0], 700);
      f.run(kBoth, 2);
      EXPECT_EQ(f.report().totals[0], 10);
      EXPECT_EQ(f.parameter(), -7.5f * static_cast<float>(turn + 1));
    }
  });
}

TEST(CudaRuntime, ALargerPlanMovesTheBlockAndNothingIsLost) {
  simt::for_each_schedule([] {
    Fixture f;
    f.run(StepList::micro_batch, -3);
    const int64_t before = f.runtime.scratch_bytes();
    const auto larger = f.runtime.compile(f.evaluation_graph, 5000, f.bindings);
    EXPECT_GT(f.runtime.scratch_bytes(), before);
    const Report report = f.report();
    EXPECT_EQ(report.totals[0], -15);
    EXPECT_EQ(report.fault.kind, Fault::Kind::label);
    f.run(kBoth, 2);
    EXPECT_EQ(f.report().stats[0], 10);
    EXPECT_EQ(f.parameter(), -5);
  });
}

TEST(CudaRuntime, ABlockHasTheBytesThatArithmeticSays) {
  Fixture f;
  EXPECT_EQ(f.runtime.scratch_bytes(), run_layout(f.graph, kSamples, {sizeof(Entry)}).bytes);
}

/// Rates of 700 updates go through the ring of 256, row by row as the host learns how far the device is; a plan of
/// another form uses the block in between.
TEST(CudaRuntime, TheDeviceReadsItsRatesFromTheRing) {
  simt::for_each_schedule([] {
    Fixture f;
    const Graph graph = make_graph(true, true);
    std::vector<float> ring(kScheduledUpdates * graph.scalars.size(), -1e9f);
    f.bindings.schedule = ring.data();
    const std::unique_ptr<Program> program = f.runtime.compile(graph, kSamples, f.bindings);
    const std::vector<float> rows(kSamples, 1);
    const void* const inputs[] = {rows.data()};
    float expected = 0;
    int64_t scheduled = 0;
    for (int64_t update = 0; update < 700; ++update) {
      if (scheduled <= update) {
        const int64_t last = update - 2 + kScheduledUpdates;  // two updates may be on their way
        for (; scheduled < last; ++scheduled)
          ring[static_cast<size_t>(scheduled % kScheduledUpdates) * graph.scalars.size()] =
              static_cast<float>(scheduled % 100 + 1);
      }
      if (update % 200 == 50) f.evaluate(1);
      program->run(kBoth, {.inputs = inputs, .scheduled = scheduled});
      expected -= 5 * static_cast<float>(update % 100 + 1);
      Report report;
      while (f.runtime.report(2, report)) EXPECT_EQ(report.fault.kind, Fault::Kind::none);
    }
    EXPECT_EQ(f.parameter(), expected);
  });
}

TEST(CudaRuntime, TwoRuntimesOfOneDeviceTakeTurns) {
  simt::for_each_schedule([] {
    Fixture a;
    CudaRuntime other(a.device, {.lower = &lower_by_hand});
    const std::unique_ptr<Program> program = other.compile(a.graph, kSamples, a.bindings);
    for (int run = 0; run < 4; ++run) {
      a.run(kBoth, 1);
      const std::vector<float> rows(kSamples, 2);
      const void* const inputs[] = {rows.data()};
      program->run(kBoth, {.inputs = inputs});
      Report report;
      ASSERT_TRUE(other.report(0, report));
      EXPECT_EQ(report.totals[0], 10);
      EXPECT_EQ(a.report().totals[0], 5);
    }
    EXPECT_EQ(a.parameter(), -30);
  });
}

TEST(CudaRuntime, AStepTakesExactlyThePlansBytes) {
  const auto network = [](Var x) {
    return linear(flatten(relu(batch_norm(conv2d(x, {.bias = false, .channels = 5, .kernel = 3})))), 3);
  };
  for (const Precision precision : {Precision::f32, Precision::fp16}) {
    const int64_t before = simt::live().bytes;
    Model model([&](Var x) { return network(x); }, {2, 7, 7});
    Step step(model, cross_entropy(), adam({.learning_rate = 0.01}),
              {.batch = 6, .device = gpu(0), .precision = precision});
    const int64_t planned = step.plan().bytes().total;
    const std::vector<float> x(6 * 2 * 7 * 7, 0.5f);
    const std::vector<int64_t> labels(6, 1);
    EXPECT_EQ(simt::live().bytes, before) << "nothing is taken before the first run";
    for (int run = 0; run < 3; ++run) step.run(view(x, {6, 2, 7, 7}), view(labels, {6}));
    EXPECT_EQ(simt::live().bytes - before, planned);
  }
}

TEST(CudaRuntime, WhatIsReadIsFollowedWhereItMoves) {
  simt::for_each_schedule([] {
    Fixture f;
    float* const elsewhere[] = {f.values + 32};
    const std::vector<float> rows(kSamples, 1);
    const void* const inputs[] = {rows.data()};
    f.run(kBoth, 1);
    f.report();
    f.program->run(kBoth, {.inputs = inputs, .parameters = elsewhere});
    f.report();
    f.run(kBoth, 1);
    f.report();
    EXPECT_EQ(f.parameter(), -7.5f);
    EXPECT_EQ(f.runtime.entries(), 3);
  });
}

TEST(CudaRuntime, TheSteadyStateQueuesAndDoesNotWait) {
  simt::config().seed = 1;  // nothing is done before it is waited for
  {
    Fixture f;
    Report report;
    std::vector<int64_t> calls;
    for (int run = 0; run < 8; ++run) {
      const int64_t before = simt::calls();
      f.run(kBoth, 1);
      calls.push_back(simt::calls() - before);
      EXPECT_EQ(cudaStreamQuery(f.device.compute.get()), cudaErrorNotReady) << "run " << run;
      while (f.runtime.report(1, report)) {
      }
    }
    cudaGetLastError();
    // The device; the last reader, inputs, their event; the graph; results, state, their event.
    for (size_t run = 2; run < calls.size(); ++run) EXPECT_LE(calls[run], 9) << "run " << run;
  }
  simt::config().seed = 0;
}

}  // namespace
}  // namespace brisk::backend::cuda
