// Elementwise operations as programs of one kernel: a node, or a chain of nodes.
#include "brisk/kernels/elementwise.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "backend/cuda/lower/lower.h"
#include "core/philox.h"
#include "graph/op_table.h"

namespace brisk::backend::cuda {
namespace {

using graph::Node;
using graph::ValueId;
using kernels::Elementwise;

/// An operation's step, and the attributes that are its constants.
struct Entry {
  std::string_view op;
  Elementwise operation;
  std::string_view constant = {}, high = {};
};

constexpr Entry kEntries[] = {
    {"add", Elementwise::add},
    {"sub", Elementwise::sub},
    {"mul", Elementwise::mul},
    {"div", Elementwise::div},
    {"minimum", Elementwise::minimum},
    {"maximum", Elementwise::maximum},
    {"relu", Elementwise::relu},
    {"leaky_relu", Elementwise::leaky_relu, "slope"},
    {"elu", Elementwise::elu, "alpha"},
    {"gelu", Elementwise::gelu},
    {"gelu_tanh", Elementwise::gelu_tanh},
    {"silu", Elementwise::silu},
    {"softplus", Elementwise::softplus},
    {"tanh", Elementwise::tanh},
    {"sigmoid", Elementwise::sigmoid},
    {"exp", Elementwise::exp},
    {"log", Elementwise::log},
    {"sqrt", Elementwise::sqrt},
    {"abs", Elementwise::abs},
    {"pow", Elementwise::pow},
    {"clamp", Elementwise::clamp, "low", "high"},
    {"reciprocal", Elementwise::reciprocal, "numerator"},
    {"scale", Elementwise::scale, "factor"},
    {"add_scalar", Elementwise::add_scalar, "value"},
    {"identity", Elementwise::copy},
    {"huber", Elementwise::huber, "delta"},
    {"compare", Elementwise::compare},
    {"compare_scalar", Elementwise::compare_scalar, "value"},
    {"where", Elementwise::where},
    {"minimum_gradient", Elementwise::minimum_gradient},
    {"maximum_gradient", Elementwise::maximum_gradient},
    {"relu_gradient", Elementwise::relu_gradient},
    {"leaky_relu_gradient", Elementwise::leaky_relu_gradient, "slope"},
    {"elu_gradient", Elementwise::elu_gradient, "alpha"},
    {"gelu_gradient", Elementwise::gelu_gradient},
    {"gelu_tanh_gradient", Elementwise::gelu_tanh_gradient},
    {"silu_gradient", Elementwise::silu_gradient},
    {"tanh_gradient", Elementwise::tanh_gradient},
    {"sigmoid_gradient", Elementwise::sigmoid_gradient},
    {"abs_gradient", Elementwise::abs_gradient},
    {"clamp_gradient", Elementwise::clamp_gradient, "low", "high"},
    {"huber_gradient", Elementwise::huber_gradient, "delta"},
    {"where_gradient", Elementwise::where_gradient},
    {"dropout", Elementwise::dropout},
};

constexpr std::string_view kRelations[] = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"};

void set_dropout(const Node& node, kernels::ElementwiseStep& step) {
  const double rate = node.attributes.real("rate");
  step.key = key_of(node);
  // With rate 1 no word is large enough; the factor makes zeros of the one that would be.
  step.threshold = static_cast<uint32_t>(std::min(bernoulli_threshold(rate), uint64_t{UINT32_MAX}));
  step.constant = rate < 1 ? static_cast<float>(1 / (1 - rate)) : 0.0f;
}

/// The step of a node whose inputs are these operands.
kernels::ElementwiseStep make_step(const Node& node, const std::vector<int32_t>& operands) {
  const auto* entry = std::find_if(std::begin(kEntries), std::end(kEntries),
                                   [&](const Entry& known) { return known.op == node.op->name; });
  const graph::Attributes& attributes = node.attributes;
  kernels::ElementwiseStep step;
  step.operation = entry->operation;
  step.a = operands[0];
  step.b = operands[std::min<size_t>(1, operands.size() - 1)];
  step.c = operands.back();
  if (!entry->constant.empty()) step.constant = static_cast<float>(attributes.real(entry->constant));
  if (!entry->high.empty()) step.high = static_cast<float>(attributes.real(entry->high));
  if (attributes.has("relation")) {
    const auto* found = std::find(std::begin(kRelations), std::end(kRelations), attributes.text("relation"));
    step.relation = static_cast<kernels::Relation>(found - std::begin(kRelations));
  }
  if (step.operation == Elementwise::where_gradient) step.chosen = attributes.flag("chosen");
  if (step.operation == Elementwise::dropout) set_dropout(node, step);
  if (step.operation == Elementwise::pow) step.exponent = attributes.real("exponent");
  return step;
}

/// A launch of the kernel, with all that does not change.
class Program {
 public:
  /// `numbering_of`: the value whose elements random numbers are drawn for; its rows x N.
  Program(const Tensor& out, Numbering numbering, int64_t sample_elements)
      : target_(out), numbering_(numbering), sample_elements_(sample_elements) {}

