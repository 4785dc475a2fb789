// The list of families, and what is true of every operation: arity, attributes, sizes, rows.
#include "graph/op_table.h"

#include <algorithm>
#include <map>

#include "core/text.h"
#include "graph/low_forms.h"

namespace brisk::graph {
namespace {

const std::map<std::string_view, const OpInfo*>& index() {
  static const std::map<std::string_view, const OpInfo*> by_name = [] {
    std::map<std::string_view, const OpInfo*> made;
    for (const OpInfo* info : all_ops()) made[info->name] = info;
    return made;
  }();
  return by_name;
}

[[noreturn]] void malformed(const Node& node, const std::string& message) {
  throw Error(ErrorCode::state, label(node), message, node.where);
}

void check_arity(const Graph& graph, const Node& node) {
  const int count = static_cast<int>(node.inputs.size());
  const OpInfo& info = *node.op;
  if (count < info.minimum_inputs || (info.maximum_inputs >= 0 && count > info.maximum_inputs)) {
    malformed(node, cat("has ", count, " inputs, allowed is ", info.minimum_inputs, " to ",
                        info.maximum_inputs < 0 ? "any" : std::to_string(info.maximum_inputs)));
  }
  for (const ValueId id : node.inputs) {
    if (id < 0 || static_cast<size_t>(id) >= graph.values.size()) malformed(node, cat("reads %", id, ", no value"));
  }
}

void check_attributes(const Node& node) {
  for (const AttributeInfo& wanted : node.op->attributes) {
    const Attribute* found = node.attributes.find(wanted.name);
    if (!found) malformed(node, cat("lacks attribute '", wanted.name, "'"));
    if (found->index() != static_cast<size_t>(wanted.kind)) {
      malformed(node, cat("has attribute '", wanted.name, "' of another kind in ", node.attributes.print()));
    }
  }
  for (const auto& [name, value] : node.attributes) {
    const auto& known = node.op->attributes;
    const auto same = [&entry = name](const AttributeInfo& a) { return a.name == entry; };
    if (std::none_of(known.begin(), known.end(), same)) malformed(node, cat("has no attribute '", name, "'"));
  }
}

// Throws when the product of all sizes and 8 bytes (the largest element) does not fit.
void check_size(const InferContext& context, const ValueType& type) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(type.shape.count(), 8, &bytes) ||
      __builtin_mul_overflow(bytes, std::max<int64_t>(type.rows, 1), &bytes)) {
    context.fail(cat("output ", type, " has more bytes than 63 bits count"));
  }
}

bool empty(const Shape& shape) { return std::find(shape.begin(), shape.end(), 0) != shape.end(); }

void check_inputs(const InferContext& context) {
  int first = -1;
  for (int i = 0; i < context.count(); ++i) {
    if (empty(context.input(i).shape)) context.fail(cat("input ", i, " must not be empty, got ", context.describe(i)));
    if (!context.input(i).batched()) continue;
    if (first < 0) first = i;
    if (context.input(i).rows != context.input(first).rows) {
      context.fail(
          cat("inputs must have the same number of rows, got ", context.describe(first), " and ", context.describe(i)));
    }
  }
}

}  // namespace

std::vector<const OpInfo*> all_ops() {
  std::vector<const OpInfo*> all;
  for (const auto& family : {activation_ops(), compare_ops(), conv_ops(), custom_ops(), elementwise_ops(),
                             indexing_ops(), layer_norm_ops(), linear_ops(), loss_ops(), norm_ops(), plan_ops(),
                             pool_ops(), random_ops(), reduce_ops(), shape_ops(), softmax_ops()}) {
    for (const OpInfo& info : family) all.push_back(&info);
  }
  return all;
}

const OpInfo* find_op(std::string_view name) {
  const auto found = index().find(name);
  return found == index().end() ? nullptr : found->second;
}

const OpInfo& op(std::string_view name) {
  if (const OpInfo* found = find_op(name)) return *found;
  std::vector<std::string> names;
  for (const auto& [known, info] : index()) names.emplace_back(known);
  const std::string near = closest(name, names);
  throw Error(ErrorCode::state, cat("operation '", name, "'"),
              near.empty() ? "is not in the table" : cat("is not in the table; did you mean ", near, "?"));
}

std::vector<ValueType> infer(const Graph& graph, const Node& node) {
  check_arity(graph, node);
  check_attributes(node);
  const DType low = low_type(graph, node);
  const InferContext context(graph, node, low);
  check_inputs(context);
  std::vector<ValueType> types = node.op->infer(context);
  for (size_t i = 0; low != DType::f32 && i < types.size(); ++i)
    if (types[i].dtype == DType::f32 && (low_form(node).outputs >> i & 1u) != 0) types[i].dtype = low;
  if (node.op->outputs >= 0 && static_cast<int>(types.size()) != node.op->outputs) {
    malformed(node, cat("infers ", types.size(), " outputs, the table has ", node.op->outputs));
  }
  for (const ValueType& type : types) {
    if (empty(type.shape)) context.fail(cat("output ", type, " is empty; each size must be at least 1"));
    check_size(context, type);
  }
  return types;
}

Reads backward_reads(const Node& node) {
  return node.attributes.has("op") ? node.attributes.object("op").backward_reads() : node.op->backward_reads;
}

double flops(const Graph& graph, const Node& node) {
  if (node.op->flops) return node.op->flops(graph, node);
  return node.outputs.empty() ? 0 : static_cast<double>(graph.type(node.outputs[0]).elements());
}

InferContext::InferContext(const Graph& graph, const Node& node, DType low) : graph_(graph), node_(node) {
  if (low == DType::f32) return;
  for (const ValueId id : node.inputs) {
    widened_.push_back(graph.type(id));
    if (widened_.back().dtype == low) widened_.back().dtype = DType::f32;
  }
}

std::string InferContext::describe(int i) const {
  const Value& value = graph_.value(node_.inputs[static_cast<size_t>(i)]);
  const std::string type = value.type.text();
  const auto named = [&](const auto& entries, const char* what, int32_t slot) {
    const bool known = slot >= 0 && static_cast<size_t>(slot) < entries.size();
    return known ? cat(type, " from ", what, " '", entries[static_cast<size_t>(slot)].name, "'") : type;
  };
  if (value.producer >= 0) {
    const Node& producer = graph_.nodes[static_cast<size_t>(value.producer)];
    if (producer.op->name == "load") {
      return named(graph_.inputs, "input", graph_.value(producer.inputs[0]).slot);
    }
    const std::string where = producer.where.known() ? " (" + producer.where.text() + ")" : "";
    return cat(type, " from ", label(producer), where);
  }
  switch (value.place) {
    case Place::input:
      return named(graph_.inputs, "input", value.slot);
    case Place::parameter:
    case Place::buffer:
      return named(graph_.parameters, name(value.place), value.slot);
    default:
      return type;
  }
}

void InferContext::fail(const std::string& message) const {
  throw Error(ErrorCode::shape, label(node_), message, node_.where);
}

int32_t Derivation::emit_node(std::string_view op, std::vector<ValueId> inputs, Attributes attributes) {
  // Copies: appending may move the forward node.
  const std::string name = node().name;
  const Where where = node().where;
  return graph_.add_node(op, std::move(inputs), std::move(attributes), name, where, Stage::backward);
}

ValueId Derivation::emit(std::string_view op, std::vector<ValueId> inputs, Attributes attributes) {
  const int32_t index = emit_node(op, std::move(inputs), std::move(attributes));
  return graph_.nodes[static_cast<size_t>(index)].outputs[0];
}

}  // namespace brisk::graph
