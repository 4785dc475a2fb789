// precision: which values have 16 bits. graph/low_forms.h has the table of operations; here follow the casts: one for a
// value and stage, so that no f32 form lives from forward to backward. Where the target's kernels do not take 16 bits,
// a node computes in f32 between the same roundings, which are therefore never folded away.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "graph/low_forms.h"
#include "passes/common.h"

namespace brisk::passes {

using graph::Format;
using graph::Graph;
using graph::is_low;
using graph::Node;
using graph::Place;
using graph::Stage;
using graph::ValueId;

namespace {

DType low_dtype(Precision precision) {
  return precision == Precision::fp16 ? DType::f16 : precision == Precision::bf16 ? DType::bf16 : DType::f32;
}

bool is_walk(const Node& node) { return is(node, "sgd_walk") || is(node, "adam_walk"); }

bool touches_batch(const Graph& graph, const Node& node) {
  for (const auto* list : {&node.inputs, &node.outputs})
    for (const ValueId id : *list)
      if (graph.type(id).batched()) return true;
  return false;
}

/// Rewrites the nodes in their order; values that become 16 bits keep their ids.
class Recipe {
 public:
  Recipe(Graph& graph, const PlanRequest& request)
      : graph_(graph), target_(*request.target), low_(low_dtype(request.precision)) {}

  void run() {
    const std::vector<Node> given = std::move(graph_.nodes);
    graph_.nodes.clear();
    stages_.assign(graph_.values.size(), Stage::forward);
    for (const Node& node : given)
      for (const ValueId id : node.outputs) {
        stages_[static_cast<size_t>(id)] = node.stage;
        graph_.value(id).producer = -1;
      }
    for (const Node& node : given) rewrite(node);
    for (auto* terms : {&graph_.objective, &graph_.metrics})
      for (graph::Term& term : *terms) term.per_row = in_f32(term.per_row);
    if (target_.asynchronous()) write_shadows();
  }

 private:
  /// Whether the node computes with 16-bit operands.
  bool lowers(const Node& node) const {
    const Format format = graph::low_form(node).format;
    if (format == Format::f32 || !touches_batch(graph_, node)) return false;
    if (format == Format::low) return true;
    bool forward = false, any = false, forward_low = true, all_low = true;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (!graph::low_input(graph_, node, static_cast<int>(i))) continue;
      const ValueId id = node.inputs[i];
      const bool low = is_low(graph_.type(id).dtype);
      any = true;
      all_low &= low;
      if (node.stage == Stage::forward || stages_[static_cast<size_t>(id)] != Stage::forward) continue;
      forward = true;
      forward_low &= low;
    }
    return any && (forward ? forward_low : all_low);
  }

  void rewrite(Node node) {
    const bool low = lowers(node), computes = low && target_.computes(node, low_);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      ValueId& id = node.inputs[i];
      if (low && graph::low_input(graph_, node, static_cast<int>(i))) id = cast(id, low_, node.stage);
      if (!computes && is_low(graph_.type(id).dtype)) id = cast(id, DType::f32, node.stage);
    }
    std::vector<std::pair<ValueId, ValueId>> rounded;
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      graph::Value& value = graph_.value(node.outputs[i]);
      if (!low || (graph::low_form(node).outputs >> i & 1u) == 0 || value.type.dtype != DType::f32) continue;
      if (computes) {
        value.type.dtype = low_;
        continue;
      }
      const graph::ValueType type = value.type;
      value.type.dtype = low_;
      rounded.emplace_back(add_value(type, node.stage), node.outputs[i]);
      node.outputs[i] = rounded.back().first;
    }
    const Stage stage = node.stage;
    append(std::move(node));
    for (const auto& [from, to] : rounded) append_cast(from, to, stage);
  }

  ValueId add_value(const graph::ValueType& type, Stage stage) {
    stages_.push_back(stage);
    return graph_.add_value(type);
  }

  void append(Node node) {
    for (const ValueId id : node.outputs) graph_.value(id).producer = static_cast<int32_t>(graph_.nodes.size());
    graph_.nodes.push_back(std::move(node));
  }

  void append_cast(ValueId from, ValueId to, Stage stage) {
    Node node;
    node.op = &graph::op("cast");
    node.attributes = {{"dtype", std::string(name(graph_.type(to).dtype))}};
    node.inputs = {from};
    node.outputs = {to};
    node.name = "cast";
    node.stage = stage;
    append(std::move(node));
  }

  ValueId cast(ValueId id, DType dtype, Stage stage) {
    if (graph_.type(id).dtype == dtype) return id;
    const bool matrix = graph_.value(id).place == Place::parameter;
    const bool lives_on = matrix ? target_.asynchronous() : is_low(dtype);  // smaller than what it is made of
    const auto key = std::tuple(id, dtype, lives_on ? Stage::forward : stage);
    const auto known = casts_.find(key);
    if (known != casts_.end()) return known->second;
    graph::ValueType type = graph_.type(id);
    type.dtype = dtype;
    if (matrix && target_.asynchronous()) {
      const int32_t slot = graph_.value(id).slot;
      stages_.push_back(Stage::forward);
      return casts_[key] = shadows_[slot] = graph_.add_value(type, Place::shadow, slot);
    }
    const ValueId made = add_value(type, stage);
    append_cast(id, made, stage);
    return casts_[key] = made;
  }

  /// The f32 form that the sum of a term reads.
  ValueId in_f32(ValueId id) const {
    const auto known = casts_.find(std::tuple(id, DType::f32, Stage::forward));
    return known == casts_.end() ? id : known->second;
  }

  /// The walks keep the shadows of what they move.
  void write_shadows() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (!is_walk(graph_.nodes[i])) continue;
      std::vector<int64_t> shadowed;
      std::vector<ValueId> made;
      int64_t parameter = 0;
      for (const ValueId id : std::vector<ValueId>(graph_.nodes[i].outputs)) {
        const graph::Value value = graph_.value(id);
        if (value.place != Place::parameter) break;
        if (shadows_.count(value.slot) == 1) {
          graph::ValueType type = value.type;
          type.dtype = low_;
          made.push_back(graph_.add_value(type, Place::shadow, value.slot));
          graph_.value(made.back()).producer = static_cast<int32_t>(i);
          shadowed.push_back(parameter);
        }
        ++parameter;
      }
      if (made.empty()) continue;
      Node& walk = graph_.nodes[i];
      walk.outputs.insert(walk.outputs.end(), made.begin(), made.end());
      walk.attributes.set("shadow", std::string(name(low_)));
      walk.attributes.set("shadowed", shadowed);
    }
  }

  Graph& graph_;
  const backend::Target& target_;
  const DType low_;
  std::vector<Stage> stages_;  ///< of each value's producer
  std::map<std::tuple<ValueId, DType, Stage>, ValueId> casts_;
  std::map<int32_t, ValueId> shadows_;
};

}  // namespace

