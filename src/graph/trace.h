// Tracing: what runs while a model function or an objective is evaluated on symbolic values. Front-end functions of the
// op families build nodes through Access and `layer`.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "brisk/loss.h"
#include "brisk/model.h"
#include "graph/graph.h"
#include "graph/segment.h"

namespace brisk::graph {

/// One named thing that owns parameters: what its final name is made of.
struct LayerRecord {
  std::string scope;  ///< "layer1.0", or empty
  Naming naming = Naming::kind;
  std::string kind;           ///< "conv"
  std::string explicit_name;  ///< the user's .name
  Where where;
  bool counts = true;    ///< takes an ordinal in a scope that names children by index
  int32_t repeats = -1;  ///< the layer of a Shared block's first call whose name this one has
  int32_t call = 0;      ///< of the Shared block, the first is 0: random operations of later calls are named apart
  std::string name;      ///< provisional while tracing, final after finish()
};

/// The key of the random numbers of a layer.
uint64_t stream_of(uint64_t seed, const std::string& model, const std::string& name);

/// The state of one trace. One is current on a thread while a function runs.
class Tracer : public std::enable_shared_from_this<Tracer> {
 public:
  /// model: name used in messages; may_own: whether parameters may be made here (a Model) or not (an objective).
  Tracer(std::string model, uint64_t seed, bool may_own);
  static std::shared_ptr<Tracer> current();  ///< throws Error [state] outside a trace

  Graph graph;
  const std::string model;
  const uint64_t seed;
  const bool may_own;
  std::vector<ParameterSpec> specs;  ///< of the parameters made here (store 0), by segment
  std::vector<LayerRecord> layers;
  std::vector<int32_t> node_layer;                  ///< layer of each node, or -1 (load, nodes of called models)
  std::vector<std::shared_ptr<ModelState>> models;  ///< the store that each ParameterRef::store means; own = null

  void push_scope(std::string_view name, Naming naming);
  void pop_scope();
  std::string scope() const;  ///< "layer1.0"
  Naming naming() const;
  /// counts: whether it is a child in a scope that names children by index (operators are not).
  int32_t add_layer(std::string_view kind, std::string_view explicit_name, Where where, bool counts);
  /// A parameter of this trace: new, or, inside a later call of a Shared block, the one made by the first call.
  ValueId add_parameter(ParameterSpec spec);
  /// The value of graph.parameters[index] (one per entry).
  ValueId parameter_value(int32_t index);
  /// Runs `block` as the shared block `name`.
  Vars share(const std::string& name, const ModelFunction& block, const Vars& inputs);

  /// Numbers layers and nodes, and orders nodes and parameters, by a post-order walk from the outputs, so that nothing
  /// depends on the order in which the compiler evaluated operands. Throws Error [state] on a name used twice.
  /// `roots` are renumbered in place; values that no root needs are dropped.
  void finish(std::vector<ValueId>& roots);

 private:
  struct OpenScope {
    std::string name;
    Naming naming;
  };
  struct SharedBlock {
    std::string name;
    std::vector<int32_t> parameters;  // indices into graph.parameters in the order of the first call
    std::vector<int32_t> layers;      // of the first call, in its order
    int32_t calls = 0;
  };
  std::vector<OpenScope> scopes_;
  std::vector<ValueId> parameter_values_;
  void number(const std::vector<int32_t>& order);
  /// Of random streams: the seed of a model; in an objective, made of the models that it calls.
  uint64_t key_seed() const;
  void rebuild(const std::vector<int32_t>& order, std::vector<ValueId>& roots);
  std::vector<SharedBlock> shared_;
  int32_t replaying_ = -1;   // shared block whose parameters are being reused
  int32_t recording_ = -1;   // shared block that is called for the first time
  size_t cursor_ = 0;        // next parameter of the block that is replayed
  size_t layer_cursor_ = 0;  // next layer
};

/// Makes a tracer current for a scope of code.
class TraceGuard {
 public:
  explicit TraceGuard(std::shared_ptr<Tracer> tracer);
  ~TraceGuard();

 private:
  std::shared_ptr<Tracer> previous_;
};

/// The seam between Var and Graph.
struct Access {
  static Var make(const std::shared_ptr<Tracer>& tracer, ValueId value);
  /// Throws Error [state] when the Var is empty or its function has returned.
  static std::shared_ptr<Tracer> tracer(const Var& var);
  static ValueId value(const Var& var);
  /// Throws Error [state] also when the Var is of another trace than `of`.
  static ValueId value(const Var& var, const Tracer& of);
  static bool empty(const Var& var) { return var.value_ < 0; }
  static const ValueType& type(const Var& var);
};

/// Appends a node whose inputs are Vars of one trace (none: of the current one) and returns its output 0 as a Var.
/// `kind` names it in messages ("relu" -> "relu1"); operators pass an unknown Where and the operands' lines are named
/// instead.
Var apply(std::string_view op, const std::vector<Var>& inputs, Attributes attributes, std::string_view kind,
          Where where);

/// A layer: one named thing that owns parameters ("conv" -> conv1.weight, conv1.bias).
class Layer {
 public:
  /// kind: "conv", "fc", "bn"; explicit_name: the user's .name, or empty. `x` finds the trace.
  Layer(const Var& x, std::string_view kind, std::string_view explicit_name, Where where);
  /// One without inputs, in the current trace.
  Layer(std::string_view kind, std::string_view explicit_name, Where where);
  /// A parameter of the layer in canonical shape; `torch` tells how files and users see it.
  Var parameter(std::string_view leaf, Shape canonical, Init init, TorchLayout torch, bool decay = true);
  Var buffer(std::string_view leaf, Shape shape, double initial);
  /// Provisional full name for messages: "layer1.0.conv2".
  const std::string& name() const { return name_; }
  /// As apply(), with the node named after the layer.
  Var apply(std::string_view op, const std::vector<Var>& inputs, Attributes attributes);

 private:
  Layer(std::shared_ptr<Tracer> tracer, std::string_view kind, std::string_view explicit_name, Where where);
  std::shared_ptr<Tracer> tracer_;
  int32_t layer_ = -1;  ///< ordinal of this layer in the trace; final names are given at the end
  std::string name_;
  Where where_;
};

/// Declares the inputs of a trace and loads them.
Vars declare_inputs(const std::shared_ptr<Tracer>& tracer, const std::vector<Field>& fields);

/// Copies a finished model's graph into a trace; returns its outputs. Parameters are shared, not copied.
Vars inline_model(const std::shared_ptr<Tracer>& tracer, const std::shared_ptr<ModelState>& model, const Vars& inputs);

}  // namespace brisk::graph
