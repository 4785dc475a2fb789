// Elementwise ops as tile programs: one node, or a group of nodes.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "backend/cpu/kernels/elementwise.h"
#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"
#include "core/philox.h"
#include "graph/op_table.h"

namespace brisk::backend::cpu {
namespace {

using graph::ValueId;
using graph::ValueType;

/// An operation's step, and the attributes that are its constants.
struct Entry {
  std::string_view op;
  Micro micro;
  std::string_view constant = {}, high = {};
};

constexpr Entry kEntries[] = {
    {"add", Micro::add},
    {"sub", Micro::sub},
    {"mul", Micro::mul},
    {"div", Micro::div},
    {"minimum", Micro::minimum},
    {"maximum", Micro::maximum},
    {"relu", Micro::relu},
    {"leaky_relu", Micro::leaky_relu, "slope"},
    {"elu", Micro::elu, "alpha"},
    {"gelu", Micro::gelu},
    {"gelu_tanh", Micro::gelu_tanh},
    {"silu", Micro::silu},
    {"softplus", Micro::softplus},
    {"tanh", Micro::tanh},
    {"sigmoid", Micro::sigmoid},
    {"exp", Micro::exp},
    {"log", Micro::log},
    {"sqrt", Micro::sqrt},
    {"abs", Micro::abs},
    {"pow", Micro::pow},
    {"clamp", Micro::clamp, "low", "high"},
    {"reciprocal", Micro::reciprocal, "numerator"},
    {"scale", Micro::scale, "factor"},
    {"add_scalar", Micro::add_scalar, "value"},
    {"identity", Micro::copy},
    {"huber", Micro::huber, "delta"},
    {"compare", Micro::compare},
    {"compare_scalar", Micro::compare_scalar, "value"},
    {"where", Micro::where},
    {"minimum_gradient", Micro::minimum_gradient},
    {"maximum_gradient", Micro::maximum_gradient},
    {"relu_gradient", Micro::relu_gradient},
    {"leaky_relu_gradient", Micro::leaky_relu_gradient, "slope"},
    {"elu_gradient", Micro::elu_gradient, "alpha"},
    {"gelu_gradient", Micro::gelu_gradient},
    {"gelu_tanh_gradient", Micro::gelu_tanh_gradient},
    {"silu_gradient", Micro::silu_gradient},
    {"tanh_gradient", Micro::tanh_gradient},
    {"sigmoid_gradient", Micro::sigmoid_gradient},
    {"abs_gradient", Micro::abs_gradient},
    {"clamp_gradient", Micro::clamp_gradient, "low", "high"},
    {"huber_gradient", Micro::huber_gradient, "delta"},
    {"where_gradient", Micro::where_gradient},
    {"dropout", Micro::dropout},
};

constexpr std::string_view kRelations[] = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"};

Relation relation_of(const graph::Node& node) {
  const auto* found = std::find(std::begin(kRelations), std::end(kRelations), node.attributes.text("relation"));
  return static_cast<Relation>(found - std::begin(kRelations));
}

void set_dropout(const graph::Node& node, TileStep& step) {
  const double rate = node.attributes.real("rate");
  step.key = static_cast<uint64_t>(node.attributes.integer("stream"));
  // With rate 1 no word is large enough; the factor makes zeros of the one that would be.
  step.threshold = static_cast<uint32_t>(std::min(bernoulli_threshold(rate), uint64_t{UINT32_MAX}));
  step.constant = rate < 1 ? static_cast<float>(1 / (1 - rate)) : 0.0f;
}

/// The step of a node whose inputs are in these registers, the last of them also where the step has no use for one.
TileStep make_step(const graph::Node& node, const std::vector<int32_t>& inputs) {
  const auto* entry = std::find_if(std::begin(kEntries), std::end(kEntries),
                                   [&](const Entry& known) { return known.op == node.op->name; });
  TileStep step;
  step.op = entry->micro;
  step.a = inputs[0];
  step.b = inputs[std::min<size_t>(1, inputs.size() - 1)];
  step.c = inputs.back();
  if (!entry->constant.empty()) step.constant = static_cast<float>(node.attributes.real(entry->constant));
  if (!entry->high.empty()) step.high = static_cast<float>(node.attributes.real(entry->high));
  if (step.op == Micro::compare || step.op == Micro::compare_scalar) step.relation = relation_of(node);
  if (step.op == Micro::where_gradient) step.chosen = node.attributes.flag("chosen");
  if (step.op == Micro::dropout) set_dropout(node, step);
  if (step.op == Micro::pow) step.exponent = node.attributes.real("exponent");
  if (step.exponent == 2) step.op = Micro::mul;  // of x and x
  return step;
}

TileSource make_source(const ValueType& type, const ValueType& out, const std::vector<int64_t>& source_dims,
                       const std::vector<int64_t>& dims) {
  TileSource source;
  source.elements = type.elements();
  if (type.batched() == out.batched() && type.elements() == out.elements()) {
    source.kind = TileSource::direct;
  } else if (!type.batched() && type.elements() == 1) {
    source.kind = TileSource::constant;
  } else if (type.batched()) {
    source.kind = TileSource::lanes;
  } else {
    source.kind = out.batched() ? TileSource::vector : TileSource::plain;
  }
  source.strides = broadcast_strides(source_dims, dims);
  return source;
}

/// Fills sizes; sources must be there.
void set_sizes(TileProgram& program, const ValueType& out, int64_t blocks, int lanes) {
  program.batched = out.batched();
  program.elements = out.elements();
  program.total = stored(out, blocks, lanes);
  program.dims = sample_dims(out);
  std::vector<std::vector<int64_t>*> strides;
  for (TileSource& source : program.sources) {
    if (source.kind != TileSource::direct && source.kind != TileSource::constant) strides.push_back(&source.strides);
  }
  collapse(program.dims, strides);
}

/// Registers for each step; an output is staged when a later step still reads a source that lies as the output does,
/// since the two may share storage.
class Registers {
 public:
  Registers(const graph::Graph& graph, std::span<const int32_t> nodes, std::span<const ValueId> inputs,
            std::span<const ValueId> outputs)
      : inputs_(inputs), outputs_(outputs) {
    for (size_t i = 0; i < inputs.size(); ++i) at_[inputs[i]] = static_cast<int32_t>(i);
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (const ValueId id : graph.nodes[static_cast<size_t>(nodes[i])].inputs) last_read_[id] = i;
    }
  }

