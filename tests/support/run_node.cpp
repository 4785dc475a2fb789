// Builds a graph of one node, lowers it, and runs its phases in several ways over guarded, poisoned buffers.
#include "support/run_node.h"

#include <cmath>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <thread>

#include "core/denormals.h"
#include "core/text.h"
#include "graph/op_table.h"
#include "oracle/low_floats.h"
#include "support/guarded.h"

namespace brisk::test {
namespace {

using graph::Graph;
using graph::Node;
using graph::Place;
using graph::Value;
using graph::ValueId;

bool in_lanes(const Value& value) { return value.layout == graph::Layout::lanes; }

bool of_user(Place place) { return place == Place::input || place == Place::output; }

int64_t element_size(const Value& value) { return value.place == Place::totals ? 8 : size_of(value.type.dtype); }

/// Position of element `flat` (row-major, rows x N leading) in the value's memory.
size_t position(const Value& value, int64_t flat, int lanes) {
  if (!in_lanes(value)) return static_cast<size_t>(flat);
  const int64_t elements = value.type.elements(), sample = flat / elements, e = flat % elements;
  return static_cast<size_t>((sample / lanes * elements + e) * lanes + sample % lanes);
}

Guarded allocate(const Value& value, int64_t samples, int lanes) {
  int64_t count = value.type.elements();
  if (value.type.batched()) count *= in_lanes(value) ? (samples + lanes - 1) / lanes * lanes : samples;
  // A user's memory is aligned to its elements, no more.
  const int64_t size = element_size(value);
  return Guarded(count * size, of_user(value.place) ? static_cast<size_t>(size) : 0);
}

void write(const Value& value, Guarded& memory, size_t at, double x) {
  if (value.place == Place::totals) {
    memory.as<double>()[at] = x;
  } else {
    switch (value.type.dtype) {
      case DType::f32:
        memory.as<float>()[at] = static_cast<float>(x);
        break;
      case DType::f16:
      case DType::bf16:
        memory.as<uint16_t>()[at] = oracle::low_bits(value.type.dtype, x);
        break;
      case DType::i32:
        memory.as<int32_t>()[at] = static_cast<int32_t>(x);
        break;
      case DType::i64:
        memory.as<int64_t>()[at] = static_cast<int64_t>(x);
        break;
      default:
        memory.as<uint8_t>()[at] = static_cast<uint8_t>(x);
        break;
    }
  }
}

double read(const Value& value, const Guarded& memory, size_t at) {
  if (value.place == Place::totals) return memory.as<double>()[at];
  switch (value.type.dtype) {
    case DType::f32:
      return static_cast<double>(memory.as<float>()[at]);
    case DType::f16:
    case DType::bf16:
      return oracle::low_value(value.type.dtype, memory.as<uint16_t>()[at]);
    case DType::i32:
      return memory.as<int32_t>()[at];
    case DType::i64:
      return static_cast<double>(memory.as<int64_t>()[at]);
    default:
      return memory.as<uint8_t>()[at];
  }
}

/// Memory for a value; elements from `data`, poison in the lanes that no sample fills.
Guarded pack(const Value& value, const std::vector<double>& data, int64_t samples, int lanes) {
  Guarded memory = allocate(value, samples, lanes);
  for (size_t i = 0; i < data.size(); ++i) {
    write(value, memory, position(value, static_cast<int64_t>(i), lanes), data[i]);
  }
  return memory;
}

bool poison(const Value& value, const Guarded& memory, size_t at) {
  const auto size = static_cast<size_t>(element_size(value));
  const std::byte* first = memory.data() + at * size;
  // Integers may be -1.
  return value.type.dtype == DType::f32 &&
         std::all_of(first, first + size, [](std::byte b) { return b == Guarded::kPoison; });
}

/// How the units of a phase are run.
enum class Order { forward, backward, threads, in_place };
const char* name(Order order) {
  switch (order) {
    case Order::forward:
      return "in order";
    case Order::backward:
      return "in reverse";
    case Order::threads:
      return "on three threads";
    case Order::in_place:
      return "in place";
  }
  return "";
}

/// One node lowered for one instruction set, run as often as wanted from the same beginning.
class Runner {
 public:
  Runner(const NodeCase& node_case, const Graph& graph, const cpu::Call& call, Outcome& outcome)
      : case_(node_case), graph_(graph), call_(call), outcome_(outcome) {}

