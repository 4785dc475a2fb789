// Graphs as text: one line a node for people and tests, and Graphviz.
#include "brisk/op.h"
#include "core/text.h"
#include "graph/op_table.h"

namespace brisk::graph {
namespace {

template <class Names>
std::string entry(const Names& names, int32_t slot) {
  if (slot < 0 || static_cast<size_t>(slot) >= names.size()) return "?";
  const auto& found = names[static_cast<size_t>(slot)];
  if constexpr (std::is_convertible_v<decltype(found), std::string>) {
    return found;
  } else {
    return found.name;
  }
}

std::string slot_name(const Graph& graph, const Value& value) {
  switch (value.place) {
    case Place::activation:
      return {};
    case Place::input:
      return entry(graph.inputs, value.slot);
    case Place::output:
      return entry(graph.outputs, value.slot);
    case Place::scalar:
      return entry(graph.scalars, value.slot);
    case Place::totals:
      return entry(graph.totals, value.slot);
    case Place::state:
      return value.slot == 0 ? "scale" : "counters";
    default:
      return entry(graph.parameters, value.slot);
  }
}

// "%7", or "%3 parameter conv1.weight"
std::string reference(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (value.place == Place::activation) return cat("%", id);
  return cat("%", id, " ", name(value.place), " ", slot_name(graph, value));
}

std::string type_text(const ValueType& type) {
  return (type.dtype == DType::f32 ? "" : cat(name(type.dtype), " ")) + type.text();
}

std::string storage(const Value& value) {
  std::string out;
  if (value.layout == Layout::lanes) out += " lanes";
  if (value.layout == Layout::channels_last) out += " channels_last";
  if (value.bytes > 0) out += cat(" ", value.bytes, " bytes");
  if (value.alias != kNoValue) out += cat(" in %", value.alias);
  if (value.offset >= 0) out += cat(" at ", value.offset);
  return out;
}

std::string filled_in(const Node& node) {
  std::string out;
  if (node.recomputes >= 0) out += cat("; repeats node ", node.recomputes);
  if (node.group >= 0) out += cat("; group ", node.group);
  if (!node.implementation.empty()) out += "; " + node.implementation;
  for (const std::string& reason : node.declined) out += "; " + reason;
  if (node.workspace_bytes > 0) out += cat("; workspace ", node.workspace_bytes, " bytes");
  if (node.workspace_offset >= 0) out += cat(" at ", node.workspace_offset);
  if (node.wave >= 0) out += cat("; wave ", node.wave);
  return out;
}

std::string line(const Graph& graph, const Node& node) {
  std::string out = cat(name(node.stage), " ", label(node), "(");
  for (size_t i = 0; i < node.inputs.size(); ++i) out += (i ? ", " : "") + reference(graph, node.inputs[i]);
  out += ") -> ";
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const Value& value = graph.value(node.outputs[i]);
    out += (i ? ", " : "") + reference(graph, node.outputs[i]) + " " + type_text(value.type) + storage(value);
  }
  if (const std::string attributes = node.attributes.print(); !attributes.empty()) out += " " + attributes;
  if (node.where.known()) out += " (" + node.where.text() + ")";
  return out + filled_in(node);
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::string label(const Node& node) {
  const std::string op = node.attributes.has("op") ? node.attributes.object("op").name()
                                                   : std::string(node.op ? node.op->name : "unknown");
  return node.name.empty() ? op : op + " '" + node.name + "'";
}

std::string print(const Graph& graph) {
  std::string out = cat("graph for ", name(graph.phase), ": ", graph.nodes.size(), " nodes, ", graph.values.size(),
                        " values, ", graph.parameters.size(), " parameters");
  if (graph.arena_bytes > 0) out += cat(", arena ", graph.arena_bytes, " bytes (live ", graph.live_bytes, ")");
  out += "\n";
  for (const NamedValue& input : graph.inputs) {
    out += cat("input ", input.name, " = %", input.value, " ", type_text(graph.type(input.value)), "\n");
  }
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    const ParameterRef& parameter = graph.parameters[i];
    out += cat("parameter ", i, " ", parameter.name, " ", parameter.shape, parameter.trainable ? "" : " fixed", "\n");
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) out += cat(i, ": ", line(graph, graph.nodes[i]), "\n");
  for (const auto* terms : {&graph.objective, &graph.metrics}) {
    for (const Term& term : *terms) {
      out += cat(terms == &graph.objective ? "objective " : "metric ", term.name, " = %", term.per_row);
      if (term.row_weight != kNoValue) out += cat(" weighted by %", term.row_weight);
      out += terms == &graph.objective ? cat(", factor ", term.weight, "\n") : "\n";
    }
  }
  for (const NamedValue& output : graph.outputs) out += cat("output ", output.name, " = %", output.value, "\n");
  return out;
}

std::string dot(const Graph& graph) {
  std::string out = cat("digraph ", name(graph.phase), " {\n  node [shape=box];\n");
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    std::string text = label(node);
    if (!node.implementation.empty()) text += ", " + node.implementation;
    out += cat("  n", i, " [label=", quoted(text), node.stage == Stage::forward ? "" : ", style=dashed", "];\n");
    for (const ValueId id : node.inputs) {
      const Value& value = graph.value(id);
      const std::string edge = quoted(type_text(value.type));
      if (value.producer >= 0) {
        out += cat("  n", value.producer, " -> n", i, " [label=", edge, "];\n");
      } else {
        out += cat("  v", id, " [shape=ellipse, label=", quoted(reference(graph, id)), "];\n");
        out += cat("  v", id, " -> n", i, " [label=", edge, "];\n");
      }
    }
  }
  return out + "}\n";
}

}  // namespace brisk::graph
