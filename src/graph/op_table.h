// The op table: all that the passes and the front end know of an operation. One family file (ops/<family>.cpp) defines
// the entries of its family; op_table.cpp lists the families.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "brisk/op.h"
#include "graph/graph.h"

namespace brisk::graph {

/// What shape inference sees of a node.
class InferContext {
 public:
  /// low: the 16-bit type of some inputs (low_type); the rule sees them as f32.
  InferContext(const Graph& graph, const Node& node, DType low = DType::f32);
  int count() const { return static_cast<int>(node_.inputs.size()); }
  const ValueType& input(int i) const {
    return widened_.empty() ? graph_.type(node_.inputs[static_cast<size_t>(i)]) : widened_[static_cast<size_t>(i)];
  }
  const Attributes& attributes() const { return node_.attributes; }
  /// "[N, 50, 4, 4] from max_pool2d 'pool2' (lenet.cpp:9)": an input's type and where it comes from.
  std::string describe(int i) const;
  /// Throws Error [shape] "<op> '<name>' (file:line): message".
  [[noreturn]] void fail(const std::string& message) const;
  void require(bool condition, const std::string& message) const {
    if (!condition) fail(message);
  }

 private:
  const Graph& graph_;
  const Node& node_;
  std::vector<ValueType> widened_;  ///< all inputs, when one has 16 bits
};

/// What a derivative rule sees: the forward node, the gradients of its outputs, and a way to emit backward nodes.
class Derivation {
 public:
  Derivation(Graph& graph, int32_t node, std::vector<ValueId> output_gradients)
      : graph_(graph), node_(node), output_gradients_(std::move(output_gradients)) {
    input_gradients_.resize(this->node().inputs.size(), kNoValue);
    wanted_.resize(this->node().inputs.size(), false);
  }
  const Node& node() const { return graph_.nodes[static_cast<size_t>(node_)]; }
  const Attributes& attributes() const { return node().attributes; }
  ValueId input(int i) const { return node().inputs[static_cast<size_t>(i)]; }
  int count() const { return static_cast<int>(node().inputs.size()); }
  ValueId output(int i = 0) const { return node().outputs[static_cast<size_t>(i)]; }
  const ValueType& type(ValueId id) const { return graph_.type(id); }
  /// Gradient of output i, or kNoValue when nothing depends on it.
  ValueId output_gradient(int i = 0) const { return output_gradients_[static_cast<size_t>(i)]; }
  /// Whether anybody needs the gradient of input i: skip the work otherwise.
  bool wants(int i) const { return wanted_[static_cast<size_t>(i)]; }
  void want(int i) { wanted_[static_cast<size_t>(i)] = true; }
  /// Appends a backward node (named after the forward node, with its line) and returns output 0.
  ValueId emit(std::string_view op, std::vector<ValueId> inputs, Attributes attributes = {});
  /// The same for a node with several outputs: returns its index.
  int32_t emit_node(std::string_view op, std::vector<ValueId> inputs, Attributes attributes = {});
  Graph& graph() { return graph_; }
  void set(int i, ValueId gradient) { input_gradients_[static_cast<size_t>(i)] = gradient; }
  ValueId result(int i) const { return input_gradients_[static_cast<size_t>(i)]; }

 private:
  Graph& graph_;
  int32_t node_;
  std::vector<ValueId> output_gradients_;
  std::vector<ValueId> input_gradients_;
  std::vector<bool> wanted_;
};

/// Which forward values the derivative may read; the autodiff verifier holds it to that.
using brisk::Reads;
/// In the order of Attribute's alternatives.
enum class Kind : uint8_t { flag, integer, real, text, integers, reals, object };

struct AttributeInfo {
  std::string_view name;
  Kind kind;
};

struct OpInfo {
  std::string_view name;
  int minimum_inputs = 1;
  int maximum_inputs = 1;                      ///< -1: any number
  int outputs = 1;                             ///< -1: as many as infer returns
  std::vector<AttributeInfo> attributes = {};  ///< all are required on a node
  std::vector<ValueType> (*infer)(const InferContext&) = nullptr;
  void (*derive)(Derivation&) = nullptr;  ///< null: gradients stop here
  Reads backward_reads = Reads::nothing;  ///< of one node: graph::backward_reads
  int constant_inputs = 0;                ///< so many, the first ones, get no gradient (a condition)
  bool elementwise = false;               ///< output element i depends on input elements i only (or broadcast ones)
  bool random = false;                    ///< draws from the counter RNG
  bool training_only = false;             ///< must not be left in an evaluation graph
  bool view = false;                      ///< output 0 is input 0's bytes under another shape
  bool deterministic = true;
  /// Operations (a multiply-add is two) for one sample, or for all when nothing is batched; null: one per output
  /// element.
  double (*flops)(const Graph&, const Node&) = nullptr;
  /// Rewrites node `index` for evaluation, in place (dropout -> identity); null: the same in both.
  void (*evaluation)(Graph&, int32_t index) = nullptr;
  /// Memory and slot of an output; null: all are activations.
  std::pair<Place, int32_t> (*place)(const Graph&, const Node&, int output) = nullptr;
};

/// The entry, or nullptr.
const OpInfo* find_op(std::string_view name);
/// The entry; throws Error [state] for an unknown name.
const OpInfo& op(std::string_view name);
/// All entries, in the order of the families.
std::vector<const OpInfo*> all_ops();

/// All that add_node checks, and verifiers check again: arity, attributes, sizes, rows, then the op's own rule. Returns
/// the types of the outputs. Throws Error [shape] naming node and line, Error [state] for a node that no user can have
/// asked for.
std::vector<ValueType> infer(const Graph& graph, const Node& node);
/// OpInfo::backward_reads, or what the operation of the user's says that the node applies.
Reads backward_reads(const Node& node);
/// Types of the forward inputs of an operation of the user's, from the attributes of its custom_op_gradient.
std::vector<ValueType> custom_input_types(const Attributes& gradient, int64_t rows);
/// OpInfo::flops with its default.
double flops(const Graph& graph, const Node& node);

/// Families, one a file in ops/.
std::span<const OpInfo> activation_ops();
std::span<const OpInfo> compare_ops();
std::span<const OpInfo> conv_ops();
std::span<const OpInfo> custom_ops();
std::span<const OpInfo> elementwise_ops();
std::span<const OpInfo> indexing_ops();
std::span<const OpInfo> layer_norm_ops();
std::span<const OpInfo> linear_ops();
std::span<const OpInfo> loss_ops();
std::span<const OpInfo> norm_ops();
std::span<const OpInfo> plan_ops();
std::span<const OpInfo> pool_ops();
std::span<const OpInfo> random_ops();
std::span<const OpInfo> reduce_ops();
std::span<const OpInfo> shape_ops();
std::span<const OpInfo> softmax_ops();

}  // namespace brisk::graph
