// The CUDA backend's runtime on the emulated device: runs of a small plan whose kernels are written here.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <set>

#include "backend/cuda/runtime/memory.h"
#include "backend/cuda/runtime/runtime.h"
#include "brisk/brisk.h"
#include "graph/op_table.h"
#include "kernels/common/cuda.h"
#include "simt/device_buffer.h"
#include "simt/emulated_device.h"

namespace brisk::backend::cuda {
namespace {

using graph::Graph;
using graph::Place;
using graph::Stage;
using graph::ValueId;

constexpr int64_t kSamples = 5;
constexpr int64_t kEvaluated = 100;  // so that the plan of evaluation lies in the block otherwise

// ---- kernels: one thread does all

/// A negative value is an error of its row.
__global__ void add_rows(const float* x, int count, double* totals, kernels::Status* status, int node) {
  double sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += static_cast<double>(x[i]);
    if (x[i] < 0 && status->kind == kernels::Status::kNone) {
      status->kind = kernels::Status::kLabel;
      status->node = node;
      status->sample = i;
      status->value = static_cast<int64_t>(x[i]);
    }
  }
  totals[0] = sum;
  totals[1] = count;
}

__global__ void sum_rows(const float* x, int count, float* y) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += x[i];
  *y = sum;
}

/// The number of the attempt comes in, so that it matters what a run is told.
__global__ void keep_gradient(const float* dy, float* gradient, const kernels::RunState* run) {
  const float value = *dy + 100 * static_cast<float>(run->attempt);
  *gradient = run->accumulate ? *gradient + value : value;
}

__global__ void measure(const float* gradient, float* stats, int count) {
  for (int i = 0; i < count; ++i) stats[i] = 0;
  stats[0] = *gradient < 0 ? -*gradient : *gradient;
}

struct Entry {
  const float* gradient;
  float* parameter;
};

__global__ void descend(const Entry* table, const float* rate, const float* ratio, const kernels::Status* status) {
  if (status->kind == kernels::Status::kNone) *table->parameter -= *rate * *ratio * *table->gradient;
}

__global__ void select_row(const int64_t* counters, const float* schedule, float* selected, int columns) {
  for (int i = 0; i < columns; ++i) selected[i] = schedule[counters[0] % kScheduledUpdates * columns + i];
}

__global__ void count_update(int64_t* counters, float* scale, const kernels::Status* status) {
  if (status->kind != kernels::Status::kNone) return;
  counters[0] += 1;
  *scale *= 2;
}

void start(cudaError_t error) { check(error, "starting a kernel"); }

/// Counters and scale are no operands of the operations here: the walk's lowering finds them in the bindings.
const Bindings* bound_state = nullptr;

