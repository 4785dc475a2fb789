// A small plan whose kernels and lowerings are written here, bound to memory of the emulated device: for tests of the
// CUDA backend's runtime that shall not depend on the library's kernels.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/cuda/runtime/memory.h"
#include "backend/cuda/runtime/runtime.h"
#include "graph/op_table.h"
#include "kernels/common/cuda.h"

namespace brisk::backend::cuda {

using graph::Graph;
using graph::Place;
using graph::Stage;
using graph::ValueId;

inline constexpr int64_t kSamples = 5;
inline constexpr int64_t kEvaluated = 100;  // so that the plan of evaluation lies in the block otherwise

// ---- kernels: one thread does all

/// A negative value is an error of its row.
__global__ inline void add_rows(const float* x, int count, double* totals, kernels::Status* status, int node) {
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

__global__ inline void sum_rows(const float* x, int count, float* y) {
  float sum = 0;
  for (int i = 0; i < count; ++i) sum += x[i];
  *y = sum;
}

/// The number of the attempt comes in, so that it matters what a run is told.
__global__ inline void keep_gradient(const float* dy, float* gradient, const kernels::RunState* run) {
  const float value = *dy + 100 * static_cast<float>(run->attempt);
  *gradient = run->accumulate ? *gradient + value : value;
}

__global__ inline void measure(const float* gradient, float* stats, int count) {
  for (int i = 0; i < count; ++i) stats[i] = 0;
  stats[0] = *gradient < 0 ? -*gradient : *gradient;
}

struct Entry {
  const float* gradient;
  float* parameter;
};

__global__ inline void descend(const Entry* table, const float* rate, const float* ratio,
                               const kernels::Status* status) {
  if (status->kind == kernels::Status::kNone) *table->parameter -= *rate * *ratio * *table->gradient;
}

__global__ inline void select_row(const int64_t* counters, const float* schedule, float* selected, int columns) {
  for (int i = 0; i < columns; ++i) selected[i] = schedule[counters[0] % kScheduledUpdates * columns + i];
}

__global__ inline void count_update(int64_t* counters, float* scale, const kernels::Status* status) {
  if (status->kind != kernels::Status::kNone) return;
  counters[0] += 1;
  *scale *= 2;
}

inline void start(cudaError_t error) { check(error, "starting a kernel"); }

/// Counters and scale are no operands of the operations here: the walk's lowering finds them in the bindings.
inline const Bindings* bound_state = nullptr;

inline Lowering lower_by_hand(const Graph& graph, const std::vector<int32_t>& nodes, int64_t samples, const Profile&,
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
inline Graph make_graph(bool trains, bool scheduled = false) {
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

inline constexpr StepList kBoth = StepList::micro_batch_and_update;

}  // namespace brisk::backend::cuda