  void lower(const cpu::Implementation& implementation) { implementation.lower(call_, lowering_); }

  /// Runs and unpacks into the outcome; an order after the first must repeat its bits.
  void run(Order order, int in_place_input = -1) {
    FlushDenormals flush;
    begin(in_place_input);
    for (const cpu::Phase& phase : lowering_.phases) run_phase(phase, order);
    check_buffers(order, in_place_input);
    if (order == Order::forward) {
      keep();
    } else {
      compare(order);
    }
  }

 private:
  const Node& node() const { return graph_.nodes[0]; }
  const Value& output(size_t i) const { return graph_.value(node().outputs[i]); }
  void problem(const std::string& what) { outcome_.problems.push_back(what); }

  void begin(int in_place_input) {
    inputs_.clear();
    outputs_.clear();
    for (size_t i = 0; i < case_.inputs.size(); ++i) {
      inputs_.push_back(pack(graph_.value(node().inputs[i]), case_.inputs[i].data, call_.samples, call_.lanes()));
    }
    originals_ = inputs_;
    output_pointers_.clear();
    outputs_.reserve(node().outputs.size());
    for (size_t i = 0; i < node().outputs.size(); ++i) {
      outputs_.push_back(first_content(i));
      const int shared = i == 0 && in_place_input >= 0 ? in_place_input : shared_input(i);
      output_pointers_.push_back(shared >= 0 ? inputs_[static_cast<size_t>(shared)].data() : outputs_[i].data());
    }
    workspace_.emplace(lowering_.workspace_bytes);
    status_.kind = case_.faulted ? cpu::Status::label : cpu::Status::none;
    status_.sample = -1;
    state_ = {&status_, case_.run.accumulate, case_.run.attempt, case_.run.first_sample};
  }

  Guarded first_content(size_t i) const {
    const Value& value = output(i);
    if (i < case_.before.size()) return pack(value, case_.before[i], call_.samples, call_.lanes());
    if (value.place != Place::totals) return allocate(value, call_.samples, call_.lanes());
    return pack(value, {0, 0}, call_.samples, call_.lanes());
  }

  /// The input whose memory an output changes: the same slot of the same store.
  int shared_input(size_t i) const {
    const Value& out = output(i);
    constexpr Place kUpdated[] = {Place::parameter, Place::buffer,  Place::staged,
                                  Place::moment1,   Place::moment2, Place::state};
    if (std::find(std::begin(kUpdated), std::end(kUpdated), out.place) == std::end(kUpdated)) return -1;
    for (size_t k = 0; k < node().inputs.size(); ++k) {
      const Value& in = graph_.value(node().inputs[k]);
      if (in.place == out.place && in.slot == out.slot) return static_cast<int>(k);
    }
    return -1;
  }

  void run_units(const cpu::Phase& phase, Guarded& scratch, int64_t first, int64_t last, int64_t step) {
    std::vector<const void*> in;
    for (Guarded& memory : inputs_) in.push_back(memory.data());
    const std::vector<void*> out(output_pointers_.begin(), output_pointers_.end());
    const cpu::Operands operands{in.data(), out.data(), workspace_->as<char>(), scratch.as<char>(), &state_, 0};
    if (step == 0) {
      phase.function(phase.parameters.get(), operands, first, last);
      return;
    }
    for (int64_t unit = first; unit != last; unit += step) {
      phase.function(phase.parameters.get(), operands, unit, unit + 1);
    }
  }