Lowering lower_by_hand(const Graph& graph, const std::vector<int32_t>& nodes, int64_t samples, const Profile&,
                       std::string_view) {
  Lowering lowering;
  const graph::Node& node = graph.nodes[static_cast<size_t>(nodes.back())];
  const std::string_view op = node.op->name;
  const auto count = static_cast<int>(samples);
  const auto add = [&](LaunchFunction run) { lowering.launch(std::string(op), 0, 0, std::move(run)); };
  if (op == "load" || op == "store") {
    add([count](const Operands& o, CudaStream stream) {
      start(cudaMemcpyAsync(o.output<float>(0), o.input<float>(0), static_cast<size_t>(count) * sizeof(float),
                            cudaMemcpyDeviceToDevice, stream));
    });
  } else if (op == "total") {
    add([count](const Operands& o, CudaStream stream) {
      start(
          kernels::launch(add_rows, 1, 1, 0, stream, o.input<float>(0), count, o.output<double>(0), o.status, o.node));
    });
  } else if (op == "batch_sum") {
    add([count](const Operands& o, CudaStream stream) {
      start(kernels::launch(sum_rows, 1, 1, 0, stream, o.input<float>(0), count, o.output<float>(0)));
    });
  } else if (op == "store_gradient") {
    add([](const Operands& o, CudaStream stream) {
      start(kernels::launch(keep_gradient, 1, 1, 0, stream, o.input<float>(0), o.output<float>(0), o.run));
    });
  } else if (op == "gradient_stats") {
    const auto floats = static_cast<int>(graph.type(node.outputs[0]).elements());
    add([floats](const Operands& o, CudaStream stream) {
      start(kernels::launch(measure, 1, 1, 0, stream, o.input<float>(1), o.output<float>(0), floats));
    });
  } else if (op == "select_scalars") {
    const auto columns = static_cast<int>(graph.scalars.size());
    add([columns](const Operands& o, CudaStream stream) {
      start(kernels::launch(select_row, 1, 1, 0, stream, o.input<int64_t>(0), o.schedule, o.selected, columns));
    });
  } else if (op == "sgd_walk") {
    const int table = lowering.table(sizeof(Entry), [](const Operands& o, void* host) {
      const Entry entry{o.input<float>(5), o.output<float>(0)};
      std::memcpy(host, &entry, sizeof(entry));
    });
    add([table](const Operands& o, CudaStream stream) {
      start(kernels::launch(descend, 1, 1, 0, stream, o.table<Entry>(table), o.input<float>(0), o.input<float>(1),
                            static_cast<const kernels::Status*>(o.status)));
      start(kernels::launch(count_update, 1, 1, 0, stream, bound_state->counters, bound_state->scale,
                            static_cast<const kernels::Status*>(o.status)));
    });
  }
  return lowering;
}

/// x [N] -> total, and its sum as the gradient of one parameter; in evaluation also an output. scheduled: the rate is
/// selected on the device.
Graph make_graph(bool trains, bool scheduled = false) {
  Graph graph;
  graph.phase = trains ? graph::Phase::train : graph::Phase::evaluate;
  graph.totals = {"loss"};
  graph.parameters.push_back({.name = "w", .shape = Shape({})});
  const ValueId x = graph.add_value({DType::f32, 1, Shape({})}, Place::input, 0);
  graph.inputs = {{"x", x}};
  const ValueId loaded = graph.emit("load", {x});
  graph.value(loaded).offset = 0;
  graph.emit("total", {loaded}, {{"slot", int64_t{0}}});
  if (!trains) {
    const ValueId stored = graph.emit("store", {loaded}, {{"slot", int64_t{0}}});
    graph.outputs = {{"y", stored}};
    return graph;
  }
  const ValueId sum = graph.emit("batch_sum", {loaded}, {}, "", {}, Stage::backward);
  graph.value(sum).offset = 256;
  const ValueId gradient = graph.emit("store_gradient", {sum}, {{"slot", int64_t{0}}}, "", {}, Stage::backward);
  const int32_t rate_slot = graph.add_scalar("rate");
  ValueId rate = graph.scalar_value(rate_slot);
  if (scheduled) {
    const ValueId counters = graph.add_value({DType::i64, 0, Shape({4})}, Place::state, 1);
    rate =
        graph.emit("select_scalars", {counters}, {{"slots", std::vector<int64_t>{rate_slot}}}, "", {}, Stage::update);
  }
  const ValueId ratio = graph.scalar_value(graph.add_scalar("ratio"));
  const ValueId first = graph.scalar_value(graph.add_scalar("first"));
  const ValueId parameter = graph.add_value({DType::f32, 0, Shape({})}, Place::parameter, 0);
  const ValueId stats =
      graph.emit("gradient_stats", {ratio, gradient}, {{"clip_norm", 0.0}, {"scaled", false}}, "", {}, Stage::update);
  graph.value(stats).offset = 256;
  graph.add_node("sgd_walk", {rate, ratio, first, stats, parameter, gradient},
                 {{"momentum", 0.0},
                  {"dampening", 0.0},
                  {"nesterov", false},
                  {"rate_scale", std::vector<double>{1}},
                  {"shadow", "none"},
                  {"shadowed", std::vector<int64_t>{}},
                  {"weight_decay", std::vector<double>{0}}},
                 "sgd", {}, Stage::update);
  return graph;
}

