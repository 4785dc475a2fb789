// Runs a plan on the pool: one entry a run. Inside, the workers go through the same intervals with a barrier between
// two; each starts with its share of an interval's units and then helps the others. Who computes a unit changes
// nothing.
#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "core/arena.h"
#include "core/pool.h"
#include "graph/op_table.h"

namespace brisk::backend::cpu {
namespace {

using graph::Graph;
using graph::Node;
using graph::Place;
using graph::ValueId;

/// One phase of one step within an interval.
struct Item {
  Phase phase;
  size_t step = 0;
  int64_t first = 0;  ///< its units are [first, first + phase.units) of the interval
};

/// Phases that run at the same time.
struct Interval {
  size_t first_item = 0;
  size_t items = 0;
  int64_t units = 0;
  bool has_teams = false;
};

/// Next unit of one worker's share; others help when theirs is done.
struct alignas(64) Cursor {
  std::atomic<int64_t> next{0};
};

struct BoundStep {
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  Operands operands;
};

/// A pointer that changes with each run.
struct External {
  const void** input = nullptr;
  void** output = nullptr;
  int32_t slot = 0;
};

class CpuRuntime;

class CpuProgram : public Program {
 public:
  CpuProgram(CpuRuntime& runtime, const Graph& graph, int64_t samples, const Bindings& bindings);
  void run(StepList list, const RunArguments& arguments) override;

 private:
  struct Lowered {
    size_t step;
    graph::Stage stage;
    int32_t wave;
    std::vector<Phase> phases;
  };
  void bind(const Graph& graph, const std::vector<int32_t>& nodes, const Bindings& bindings);
  void arrange(std::vector<Lowered>& lowered);
  void work(int worker, size_t first, size_t last);
  void run_units(const Interval& interval, int worker, int64_t first, int64_t last);
  void help_teams(const Interval& interval);

  CpuRuntime& runtime_;
  std::vector<BoundStep> steps_;
  std::vector<External> externals_;
  std::vector<External> parameters_;  ///< read ones
  std::vector<Item> items_;
  std::vector<Interval> intervals_;
  size_t update_begins_ = 0;     ///< first interval of the update stage
  std::vector<Cursor> cursors_;  ///< one an interval and worker
  Status status_;
  RunState state_;
  Report report_;               ///< but for the fault the same for all runs
  std::vector<double> totals_;  ///< two a total, of one run
};

class CpuRuntime : public Runtime {
 public:
  CpuRuntime(Isa isa, int threads) : isa_(isa), pool_(threads) {}
  std::unique_ptr<Program> compile(const Graph& graph, int64_t samples, const Bindings& bindings) override {
    return std::make_unique<CpuProgram>(*this, graph, samples, bindings);
  }
  int threads() const override { return pool_.threads(); }
  int64_t scratch_bytes() const override { return scratch_.bytes(); }
  int64_t entries() const override { return pool_.entries(); }
  bool report(int, Report& report) override {
    if (!reported_) return false;
    report = *std::exchange(reported_, nullptr);
    return true;
  }

  /// Runs end before run() returns: there is never more than one to report.
  void keep(const Report& report) { reported_ = &report; }

  void reserve_scratch(int64_t bytes_each) {
    bytes_each = (bytes_each + 63) / 64 * 64;
    if (bytes_each <= scratch_each_) return;
    scratch_ = Arena(bytes_each * pool_.threads(), "scratch of the workers");
    scratch_each_ = bytes_each;
  }
  char* scratch(int worker) const { return reinterpret_cast<char*>(scratch_.data()) + worker * scratch_each_; }
  Isa isa() const { return isa_; }
  Pool& pool() { return pool_; }