  void run_phase(const cpu::Phase& phase, Order order) {
    constexpr int64_t kThreads = 3;
    std::vector<Guarded> scratches;
    for (int64_t t = 0; t < kThreads; ++t) scratches.emplace_back(lowering_.scratch_bytes);
    if (order == Order::threads) {
      std::vector<std::thread> threads;
      for (int64_t t = 0; t < kThreads; ++t) {
        const int64_t count = (phase.units - t + kThreads - 1) / kThreads;
        if (count <= 0) continue;
        threads.emplace_back([&, t, count] {
          FlushDenormals flush;
          run_units(phase, scratches[static_cast<size_t>(t)], t, t + count * kThreads, kThreads);
        });
      }
      for (std::thread& thread : threads) thread.join();
    } else if (order == Order::backward) {
      run_units(phase, scratches[0], phase.units - 1, -1, -1);
    } else {
      run_units(phase, scratches[0], 0, phase.units, 0);
    }
    for (const Guarded& scratch : scratches) {
      if (!scratch.intact()) problem("wrote outside its scratch");
    }
  }

  void check_buffers(Order order, int in_place_input) {
    if (!workspace_->intact()) problem("wrote outside its workspace");
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!inputs_[i].intact()) problem(cat("wrote outside input ", i));
      const bool shared = static_cast<int>(i) == in_place_input || is_shared(i);
      if (!shared && !inputs_[i].same_bytes(originals_[i])) problem(cat("changed input ", i, " ", name(order)));
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!outputs_[i].intact()) problem(cat("wrote outside output ", i));
    }
  }

  bool is_shared(size_t input) const {
    for (size_t i = 0; i < node().outputs.size(); ++i) {
      if (shared_input(i) == static_cast<int>(input)) return true;
    }
    return false;
  }

  /// The memory that output i was written to.
  const Guarded& result(size_t i) const {
    for (const Guarded& input : inputs_) {
      if (input.data() == output_pointers_[i]) return input;
    }
    return outputs_[i];
  }

  void keep() {
    outcome_.status = static_cast<cpu::Status::Kind>(status_.kind.load());
    outcome_.sample = status_.sample;
    outcome_.value = status_.value;
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Value& value = output(i);
      oracle::Array array = oracle::zeros(value.type, call_.samples);
      bool unwritten = false;
      for (size_t k = 0; k < array.data.size(); ++k) {
        const size_t at = position(value, static_cast<int64_t>(k), call_.lanes());
        array.data[k] = read(value, result(i), at);
        unwritten = unwritten || poison(value, result(i), at);
      }
      if (unwritten) problem(cat("output ", i, " depends on unused lanes, or some of it is not written"));
      outcome_.outputs.push_back(std::move(array));
      kept_.push_back(result(i));
    }
  }

  void compare(Order order) {
    if (status_.kind.load() != outcome_.status || status_.sample != outcome_.sample) {
      problem(cat("another status ", name(order)));
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const Value& value = output(i);
      const auto size = static_cast<size_t>(element_size(value));
      for (int64_t k = 0; k < outcome_.outputs[i].shape.count(); ++k) {
        const size_t at = position(value, k, call_.lanes()) * size;
        if (std::memcmp(kept_[i].data() + at, result(i).data() + at, size) == 0) continue;
        problem(cat("other bits in output ", i, " ", name(order), ", first at element ", k));
        break;
      }
    }
  }

  const NodeCase& case_;
  const Graph& graph_;
  const cpu::Call& call_;
  Outcome& outcome_;
  cpu::Lowering lowering_;
  std::vector<Guarded> inputs_, originals_, outputs_, kept_;
  std::vector<std::byte*> output_pointers_;
  std::optional<Guarded> workspace_;
  cpu::Status status_;
  cpu::RunState state_;
};

bool reads_memory_of_plan(Place place) { return place != Place::activation && !of_user(place); }

void declare_slots(Graph& graph, Place place, int32_t slot) {
  const auto count = static_cast<size_t>(slot + 1);
  if (place == Place::input && graph.inputs.size() < count) graph.inputs.resize(count, {"input", graph::kNoValue});
  if (place == Place::output && graph.outputs.size() < count) graph.outputs.resize(count, {"output", graph::kNoValue});
  if (place == Place::scalar && graph.scalars.size() < count) graph.scalars.resize(count, "scalar");
  if (place == Place::totals && graph.totals.size() < count) graph.totals.resize(count, "total");
  const bool of_store =
      place != Place::scalar && place != Place::totals && place != Place::state && reads_memory_of_plan(place);
  if (of_store && graph.parameters.size() < count) graph.parameters.resize(count);
}

}  // namespace