  void assign(const graph::Graph& graph, std::span<const int32_t> nodes, TileProgram& program) {
    program.staged.assign(outputs_.size(), -1);
    size_t last_direct = 0;
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (program.sources[i].kind == TileSource::direct) last_direct = std::max(last_direct, last_read_[inputs_[i]]);
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      const graph::Node& node = graph.nodes[static_cast<size_t>(nodes[i])];
      std::vector<int32_t> registers;
      for (const ValueId id : node.inputs) registers.push_back(at_.at(id));
      TileStep step = make_step(node, registers);
      step.out = place(node.outputs[0], i, last_direct, program);
      program.steps.push_back(step);
      for (const ValueId id : node.inputs) release(id, i);
    }
  }

 private:
  int32_t place(ValueId id, size_t step, size_t last_direct, TileProgram& program) {
    const auto found = std::find(outputs_.begin(), outputs_.end(), id);
    const int32_t first_temporary = static_cast<int32_t>(inputs_.size() + outputs_.size());
    int32_t at = 0;
    if (found != outputs_.end() && step >= last_direct) {
      at = static_cast<int32_t>(inputs_.size() + static_cast<size_t>(found - outputs_.begin()));
    } else if (found == outputs_.end() && !free_.empty()) {
      at = free_.back();
      free_.pop_back();
    } else {
      at = first_temporary + program.temporaries++;
    }
    if (found == outputs_.end()) {
      temporary_[id] = at;
    } else if (at >= first_temporary) {
      program.staged[static_cast<size_t>(found - outputs_.begin())] = at;
    }
    return at_[id] = at;
  }