  void add_source(Location location, const Tensor& from, const std::vector<int64_t>& axes = {}) {
    Operand source{location, from.dtype, 0, {}};
    const std::vector<int64_t> strides = broadcast_strides(from, target_, axes);
    const bool direct = from.dims == target_.dims && strides_matter(strides) == strides_matter(target_.strides);
    if (!direct) source.strides = target_.in_memory(strides);
    sources_.push_back(std::move(source));
  }
  void add_step(const kernels::ElementwiseStep& step) { steps_.push_back(step); }
  void add_output(Location location, DType dtype, int32_t value) { outputs_.push_back({location, dtype, value, {}}); }

  bool fits() const {
    std::vector<kernels::ElementwiseOutput> outputs;
    for (const Operand& output : outputs_) outputs.push_back({nullptr, output.dtype, output.value});
    return outputs_.size() <= kernels::kElementwiseOutputs && sources_.size() <= kernels::kElementwiseSources &&
           steps_.size() <= kernels::kElementwiseSteps &&
           kernels::elementwise_fits(outputs, static_cast<int>(sources_.size()), steps_);
  }

  void launch(Lowering& lowering, std::string_view kernel, double bytes, double flops) {
    dims_ = target_.in_memory(target_.dims);
    std::vector<std::vector<int64_t>*> strides;
    std::vector<int64_t> packed = packed_strides(dims_);
    strides.push_back(&packed);
    for (Operand& source : sources_)
      if (!source.strides.empty()) strides.push_back(&source.strides);
    collapse(dims_, strides);
    lowering.launch(std::string(kernel), bytes, flops,
                    [program = *this](const Operands& o, CudaStream stream) { program.run(o, stream); });
  }

 private:
  struct Operand {
    Location location;
    DType dtype;
    int32_t value;
    std::vector<int64_t> strides;
  };

  /// Strides of the dimensions that have more than one element.
  std::vector<int64_t> strides_matter(const std::vector<int64_t>& strides) const {
    std::vector<int64_t> list;
    for (size_t i = 0; i < strides.size(); ++i)
      if (target_.dims[i] != 1) list.push_back(strides[i]);
    return list;
  }

  void run(const Operands& o, CudaStream stream) const {
    std::array<kernels::ElementwiseSource, kernels::kElementwiseSources> sources;
    std::array<kernels::ElementwiseOutput, kernels::kElementwiseOutputs> outputs;
    for (size_t i = 0; i < sources_.size(); ++i)
      sources[i] = {sources_[i].location.at(o), sources_[i].dtype, sources_[i].strides};
    for (size_t i = 0; i < outputs_.size(); ++i)
      outputs[i] = {outputs_[i].location.at(o), outputs_[i].dtype, outputs_[i].value};
    kernels::elementwise({.channels = numbering_.channels,
                          .dims = dims_,
                          .outputs = {outputs.data(), outputs_.size()},
                          .positions = numbering_.positions,
                          .run = o.run,
                          .sample_elements = sample_elements_,
                          .sources = {sources.data(), sources_.size()},
                          .steps = steps_},
                         stream);
  }

  Tensor target_;
  Numbering numbering_;
  int64_t sample_elements_;
  std::vector<int64_t> dims_;
  std::vector<Operand> sources_, outputs_;
  std::vector<kernels::ElementwiseStep> steps_;
};

/// Nodes of one output type, in as few kernels as hold them; what passes between two of them lies in the workspace.
class Chain {
 public:
  Chain(const Call& call, Lowering& lowering) : call_(call), lowering_(lowering) {
    for (int i = 0; i < call.inputs(); ++i) locations_[call.in[static_cast<size_t>(i)]] = input(i);
    for (int i = 0; i < call.outputs(); ++i) locations_[call.out[static_cast<size_t>(i)]] = output(i);
    for (size_t i = 0; i < call.nodes.size(); ++i)
      for (const ValueId id : node(i).inputs) last_read_[id] = i;
  }