Graph precision(Graph graph, const PlanRequest& request) {
  if (request.precision == Precision::automatic)
    throw Error(ErrorCode::state, "precision", "automatic must be resolved before a plan is made");
  if (request.precision != Precision::f32) Recipe(graph, request).run();
  return graph;
}

namespace {

/// The rule that a value in memory that outlasts a run, or is shared with the host, would break; nullptr: none.
const char* f32_rule(Place place) {
  switch (place) {
    case Place::parameter:
      return "parameters";
    case Place::buffer:
    case Place::staged:
      return "statistics";
    case Place::gradient:
      return "gradients";
    case Place::moment1:
    case Place::moment2:
      return "moments";
    case Place::scalar:
      return "scalars";
    case Place::totals:
      return "totals";
    default:
      return nullptr;
  }
}

bool rounds(const Graph& graph, const Node& node, DType low) {
  return is(node, "cast") && graph.type(node.outputs[0]).dtype == low;
}

/// A matrix operation reads 16 bits, or what has been rounded to them; and so is its result.
void verify_matrix(const Graph& graph, const char* pass, const Node& node, DType low,
                   const std::vector<std::vector<int32_t>>& readers) {
  const graph::LowForm form = graph::low_form(node);
  if (form.format != Format::low || !touches_batch(graph, node)) return;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!graph::low_input(graph, node, static_cast<int>(i)) || is_low(graph.type(node.inputs[i]).dtype)) continue;
    const int32_t from = graph.value(node.inputs[i]).producer;
    const bool widened =
        from >= 0 && is(node_at(graph, from), "cast") && graph.type(node_at(graph, from).inputs[0]).dtype == low;
    check(widened, pass, "operands", cat(graph::label(node), " reads input ", i, " in f32"));
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if ((form.outputs >> i & 1u) == 0 || is_low(graph.type(node.outputs[i]).dtype)) continue;
    const auto& list = readers[static_cast<size_t>(node.outputs[i])];
    check(list.size() == 1 && rounds(graph, node_at(graph, list[0]), low), pass, "results",
          cat(graph::label(node), " makes an f32 value that is not rounded"));
  }
}

void verify_casts(const Graph& graph, const char* pass, DType low) {
  std::set<std::tuple<ValueId, DType, Stage>> seen;
  for (const Node& node : graph.nodes) {
    if (!is(node, "cast")) continue;
    const DType from = graph.type(node.inputs[0]).dtype, to = graph.type(node.outputs[0]).dtype;
    if (from != low && to != low) continue;  // a user's
    check(seen.insert({node.inputs[0], to, node.stage}).second, pass, "twice",
          cat("a value is cast to ", name(to), " twice in the ", graph::name(node.stage), " stage"));
  }
}

}  // namespace

void verify_precision(const Graph& graph, const PlanRequest& request) {
  const char* pass = "precision";
  verify_structure(graph, pass);
  const DType low = low_dtype(request.precision);
  for (const graph::Value& value : graph.values) {
    const DType dtype = value.type.dtype;
    if (const char* rule = f32_rule(value.place))
      check(dtype == DType::f32, pass, rule, cat(graph::name(value.place), " is ", name(dtype)));
    check(!is_low(dtype) || dtype == low, pass, "low",
          cat("a value is ", name(dtype), " in a plan of ", name(request.precision)));
  }
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.inputs)
      check(!node.op->elementwise || graph.type(id).dtype == DType::f32 || is_low(graph.type(id).dtype), pass,
            "arithmetic", cat(graph::label(node), " reads integers"));
    check(graph::low_type(graph, node) == DType::f32 || request.target->computes(node, low), pass, "computes",
          cat(graph::label(node), " has no 16-bit kernel on ", request.target->name()));
  }
  for (const auto* terms : {&graph.objective, &graph.metrics})
    for (const graph::Term& term : *terms)
      check(graph.type(term.per_row).dtype == DType::f32, pass, "terms", cat("term ", term.name, " is not f32"));
  verify_types(graph, pass);
  if (low == DType::f32) return;
  verify_casts(graph, pass, low);
  const auto readers = graph.consumers();
  for (const Node& node : graph.nodes) verify_matrix(graph, pass, node, low, readers);
}

}  // namespace brisk::passes