  void release(ValueId id, size_t step) {
    const auto found = temporary_.find(id);
    if (found == temporary_.end() || last_read_[id] != step) return;
    free_.push_back(found->second);
    temporary_.erase(found);
  }

  std::span<const ValueId> inputs_, outputs_;
  std::unordered_map<ValueId, int32_t> at_, temporary_;
  std::unordered_map<ValueId, size_t> last_read_;
  std::vector<int32_t> free_;
};

void finish(TileProgram program, Isa isa, Lowering& lowering) {
  const int64_t registers = static_cast<int64_t>(program.sources.size() + program.staged.size()) + program.temporaries;
  program.buffers_at = ceil_divide(registers * static_cast<int64_t>(sizeof(float*)), 64) * 64;
  int64_t buffers = program.temporaries;
  for (const TileSource& source : program.sources) buffers += source.kind != TileSource::direct;
  lowering.scratch(program.buffers_at + buffers * kTile * static_cast<int64_t>(sizeof(float)));
  const int64_t units = ceil_divide(program.total, kUnit);
  lowering.phase(isa == Isa::avx512 ? &avx512::run_tiles : &avx2::run_tiles, units, std::move(program));
}

}  // namespace

void lower_group(const graph::Graph& graph, std::span<const int32_t> nodes, int64_t samples, Isa isa,
                 std::span<const ValueId> inputs, std::span<const ValueId> outputs, Lowering& lowering) {
  const ValueType& out = graph.type(graph.nodes[static_cast<size_t>(nodes[0])].outputs[0]);
  const std::vector<int64_t> dims = sample_dims(out);
  TileProgram program;
  for (const ValueId id : inputs) {
    const ValueType& type = graph.type(id);
    program.sources.push_back(make_source(type, out, sample_dims(type, out), dims));
  }
  set_sizes(program, out, ceil_divide(samples, lanes(isa)), lanes(isa));
  Registers(graph, nodes, inputs, outputs).assign(graph, nodes, program);
  finish(std::move(program), isa, lowering);
}

void lower_elementwise(const Call& call, Lowering& lowering) {
  const ValueType& out = call.output(0);
  TileProgram program;
  const std::vector<int64_t> dims = sample_dims(out);
  for (int i = 0; i < call.inputs(); ++i) {
    program.sources.push_back(make_source(call.input(i), out, sample_dims(call.input(i), out), dims));
  }
  set_sizes(program, out, call.blocks(), call.lanes());
  std::vector<int32_t> registers(static_cast<size_t>(call.inputs()));
  std::iota(registers.begin(), registers.end(), 0);
  TileStep step = make_step(call.node, registers);
  step.out = call.inputs();
  program.steps.push_back(step);
  program.staged.assign(1, -1);
  finish(std::move(program), call.isa, lowering);
}

std::vector<std::string_view> tile_operations() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kEntries) names.push_back(entry.op);
  return names;
}

void lower_expand(const Call& call, Lowering& lowering) {
  const ValueType& in = call.input(0);
  const ValueType& out = call.output(0);
  // The input with ones where it lacks axes, as a reduction would have kept them.
  const std::vector<int64_t>& axes = call.node.attributes.integers("axes");
  std::vector<int64_t> source = sample_dims(in);
  for (const int64_t axis : axes) source.insert(source.begin() + axis + (in.batched() ? 1 : 0), 1);
  TileProgram program;
  program.sources.push_back(make_source(in, out, source, sample_dims(out)));
  set_sizes(program, out, call.blocks(), call.lanes());
  TileStep step;
  step.out = 1;
  program.steps.push_back(step);
  program.staged.assign(1, -1);
  finish(std::move(program), call.isa, lowering);
}

}  // namespace brisk::backend::cpu