Graph build(const NodeCase& node_case, graph::Layout layout) {
  Graph graph;
  std::vector<ValueId> inputs;
  for (const Operand& operand : node_case.inputs) {
    inputs.push_back(
        graph.add_value(operand.type, operand.place, operand.place == Place::activation ? -1 : operand.slot));
    if (operand.place != Place::activation) declare_slots(graph, operand.place, operand.slot);
  }
  const int32_t index = graph.add_node(node_case.op, inputs, node_case.attributes, "node");
  for (const ValueId id : graph.nodes[static_cast<size_t>(index)].outputs) {
    if (graph.value(id).place != Place::activation) declare_slots(graph, graph.value(id).place, graph.value(id).slot);
  }
  for (Value& value : graph.values) {
    if (value.place == Place::activation && value.type.batched()) value.layout = layout;
  }
  return graph;
}

std::vector<oracle::Array> expected(const NodeCase& node_case, oracle::Fault* fault) {
  const Graph graph = build(node_case);
  oracle::Values values;
  for (size_t i = 0; i < node_case.inputs.size(); ++i) {
    values[static_cast<ValueId>(i)] = {oracle::full_shape(node_case.inputs[i].type, node_case.samples),
                                       node_case.inputs[i].data};
  }
  const Node& node = graph.nodes[0];
  for (size_t i = 0; i < node_case.before.size(); ++i) {
    values[node.outputs[i]] = {oracle::full_shape(graph.type(node.outputs[i]), node_case.samples), node_case.before[i]};
  }
  oracle::Fault own;
  if (!fault) fault = &own;
  if (node_case.faulted) fault->kind = oracle::Fault::label;
  values = oracle::evaluate(graph, node_case.samples, std::move(values), node_case.run, fault);
  std::vector<oracle::Array> outputs;
  for (const ValueId id : node.outputs) outputs.push_back(values.at(id));
  return outputs;
}

std::vector<cpu::Isa> instruction_sets() {
  std::vector<cpu::Isa> sets;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back(cpu::Isa::avx2);
  const char* cap = std::getenv("BRISK_CPU_ISA");
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (wide && !(cap && std::string_view(cap) == "avx2")) sets.push_back(cpu::Isa::avx512);
  return sets;
}

std::vector<const cpu::Implementation*> implementations(std::string_view op) {
  std::vector<const cpu::Implementation*> found;
  for (const cpu::Implementation& implementation : cpu::implementations()) {
    if (implementation.op == op) found.push_back(&implementation);
  }
  return found;
}

Outcome run_node(const NodeCase& node_case, const cpu::Implementation& implementation, cpu::Isa isa) {
  Outcome outcome;
  const bool single = implementation.name == cpu::kSingle;
  const Graph graph = build(node_case, single ? graph::Layout::plain : graph::Layout::lanes);
  const cpu::Call call{graph, graph.nodes[0], node_case.samples, isa};
  if (implementation.declines) outcome.declined = implementation.declines(call);
  if (!outcome.declined.empty()) return outcome;
  Runner runner(node_case, graph, call, outcome);
  runner.lower(implementation);
  for (const Order order : {Order::forward, Order::backward, Order::threads}) runner.run(order);
  for (int i = 0; i < call.inputs(); ++i) {
    if (node_case.inputs[static_cast<size_t>(i)].place != Place::activation) continue;
    if (cpu::may_run_in_place(call, i)) runner.run(Order::in_place, i);
  }
  return outcome;
}

Outcome run_native(const NodeCase& node_case) {
  for (const cpu::Implementation* implementation : implementations(node_case.op)) {
    if (implementation->name != "native") continue;
    Outcome outcome = run_node(node_case, *implementation, instruction_sets().back());
    if (!outcome.declined.empty()) throw Error(ErrorCode::backend, node_case.op, outcome.declined);
    if (!outcome.problems.empty()) throw Error(ErrorCode::backend, node_case.op, outcome.problems.front());
    return outcome;
  }
  throw Error(ErrorCode::backend, node_case.op, "no native implementation");
}

}  // namespace brisk::test