/// The device, a runtime, a plan and what it is bound to.
class Fixture {
 public:
  explicit Fixture(bool graphs = true)
      : device(open_device(0)),
        memory(device),
        block(memory.allocate(4 * 256, "test")),
        arena(memory.allocate(20480, "test")),
        runtime(device, {.graphs = graphs, .lower = &lower_by_hand}) {
    values = reinterpret_cast<float*>(block.bytes());
    bindings.arena = arena.bytes();
    bindings.parameters = {values};
    bindings.gradients = {values + 64};
    bindings.scale = values + 128;
    bindings.counters = reinterpret_cast<int64_t*>(values + 192);
    bindings.scalars = scalars.data();
    const float one = 1;
    memory.write(bindings.scale, &one, sizeof(one));
    bound_state = &bindings;
    program = runtime.compile(graph, kSamples, bindings);
  }
  void run(StepList list, float x, bool accumulate = false) {
    std::vector<float> rows(kSamples, x);
    const void* const inputs[] = {rows.data()};
    program->run(list, {.inputs = inputs, .accumulate = accumulate, .attempt = attempt});
  }
  std::vector<float> evaluate(float x) {
    if (!evaluation) evaluation = runtime.compile(evaluation_graph, kEvaluated, bindings);
    const std::vector<float> rows(kEvaluated, x);
    std::vector<float> y(kEvaluated, -1);
    const void* const inputs[] = {rows.data()};
    void* const outputs[] = {y.data()};
    evaluation->run(StepList::micro_batch, {.inputs = inputs, .outputs = outputs});
    return y;
  }
  Report report(int in_flight = 0) {
    Report report;
    EXPECT_TRUE(runtime.report(in_flight, report));
    return report;
  }
  float parameter() {
    float value = 0;
    memory.read(&value, values, sizeof(value));
    return value;
  }

  Graph graph = make_graph(true), evaluation_graph = make_graph(false);
  std::vector<float> scalars = {0.5f, 1.0f, 0.0f};  // rate, ratio, first
  int64_t attempt = 0;
  OpenDevice device;
  DeviceMemory memory;
  DeviceBlock block, arena;
  CudaRuntime runtime;
  Bindings bindings;
  float* values = nullptr;
  std::unique_ptr<Program> program, evaluation;
};

constexpr StepList kBoth = StepList::micro_batch_and_update;

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

// ---- errors

/// All that a fixture can do. Two runs are never unreported when it begins, so that it can be done after an error.
void do_everything(Fixture& f) {
  f.run(StepList::micro_batch, 1);
  f.run(kBoth, 2, true);
  f.report(1);
  f.evaluate(3);
  f.report(1);
  f.run(StepList::update, 0);
  f.report();
  f.report();
  f.program->refresh_shadows();
}

bool tidies_up(const std::string& call) {
  const std::set<std::string> names = {"cudaFree", "cudaFreeHost", "cudaGraphDestroy", "cudaGraphExecDestroy"};
  return names.count(call) > 0;
}