  void lower() {
    const size_t count = call_.nodes.size();
    for (size_t first = 0, last = 0; first < count; first = last) {
      last = count;
      while (last > first + 1 && !make(first, last).fits()) --last;
      reserve(first, last);
      Program program = make(first, last);
      program.launch(lowering_, "elementwise", bytes_,
                     operations(call_) * static_cast<double>(last - first) / static_cast<double>(count));
    }
  }

 private:
  const Node& node(size_t i) const { return call_.graph.nodes[static_cast<size_t>(call_.nodes[i])]; }
  const graph::Value& value(ValueId id) const { return call_.graph.value(id); }
  /// Whether a result of nodes [first, last) is read behind them.
  bool leaves(ValueId id, size_t last) const {
    const auto read = last_read_.find(id);
    return std::find(call_.out.begin(), call_.out.end(), id) != call_.out.end() ||
           (read != last_read_.end() && read->second >= last);
  }

  /// Room for results that leave nodes [first, last).
  void reserve(size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      const ValueId id = node(i).outputs[0];
      if (leaves(id, last) && !locations_.count(id))
        locations_[id] = in_workspace(lowering_, bytes_of(call_, call_.graph.type(id)));
    }
  }

  Program make(size_t first, size_t last) {
    const graph::Value& out = value(node(first).outputs[0]);
    Program program(tensor(call_, out), numbering(out), out.type.elements());
    std::map<ValueId, int32_t> operand;
    std::set<ValueId> inside;
    bytes_ = 0;
    for (size_t i = first; i < last; ++i) {
      for (const ValueId id : node(i).inputs)
        if (!inside.count(id) && operand.emplace(id, static_cast<int32_t>(operand.size())).second) {
          program.add_source(location(id), tensor(call_, value(id)));
          bytes_ += static_cast<double>(bytes_of(call_, call_.graph.type(id)));
        }
      inside.insert(node(i).outputs[0]);
    }
    const auto sources = static_cast<int32_t>(operand.size());
    for (size_t i = first; i < last; ++i) {
      std::vector<int32_t> operands;
      for (const ValueId id : node(i).inputs) operands.push_back(operand.at(id));
      program.add_step(make_step(node(i), operands));
      const ValueId id = node(i).outputs[0];
      operand[id] = sources + static_cast<int32_t>(i - first);
      if (!leaves(id, last)) continue;
      program.add_output(location(id), call_.graph.type(id).dtype, operand[id]);
      bytes_ += static_cast<double>(bytes_of(call_, call_.graph.type(id)));
    }
    return program;
  }

  Location location(ValueId id) const {
    const auto found = locations_.find(id);
    return found == locations_.end() ? Location() : found->second;
  }

  const Call& call_;
  Lowering& lowering_;
  std::map<ValueId, Location> locations_;
  std::map<ValueId, size_t> last_read_;
  double bytes_ = 0;
};

}  // namespace

void lower_elementwise(const Call& call, Lowering& lowering) { Chain(call, lowering).lower(); }

std::vector<std::string_view> elementwise_operations() {
  std::vector<std::string_view> names;
  for (const Entry& entry : kEntries) names.push_back(entry.op);
  return names;
}

void lower_bias_add(const Call& call, Lowering& lowering) {
  const Tensor out = output_tensor(call, 0);
  Program program(out, {}, call.output(0).elements());
  program.add_source(input(0), input_tensor(call, 0));
  // The bias as [channels, 1, ...].
  Tensor bias = input_tensor(call, 1);
  bias.dims.resize(static_cast<size_t>(call.output(0).shape.rank()), 1);
  bias.strides.resize(bias.dims.size(), 0);
  program.add_source(input(1), bias);
  program.add_step({.a = 0, .b = 1, .operation = Elementwise::add});
  program.add_output(output(0), out.dtype, 2);
  program.launch(lowering, "elementwise", operand_bytes(call), operations(call));
}

void lower_expand(const Call& call, Lowering& lowering) {
  const Tensor out = output_tensor(call, 0);
  Program program(out, {}, call.output(0).elements());
  program.add_source(input(0), input_tensor(call, 0), call.node.attributes.integers("axes"));
  program.add_step({.a = 0, .operation = Elementwise::copy});
  program.add_output(output(0), out.dtype, 1);
  program.launch(lowering, "elementwise", operand_bytes(call), operations(call));
}

}  // namespace brisk::backend::cuda
