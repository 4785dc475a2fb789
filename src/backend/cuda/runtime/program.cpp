#include "backend/cuda/runtime/program.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "brisk/error.h"
#include "brisk/kernels/layout.h"
#include "core/text.h"
#include "graph/op_table.h"

namespace brisk::backend::cuda {

using graph::Graph;
using graph::Place;
using graph::ValueId;

CudaProgram::CudaProgram(CudaRuntime& runtime, const Graph& graph, int64_t samples, const Bindings& bindings)
    : runtime_(runtime), graph_(graph), bindings_(bindings) {
  std::vector<int64_t> tables;
  for (const std::vector<int32_t>& nodes : run_units(graph)) {
    const graph::Node& node = graph.nodes[static_cast<size_t>(nodes.back())];
    Unit& unit = units_.emplace_back();
    unit.node = nodes.back();
    unit.update = node.stage == graph::Stage::update;
    unit.lowering = runtime.options().lower(graph, nodes, samples, runtime.device().facts.profile, node.implementation);
    unit.inputs = bound_inputs(graph, nodes);
    unit.outputs = bound_outputs(graph, nodes);
    unit.workspace = node.workspace_bytes > 0 ? bindings.arena + node.workspace_offset : nullptr;
    for (const Table& table : unit.lowering.tables) tables.push_back(table.bytes);
  }
  layout_ = run_layout(graph, samples, tables);
  results_ = {.at = layout_.results,
              .bytes = layout_.results_bytes,
              .counters = bindings.counters,
              .scale = bindings.scale,
              .stats = layout_.stats_bytes > 0 ? layout_.stats - layout_.results : -1,
              .totals = layout_.totals - layout_.results,
              .totals_bytes = static_cast<int64_t>(graph.totals.size() * 2 * sizeof(double))};
  tables_ = make_pinned(layout_.tables_bytes);
  schedule_ = make_pinned(layout_.schedule_bytes);
  runtime.reserve(layout_);
}

CudaProgram::~CudaProgram() { runtime_.settle(); }

// ---- addresses

void* CudaProgram::address(ValueId id, int parity) const {
  const graph::Value& value = graph_.value(id);
  const auto slot = static_cast<size_t>(std::max(value.slot, 0));
  char* const block = runtime_.block();
  char* const upload = block + layout_.uploads[parity];
  switch (value.place) {
    case Place::activation:
      if (value.producer >= 0 && graph_.nodes[static_cast<size_t>(value.producer)].op->name == "gradient_stats")
        return block + layout_.stats;  // among the results; its place in the arena stays empty
      return bindings_.arena + value.offset;
    case Place::input:
      return upload + layout_.inputs[slot];
    case Place::output:
      return block + layout_.outputs[slot];
    case Place::parameter:
    case Place::buffer:
      return parameters_.empty() || value.producer >= 0 ? bindings_.parameters[slot]
                                                        : const_cast<float*>(parameters_[slot]);
    case Place::gradient:
      return bindings_.gradients[slot];
    case Place::moment1:
      return bindings_.moment1[slot];
    case Place::moment2:
      return bindings_.moment2[slot];
    case Place::staged:
      return bindings_.staged[slot];
    case Place::shadow:
      return bindings_.shadows[slot];
    case Place::scalar: {
      char* const scalars = value.producer >= 0 ? block + layout_.selected : upload + layout_.scalars;
      return scalars + slot * sizeof(float);
    }
    case Place::state:
      return value.slot == 0 ? static_cast<void*>(bindings_.scale) : bindings_.counters;
    case Place::totals:
      return block + layout_.totals + slot * 2 * sizeof(double);
  }
  return nullptr;
}

Operands CudaProgram::operands(const Unit& unit, int parity, bool accumulate) const {
  char* const block = runtime_.block();
  return {.in = unit.in[parity].data(),
          .out = unit.out[parity].data(),
          .accumulate = accumulate,
          .counters = reinterpret_cast<int32_t*>(block + layout_.counters),
          .node = unit.node,
          .run = reinterpret_cast<const kernels::RunState*>(block + layout_.uploads[parity]),
          .schedule = reinterpret_cast<const float*>(block + layout_.schedule),
          .selected = reinterpret_cast<float*>(block + layout_.selected),
          .status = reinterpret_cast<kernels::Status*>(block + layout_.results),
          .tables = unit.tables.data(),
          .workspace = unit.workspace};
}

void CudaProgram::bind() {
  for (auto& by_accumulate : graphs_)
    for (auto& by_parity : by_accumulate)
      for (GraphExec& graph : by_parity) graph = GraphExec();
  int64_t at = 0;
  for (Unit& unit : units_) {
    for (int parity = 0; parity < 2; ++parity) {
      unit.in[parity].clear();
      unit.out[parity].clear();
      for (const ValueId id : unit.inputs) unit.in[parity].push_back(address(id, parity));
      for (const ValueId id : unit.outputs) unit.out[parity].push_back(address(id, parity));
    }
    unit.tables.clear();
    Operands known = operands(unit, 0, false);
    known.run = nullptr;
    known.tables = nullptr;
    if (unit.lowering.prepare) unit.lowering.prepare(known);
    for (const Table& table : unit.lowering.tables) {
      table.fill(known, tables_.bytes() + at);
      unit.tables.push_back(runtime_.block() + layout_.tables + at);
      at += table_stride(table.bytes);
    }
  }
  tables_sent_ = false;
  generation_ = runtime_.generation();
}

/// Binds anew where what was bound has moved.
void CudaProgram::follow(float* const* parameters) {
  runtime_.reserve(layout_);
  const size_t count = parameters ? graph_.parameters.size() : 0;
  const bool same = parameters_.size() == count && std::equal(parameters_.begin(), parameters_.end(), parameters);
  if (same && generation_ == runtime_.generation()) return;
  if (generation_ >= 0) runtime_.wait();  // the tables may be on their way, the graphs may run
  generation_ = -1;                       // should this fail
  parameters_.assign(parameters, parameters + count);
  bind();
}

// ---- a run

void CudaProgram::run(StepList list, const RunArguments& arguments) {
  const Current current(runtime_.device().index);
  try {
    queue(list, arguments);
  } catch (...) {
    runtime_.settle();  // so that the next run finds nothing half done
    throw;
  }
}

void CudaProgram::queue(StepList list, const RunArguments& arguments) {
  follow(arguments.parameters);
  const bool computes = list != StepList::update;  // else inputs may be gone
  stage(runtime_.staging(), arguments, computes);
  if (runtime_.send(this, layout_, computes ? layout_.upload_bytes : layout_.head_bytes)) {
    tables_sent_ = false;
    scheduled_ = 0;
  }
  send_constants();
  if (list != StepList::micro_batch) send_schedule(arguments.scheduled);
  compute(list, arguments.accumulate && computes);
  if (fetch_outputs(arguments.outputs))
    check(cudaStreamSynchronize(runtime_.device().compute.get()), "waiting for outputs");
  results_.list = list;
  runtime_.finish(results_);
}

void CudaProgram::stage(char* staging, const RunArguments& arguments, bool with_inputs) const {
  const kernels::RunState state{arguments.attempt, arguments.first_sample, arguments.accumulate ? 1 : 0};
  std::memcpy(staging, &state, sizeof(state));
  if (!graph_.scalars.empty())
    std::memcpy(staging + layout_.scalars, bindings_.scalars, graph_.scalars.size() * sizeof(float));
  for (size_t i = 0; with_inputs && i < graph_.inputs.size(); ++i)
    if (layout_.input_bytes[i] > 0 && arguments.inputs && arguments.inputs[i])
      std::memcpy(staging + layout_.inputs[i], arguments.inputs[i], static_cast<size_t>(layout_.input_bytes[i]));
}

void CudaProgram::send_constants() {
  if (tables_sent_ || layout_.tables_bytes == 0) return;
  check(cudaMemcpyAsync(runtime_.block() + layout_.tables, tables_.get(), static_cast<size_t>(layout_.tables_bytes),
                        cudaMemcpyHostToDevice, runtime_.device().compute.get()),
        "copying the tables of walks");
  tables_sent_ = true;
}

void CudaProgram::send_schedule(int64_t scheduled) {
  if (layout_.schedule_bytes == 0 || scheduled == scheduled_) return;
  const auto row_bytes = static_cast<int64_t>(graph_.scalars.size() * sizeof(float));
  if (scheduled < scheduled_) scheduled_ = 0;  // counted anew
  for (int64_t first = std::max(scheduled_, scheduled - kScheduledUpdates); first < scheduled;) {
    const int64_t row = first % kScheduledUpdates;
    const int64_t rows = std::min(scheduled - first, kScheduledUpdates - row);
    char* const mirror = schedule_.bytes() + row * row_bytes;
    const auto bytes = static_cast<size_t>(rows * row_bytes);
    std::memcpy(mirror, reinterpret_cast<const char*>(bindings_.schedule) + row * row_bytes, bytes);
    check(cudaMemcpyAsync(runtime_.block() + layout_.schedule + row * row_bytes, mirror, bytes, cudaMemcpyHostToDevice,
                          runtime_.device().compute.get()),
          "copying the schedule");
    first += rows;
  }
  scheduled_ = scheduled;
}

void CudaProgram::compute(StepList list, bool accumulate) {
  const int parity = runtime_.parity();
  const cudaStream_t stream = runtime_.device().compute.get();
  if (!runtime_.options().graphs) {
    runtime_.count_entries(launch(list, accumulate, parity, stream));
    return;
  }
  GraphExec& graph = graphs_[static_cast<int>(list)][accumulate ? 1 : 0][parity];
  if (!graph) graph = capture(list, accumulate, parity);
  check(cudaGraphLaunch(graph.get(), stream), "starting the step's graph");
  runtime_.count_entries(1);
}

int64_t CudaProgram::launch(StepList list, bool accumulate, int parity, cudaStream_t stream) const {
  int64_t launches = 0;
  if (list != StepList::update && !accumulate) {  // a window begins; what went wrong in one holds its update back
    check(cudaMemsetAsync(runtime_.block() + layout_.results, 0, kStatusBytes, stream), "clearing the status");
    ++launches;
  }
  for (const Unit& unit : units_) {
    if (list == (unit.update ? StepList::micro_batch : StepList::update)) continue;
    const Operands bound = operands(unit, parity, accumulate);
    for (const Launch& kernel : unit.lowering.launches) {
      kernel.run(bound, stream);
      ++launches;
    }
  }
  return launches;
}

namespace {

/// Ends a capture whatever happened in it, so that the stream can be used again; an error when it has ended already.
void abandon_capture(cudaStream_t stream) noexcept {
  cudaGraph_t graph = nullptr;
  cudaStreamEndCapture(stream, &graph);
  const GraphHandle taken(graph);
  cudaGetLastError();
}

constexpr const char* kCapturing = "capturing the step as a CUDA graph (BRISK_CUDA_GRAPHS=off does without)";

}  // namespace

/// On a stream of its own: others may queue work on the compute stream meanwhile.
GraphExec CudaProgram::capture(StepList list, bool accumulate, int parity) const {
  const cudaStream_t stream = runtime_.capture_stream();
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), kCapturing);
  cudaGraph_t raw = nullptr;
  try {
    launch(list, accumulate, parity, stream);
    check(cudaStreamEndCapture(stream, &raw), kCapturing);
  } catch (...) {
    abandon_capture(stream);
    throw;
  }
  const GraphHandle graph(raw);
  cudaGraphExec_t executable = nullptr;
  check(cudaGraphInstantiate(&executable, graph.get(), 0), kCapturing);
  return GraphExec(executable);
}

bool CudaProgram::fetch_outputs(void* const* outputs) {
  bool any = false;
  for (size_t i = 0; outputs && i < graph_.outputs.size(); ++i) {
    if (!outputs[i] || layout_.output_bytes[i] == 0) continue;
    check(
        cudaMemcpyAsync(outputs[i], runtime_.block() + layout_.outputs[i], static_cast<size_t>(layout_.output_bytes[i]),
                        cudaMemcpyDeviceToHost, runtime_.device().compute.get()),
        "copying outputs");
    any = true;
  }
  return any;
}

void CudaProgram::refresh_shadows() {
  const Current current(runtime_.device().index);
  std::set<int32_t> done;
  for (const graph::Value& value : graph_.values) {
    if (value.place != Place::shadow || !done.insert(value.slot).second) continue;
    const auto slot = static_cast<size_t>(value.slot);
    kernels::cast({.count = value.type.elements(),
                   .from = DType::f32,
                   .to = value.type.dtype,
                   .x = bindings_.parameters[slot],
                   .y = bindings_.shadows[slot]},
                  runtime_.device().compute.get());
  }
  runtime_.count_entries(static_cast<int64_t>(done.size()));
}

}  // namespace brisk::backend::cuda
