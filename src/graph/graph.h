// The graph: values in static single assignment and the nodes that make them, in an order in which they may run.
// Every pass takes one and returns one; what a later pass fills in is marked below.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "brisk/error.h"
#include "brisk/tensor.h"
#include "graph/attributes.h"

namespace brisk::graph {

struct OpInfo;  // graph/op_table.h
using ValueId = int32_t;
constexpr ValueId kNoValue = -1;

/// Element type and size. The leading dimension of a batched value is rows x N with N symbolic; rows = 0: no batch.
struct ValueType {
  DType dtype = DType::f32;
  int64_t rows = 0;
  Shape shape;  ///< without the leading rows x N

  bool batched() const { return rows > 0; }
  /// Elements that one sample has (batched), or all elements.
  int64_t elements() const { return (batched() ? rows : 1) * shape.count(); }
  /// Number of dimensions that the user sees.
  int rank() const { return shape.rank() + (batched() ? 1 : 0); }
  /// "[N, 50, 4, 4]", "[2N, 8]", "[500, 800]"
  std::string text() const;
  bool operator==(const ValueType& other) const = default;
};

/// Which memory a value lives in. A node that changes such memory makes a new Value with the same place and slot.
enum class Place : uint8_t {
  activation,  ///< the plan's arena
  input,       ///< slot: index into Graph::inputs; row-major as the user gives it; only `load` reads it
  output,      ///< slot: index into Graph::outputs; row-major; only `store` writes it
  parameter,   ///< slot: index into Graph::parameters
  buffer,      ///< slot: index into Graph::parameters (a buffer's entry)
  gradient,    ///< slot: index into Graph::parameters
  moment1,     ///< slot: index into Graph::parameters
  moment2,     ///< slot: index into Graph::parameters
  staged,      ///< slot: as buffer; what an update that counts makes the buffer's new value
  shadow,      ///< slot: index into Graph::parameters; its value in 16 bits
  scalar,      ///< slot: index into Graph::scalars; one f32 that the host writes before a run
  state,       ///< slot 0: the loss scale, f32; slot 1: backend::Counter::count counters, i64
  totals,      ///< slot: index into Graph::totals; two doubles (sum, count) that add up until they are read
};
const char* name(Place place);

/// How the elements of an activation lie. `lanes`: [ceil(N / L)][elements of one sample][L samples], the samples of a
/// block side by side, unused lanes of the last block unspecified. `channels_last`: a sample [C, H, W] as [H][W][C].
/// `plain`: row-major (values without a batch).
enum class Layout : uint8_t { plain, lanes, channels_last };

struct Value {
  ValueType type;
  Place place = Place::activation;
  int32_t slot = -1;
  int32_t producer = -1;          ///< node index; -1: comes from outside
  Layout layout = Layout::plain;  ///< filled by select
  int64_t bytes = 0;              ///< filled by memory (activations)
  int64_t offset = -1;            ///< filled by memory: bytes from the start of the arena
  ValueId alias = kNoValue;       ///< filled by memory: shares the storage of this value (reshape, in place)
};

/// When a node runs within a window of micro-batches: forward, backward and commit in each; update at its end.
enum class Stage : uint8_t { forward, backward, commit, update };
const char* name(Stage stage);

struct Node {
  const OpInfo* op = nullptr;
  Attributes attributes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::string name;  ///< "conv1"; for the user's eyes
  Where where;       ///< the user's line
  Stage stage = Stage::forward;
  int32_t store = 0;           ///< the model that it belongs to, as ParameterRef::store
  bool frozen = false;         ///< computes as in evaluation in every phase
  int32_t group = -1;          ///< filled by group: nodes of one group run as one kernel
  int32_t recomputes = -1;     ///< filled by recompute: the node this one repeats
  std::string implementation;  ///< filled by select, "native"; with declined: why each better one was passed over
  std::vector<std::string> declined;
  int64_t workspace_bytes = 0;    ///< filled by select: shared by all workers while the node runs
  int64_t workspace_offset = -1;  ///< filled by memory
  int32_t launches = 0;           ///< filled by select: kernels on a device (the group's last member has all)
  double seconds = 0;             ///< filled by select: modelled, likewise; 0: the target has no model
  int32_t wave = -1;              ///< filled by schedule: nodes of one wave may run at once
};

/// A parameter or buffer that the graph refers to: a segment of a store.
struct ParameterRef {
  int32_t store = 0;
  int32_t segment = 0;
  std::string name;
  Shape shape;            ///< canonical order (convolution weights O,H,W,I)
  bool trainable = true;  ///< false: frozen, a buffer, or of a model that the step does not update
  bool buffer = false;
};

/// A term of the objective, or a metric: sum over rows of `per_row`, divided by the sum of `row_weight` (or the rows).
struct Term {
  std::string name;
  double weight = 1;              ///< factor in the objective; unused for metrics
  ValueId per_row = kNoValue;     ///< [rows x N]
  ValueId row_weight = kNoValue;  ///< [rows x N], or none: each row counts 1
  int32_t totals = -1;            ///< index into Graph::totals
  int32_t seed = -1;              ///< index into Graph::scalars (training): factor / expected count
};

struct NamedValue {
  std::string name;
  ValueId value = kNoValue;
};

/// What the plan is for; training has all stages, the others forward only.
enum class Phase : uint8_t { train, evaluate, predict, count };
const char* name(Phase phase);

struct Graph {
  Phase phase = Phase::train;
  std::vector<Value> values;
  std::vector<Node> nodes;          ///< in an order in which they may run
  std::vector<NamedValue> inputs;   ///< Place::input
  std::vector<NamedValue> outputs;  ///< activations until `trace` adds stores; then Place::output
  std::vector<ParameterRef> parameters;
  std::vector<std::string> scalars;  ///< names of host scalars
  std::vector<std::string> totals;   ///< names of accumulators
  std::vector<Term> objective;
  std::vector<Term> metrics;
  std::vector<ValueId> wanted_gradients;  ///< inputs (after load) whose gradient becomes an output "gradient.<input>"
  int64_t arena_bytes = 0;                ///< filled by memory
  int64_t live_bytes = 0;                 ///< filled by memory: the largest live set, a lower bound of arena_bytes

  const Value& value(ValueId id) const { return values[static_cast<size_t>(id)]; }
  Value& value(ValueId id) { return values[static_cast<size_t>(id)]; }
  const ValueType& type(ValueId id) const { return value(id).type; }

  ValueId add_value(ValueType type, Place place = Place::activation, int32_t slot = -1);
  /// Appends a node, infers its output types through the op table and adds its output values.
  /// Throws Error [shape] naming node and line when the inputs do not fit.
  int32_t add_node(std::string_view op, std::vector<ValueId> inputs, Attributes attributes, std::string name,
                   Where where = {}, Stage stage = Stage::forward);
  /// The single output of the node that add_node appends.
  ValueId emit(std::string_view op, std::vector<ValueId> inputs, Attributes attributes = {}, std::string name = {},
               Where where = {}, Stage stage = Stage::forward);
  int32_t add_scalar(std::string name);
  /// Value of a scalar (one per name).
  ValueId scalar_value(int32_t slot);
  /// Nodes that read each value.
  std::vector<std::vector<int32_t>> consumers() const;
};

/// "conv2d 'conv1'": how errors and dumps name a node.
std::string label(const Node& node);
/// One line a node; what passes filled in is shown.
std::string print(const Graph& graph);
/// Graphviz.
std::string dot(const Graph& graph);

}  // namespace brisk::graph