 private:
  const Isa isa_;
  Pool pool_;
  Arena scratch_;
  int64_t scratch_each_ = 0;
  const Report* reported_ = nullptr;
};

CpuProgram::CpuProgram(CpuRuntime& runtime, const Graph& graph, int64_t samples, const Bindings& bindings)
    : runtime_(runtime), totals_(2 * graph.totals.size(), 0.0) {
  report_.totals = totals_.data();
  report_.scale = bindings.scale;
  report_.counters = bindings.counters;
  std::vector<Lowered> lowered;
  int64_t scratch = 0;
  for (size_t i = 0; i < graph.nodes.size();) {
    std::vector<int32_t> nodes = {static_cast<int32_t>(i++)};
    while (i < graph.nodes.size() && graph.nodes[i].group >= 0 && graph.nodes[i].group == graph.nodes[i - 1].group)
      nodes.push_back(static_cast<int32_t>(i++));
    const Node& node = graph.nodes[static_cast<size_t>(nodes.back())];
    Lowering lowering = lower(graph, nodes, samples, runtime.isa(), node.implementation);
    scratch = std::max(scratch, lowering.scratch_bytes);
    if (node.op->name == "gradient_stats")
      report_.stats = reinterpret_cast<const float*>(bindings.arena + graph.value(node.outputs[0]).offset);
    const bool shared = node.op->view && graph.value(node.outputs[0]).alias != graph::kNoValue;
    lowered.push_back(
        {steps_.size(), node.stage, node.wave, shared ? std::vector<Phase>() : std::move(lowering.phases)});
    bind(graph, nodes, bindings);
  }
  // Pointers into the vectors, once these no longer move.
  for (BoundStep& step : steps_) {
    step.operands.in = step.inputs.data();
    step.operands.out = step.outputs.data();
    step.operands.run = &state_;
  }
  runtime.reserve_scratch(scratch);
  arrange(lowered);
  cursors_ = std::vector<Cursor>(intervals_.size() * static_cast<size_t>(runtime.pool().threads()));
}

void CpuProgram::bind(const Graph& graph, const std::vector<int32_t>& nodes, const Bindings& bindings) {
  const auto slot = [](const std::vector<float*>& list, int32_t index) -> void* {
    return list[static_cast<size_t>(index)];
  };
  const auto address = [&](ValueId id) -> void* {
    const graph::Value& value = graph.value(id);
    switch (value.place) {
      case Place::activation:
        return bindings.arena + value.offset;
      case Place::parameter:
      case Place::buffer:
        return slot(bindings.parameters, value.slot);
      case Place::gradient:
        return slot(bindings.gradients, value.slot);
      case Place::moment1:
        return slot(bindings.moment1, value.slot);
      case Place::moment2:
        return slot(bindings.moment2, value.slot);
      case Place::staged:
        return slot(bindings.staged, value.slot);
      case Place::shadow:
        return bindings.shadows[static_cast<size_t>(value.slot)];
      case Place::scalar:
        return const_cast<float*>(bindings.scalars) + value.slot;  // only read
      case Place::totals:
        return totals_.data() + 2 * value.slot;
      case Place::state:
        return value.slot == 0 ? static_cast<void*>(bindings.scale) : bindings.counters;
      case Place::input:
      case Place::output:
        return nullptr;
    }
    return nullptr;
  };
  steps_.emplace_back();
  BoundStep& step = steps_.back();
  for (const ValueId id : bound_inputs(graph, nodes)) step.inputs.push_back(address(id));
  for (const ValueId id : bound_outputs(graph, nodes)) step.outputs.push_back(address(id));
  const Node& node = graph.nodes[static_cast<size_t>(nodes.back())];
  step.operands.node = nodes.back();
  step.operands.workspace = node.workspace_bytes > 0 ? bindings.arena + node.workspace_offset : nullptr;
  // The inner vectors' buffers stay where they are when steps_ grows.
  const std::vector<ValueId> inputs = bound_inputs(graph, nodes), outputs = bound_outputs(graph, nodes);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const graph::Value& value = graph.value(inputs[i]);
    if (value.place == Place::input) externals_.push_back({&step.inputs[i], nullptr, value.slot});
    if (value.place == Place::parameter || value.place == Place::buffer)
      parameters_.push_back({&step.inputs[i], nullptr, value.slot});
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    if (graph.value(outputs[i]).place == Place::output)
      externals_.push_back({nullptr, &step.outputs[i], graph.value(outputs[i]).slot});
}

void CpuProgram::arrange(std::vector<Lowered>& lowered) {
  bool updating = false;
  for (size_t first = 0; first < lowered.size();) {
    size_t last = first;
    size_t phases = 0;
    for (; last < lowered.size() && lowered[last].wave == lowered[first].wave; ++last)
      phases = std::max(phases, lowered[last].phases.size());
    if (!updating && lowered[first].stage == graph::Stage::update) {
      updating = true;
      update_begins_ = intervals_.size();
    }
    for (size_t phase = 0; phase < phases; ++phase) {
      Interval interval{items_.size(), 0, 0, false};
      for (size_t i = first; i < last; ++i) {
        if (phase >= lowered[i].phases.size()) continue;
        items_.push_back({lowered[i].phases[phase], lowered[i].step, interval.units});
        interval.units += items_.back().phase.units;
        ++interval.items;
        interval.has_teams |= items_.back().phase.team != nullptr;
      }
      intervals_.push_back(interval);
    }
    first = last;
  }
  if (!updating) update_begins_ = intervals_.size();
}

void CpuProgram::run(StepList list, const RunArguments& arguments) {
  for (const External& external : externals_) {
    if (external.input) *external.input = arguments.inputs ? arguments.inputs[external.slot] : nullptr;
    if (external.output) *external.output = arguments.outputs ? arguments.outputs[external.slot] : nullptr;
  }
  if (arguments.parameters)
    for (const External& parameter : parameters_) *parameter.input = arguments.parameters[parameter.slot];
  std::fill(totals_.begin(), totals_.end(), 0.0);
  status_.kind.store(Status::none, std::memory_order_relaxed);
  status_.node = -1;
  state_ = {&status_, arguments.accumulate, arguments.attempt, arguments.first_sample};
  const size_t first = list == StepList::update ? update_begins_ : 0;
  const size_t last = list == StepList::micro_batch ? update_begins_ : intervals_.size();
  if (first < last) {
    const auto threads = static_cast<size_t>(runtime_.pool().threads());
    for (size_t i = first; i < last; ++i)
      for (size_t worker = 0; worker < threads; ++worker)
        cursors_[i * threads + worker].next.store(
            intervals_[i].units * static_cast<int64_t>(worker) / static_cast<int64_t>(threads),
            std::memory_order_relaxed);
    for (const Item& item : items_)
      if (item.phase.team) item.phase.team->open(runtime_.pool().spin_ns());
    runtime_.pool().run([&](int worker) { work(worker, first, last); });
  }
  report_.fault = Fault();
  Fault& fault = report_.fault;
  switch (status_.kind.load(std::memory_order_relaxed)) {
    case Status::label:
      fault.kind = Fault::Kind::label;
      break;
    case Status::nonfinite_gradient:
      fault.kind = Fault::Kind::nonfinite_gradient;
      break;
    case Status::user_op:
      fault.kind = Fault::Kind::user_op;
      fault.exception = std::exchange(status_.exception, nullptr);
      break;
    default:
      break;
  }
  fault.node = status_.node;
  fault.sample = status_.sample;
  fault.value = status_.value;
  runtime_.keep(report_);
}

void CpuProgram::work(int worker, size_t first, size_t last) {
  const int threads = runtime_.pool().threads();
  if (threads == 1) {
    for (size_t i = first; i < last; ++i) run_units(intervals_[i], worker, 0, intervals_[i].units);
    return;
  }
  for (size_t i = first; i < last; ++i) {
    const Interval& interval = intervals_[i];
    // A share is taken in a few pieces, so that there is something to help with.
    const int64_t piece = std::max<int64_t>(1, interval.units / (4 * threads));
    for (int turn = 0; turn < threads; ++turn) {
      const int owner = (worker + turn) % threads;
      std::atomic<int64_t>& next = cursors_[i * static_cast<size_t>(threads) + static_cast<size_t>(owner)].next;
      const int64_t end = interval.units * (owner + 1) / threads;
      while (next.load(std::memory_order_relaxed) < end) {
        const int64_t at = next.fetch_add(piece, std::memory_order_relaxed);
        if (at >= end) break;
        run_units(interval, worker, at, std::min(end, at + piece));
      }
    }
    if (interval.has_teams) help_teams(interval);
    if (i + 1 < last) runtime_.pool().barrier().wait();
  }
}

/// All units of the interval are taken: what is left are loops of those that are calling users' operations.
void CpuProgram::help_teams(const Interval& interval) {
  for (size_t k = interval.first_item; k < interval.first_item + interval.items; ++k)
    if (items_[k].phase.team) items_[k].phase.team->help();
}

void CpuProgram::run_units(const Interval& interval, int worker, int64_t first, int64_t last) {
  for (size_t k = interval.first_item; k < interval.first_item + interval.items && first < last; ++k) {
    const Item& item = items_[k];
    const int64_t end = std::min(last, item.first + item.phase.units);
    if (first >= end) continue;
    Operands operands = steps_[item.step].operands;
    operands.scratch = runtime_.scratch(worker);
    item.phase.function(item.phase.parameters.get(), operands, first - item.first, end - item.first);
    first = end;
  }
}

}  // namespace

std::unique_ptr<Runtime> make_runtime(Isa isa, int threads) { return std::make_unique<CpuRuntime>(isa, threads); }

}  // namespace brisk::backend::cpu