TEST(CudaErrors, EachCallMayFailOnceAndNothingIsLost) {
  const simt::Live before = simt::live();
  int64_t calls = 0;
  {
    simt::reset_device();
    Fixture f;
    do_everything(f);
    calls = simt::calls();
  }
  ASSERT_GT(calls, 60);
  for (int64_t n = 1; n <= calls; ++n) {
    simt::reset_device();
    simt::fail_call(n);
    std::optional<Fixture> f;
    std::string said;
    try {
      f.emplace();
      do_everything(*f);
    } catch (const Error& error) {
      said = error.what();
      EXPECT_EQ(error.code(), ErrorCode::backend);
    }
    SCOPED_TRACE(std::to_string(n) + ": " + simt::failed_call() + ": " + said);
    // What only tidies up may fail in silence.
    if (said.empty())
      EXPECT_TRUE(tidies_up(simt::failed_call()));
    else
      EXPECT_NE(said.find("gpu 0"), std::string::npos);
    if (f) {
      Report report;
      while (f->runtime.report(0, report)) {
      }
      const float start = f->parameter();
      f->run(StepList::micro_batch, 1);
      f->run(kBoth, 2, true);
      f->report();
      EXPECT_EQ(f->report().stats[0], 15);
      EXPECT_EQ(f->parameter(), start - 7.5f);
      EXPECT_EQ(f->evaluate(4), std::vector<float>(kEvaluated, 4));
      f->report();
    }
    f.reset();
    EXPECT_EQ(simt::live(), before);
  }
  simt::reset_device();
}

TEST(CudaErrors, ALostDeviceIsSaidAndLetsGo) {
  const simt::Live before = simt::live();
  for (const int64_t n : {1, 5, 9, 12}) {
    simt::reset_device();
    {
      Fixture f;
      f.run(kBoth, 1);
      simt::fail_call(n, cudaErrorIllegalAddress, true);
      std::string said;
      try {
        for (int run = 0; run < 3; ++run) {
          f.report();
          f.run(kBoth, 1);
        }
      } catch (const Error& error) {
        said = error.what();
      }
      EXPECT_NE(said.find("is lost for this process: start the program again"), std::string::npos) << said;
      EXPECT_THROW(f.run(kBoth, 1), Error);
    }
    EXPECT_EQ(simt::live(), before);
    simt::reset_device();
    Fixture f;
    f.run(kBoth, 2);
    f.report();
    EXPECT_EQ(f.parameter(), -5);
  }
}

TEST(CudaErrors, OutOfMemoryInAnyAllocationSaysSoAndTheDeviceGoesOn) {
  const simt::Live before = simt::live();
  for (int64_t n = 1; n < 60; ++n) {
    simt::reset_device();
    simt::fail_call(n, cudaErrorMemoryAllocation);
    try {
      Fixture f;
    } catch (const Error& error) {
      EXPECT_TRUE(error.code() == ErrorCode::memory || simt::failed_call() == "cudaGetDeviceCount") << error.what();
    }
    EXPECT_EQ(simt::live(), before);
  }
  simt::reset_device();
}

TEST(CudaMemory, IsZeroAndExactAndSaysWhatItLacks) {
  const OpenDevice device = open_device(0);
  DeviceMemory memory(device);
  const int64_t before = memory.available_bytes();
  void* const block = memory.allocate(1000, "gradients");
  EXPECT_EQ(before - memory.available_bytes(), 1000);
  std::vector<char> bytes(1000, 1);
  memory.read(bytes.data(), block, 1000);
  EXPECT_EQ(bytes, std::vector<char>(1000, 0));
  memory.release(block);
  EXPECT_EQ(memory.available_bytes(), before);
  EXPECT_EQ(memory.allocate(0, "nothing"), nullptr);
}

TEST(CudaMemory, WhatDoesNotFitIsRefusedWithTheNumbers) {
  simt::reset_device();
  simt::emulated_device().memory_bytes = 5000000;
  const OpenDevice device = open_device(0);
  DeviceMemory memory(device);
  const DeviceBlock half(memory.allocate(2500000, "parameters"));
  try {
    memory.allocate(3000000, "activations");
    ADD_FAILURE() << "more than the device has was given";
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_EQ(error.code(), ErrorCode::memory);
    EXPECT_EQ(error.field(), "activations");
    EXPECT_NE(said.find("needs 3,000,000 bytes on gpu 0 (Emulated GPU), 2,500,000 of 5,000,000 are free"),
              std::string::npos)
        << said;
  }
  EXPECT_TRUE(DeviceBlock(memory.allocate(2500000, "activations")));
  simt::reset_device();
}

}  // namespace
}  // namespace brisk::backend::cuda
