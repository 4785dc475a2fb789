#include "passes/common.h"

#include <algorithm>

namespace brisk::passes {

using graph::Graph;
using graph::Node;
using graph::Place;
using graph::Stage;
using graph::Value;
using graph::ValueId;

void check(bool condition, const char* pass, const char* rule, const std::string& message) {
  if (!condition) throw Error(ErrorCode::state, cat(pass, ": ", rule), message);
}

bool persistent(const Value& value) { return value.place != Place::activation; }

void reorder(Graph& graph, const std::vector<int32_t>& order) {
  for (Value& value : graph.values) value.producer = -1;
  std::vector<int32_t> moved(graph.nodes.size(), -1);
  std::vector<Node> nodes;
  nodes.reserve(order.size());
  for (const int32_t index : order) {
    moved[static_cast<size_t>(index)] = static_cast<int32_t>(nodes.size());
    nodes.push_back(std::move(graph.nodes[static_cast<size_t>(index)]));
    for (const ValueId id : nodes.back().outputs) graph.value(id).producer = static_cast<int32_t>(nodes.size()) - 1;
  }
  for (Node& node : nodes)
    if (node.recomputes >= 0) node.recomputes = moved[static_cast<size_t>(node.recomputes)];
  graph.nodes = std::move(nodes);
}

std::vector<int32_t> live_nodes(const Graph& graph) {
  std::vector<bool> needed(graph.values.size(), false);
  const auto need = [&](ValueId id) {
    if (id != graph::kNoValue) needed[static_cast<size_t>(id)] = true;
  };
  for (const auto& output : graph.outputs) need(output.value);
  for (const ValueId id : graph.wanted_gradients) need(id);
  std::vector<int32_t> order;
  for (auto index = static_cast<int32_t>(graph.nodes.size()) - 1; index >= 0; --index) {
    const Node& node = node_at(graph, index);
    const bool live = std::any_of(node.outputs.begin(), node.outputs.end(), [&](ValueId id) {
      return needed[static_cast<size_t>(id)] || persistent(graph.value(id));
    });
    if (!live) continue;
    for (const ValueId id : node.inputs) need(id);
    order.push_back(index);
  }
  std::reverse(order.begin(), order.end());
  return order;
}

namespace {

/// Number of slots of the memory that a value lives in.
size_t slots(const Graph& graph, Place place) {
  switch (place) {
    case Place::input:
      return graph.inputs.size();
    case Place::output:
      return graph.outputs.size();
    case Place::scalar:
      return graph.scalars.size();
    case Place::totals:
      return graph.totals.size();
    case Place::state:
      return 2;
    default:
      return graph.parameters.size();
  }
}

/// What is true of one node by itself.
void verify_node(const Graph& graph, const char* pass, const Node& node, const std::string& at) {
  check(static_cast<int>(node.inputs.size()) >= node.op->minimum_inputs &&
            (node.op->maximum_inputs < 0 || static_cast<int>(node.inputs.size()) <= node.op->maximum_inputs),
        pass, "arity", cat(at, " has ", node.inputs.size(), " inputs"));
  for (const auto& attribute : node.op->attributes) {
    const graph::Attribute* found = node.attributes.find(attribute.name);
    check(found && found->index() == static_cast<size_t>(attribute.kind), pass, "attributes",
          cat(at, " needs attribute ", attribute.name));
  }
  check(graph.phase == graph::Phase::train || (!node.op->training_only && node.stage == Stage::forward), pass,
        "evaluation", cat(at, " is for training only"));
  for (const auto* list : {&node.inputs, &node.outputs})
    for (const ValueId id : *list) {
      check(id >= 0 && static_cast<size_t>(id) < graph.values.size(), pass, "ids",
            cat(at, " refers to value ", id, ", which does not exist"));
      const Value& value = graph.value(id);
      check(value.place == Place::activation ||
                (value.slot >= 0 && static_cast<size_t>(value.slot) < slots(graph, value.place)),
            pass, "slots", cat(at, " refers to ", graph::name(value.place), " ", value.slot, ", which does not exist"));
    }
}

/// Terms must keep up with the values that passes replace.
void verify_terms(const Graph& graph, const char* pass) {
  for (const auto* terms : {&graph.objective, &graph.metrics})
    for (const graph::Term& term : *terms) {
      const auto made = [&](ValueId id) {
        return id >= 0 && static_cast<size_t>(id) < graph.values.size() && graph.value(id).producer >= 0;
      };
      const bool counted = term.row_weight != graph::kNoValue;
      check((graph.phase == graph::Phase::count || made(term.per_row)) && (!counted || made(term.row_weight)), pass,
            "terms", cat("nobody makes the values of term ", term.name));
    }
}

}  // namespace

void verify_structure(const Graph& graph, const char* pass, Sorted sorted) {
  std::vector<int32_t> producer(graph.values.size(), -1);
  Stage stage = Stage::forward;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    check(node.op != nullptr, pass, "op", cat("node ", i, " has no operation"));
    const std::string at = graph::label(node);
    verify_node(graph, pass, node, at);
    for (const ValueId id : node.inputs) {
      const int32_t from = graph.value(id).producer;
      check(from < static_cast<int32_t>(i), pass, "order", cat(at, " reads a value before it is made"));
      check(from < 0 || producer[static_cast<size_t>(id)] == from, pass, "producer",
            cat(at, " reads value ", id, ", which node ", from, " does not make"));
      check(from >= 0 || persistent(graph.value(id)), pass, "producer",
            cat(at, " reads value ", id, ", which nobody makes"));
    }
    for (const ValueId id : node.outputs) {
      check(producer[static_cast<size_t>(id)] < 0 && graph.value(id).producer == static_cast<int32_t>(i), pass,
            "producer", cat("value ", id, " of ", at, " has another producer"));
      producer[static_cast<size_t>(id)] = static_cast<int32_t>(i);
    }
    check(sorted == Sorted::by_wave || node.stage >= stage, pass, "stages",
          cat(at, " of stage ", graph::name(node.stage), " comes after stage ", graph::name(stage)));
    stage = node.stage;
  }
  verify_terms(graph, pass);
}

void verify_types(const Graph& graph, const char* pass) {
  for (const Node& node : graph.nodes) {
    const std::string at = graph::label(node);
    std::vector<graph::ValueType> types;
    try {
      types = graph::infer(graph, node);
    } catch (const Error& error) {
      check(false, pass, "types", error.what());
    }
    check(types.size() == node.outputs.size(), pass, "outputs", cat(at, " has ", node.outputs.size(), " outputs"));
    for (size_t i = 0; i < types.size(); ++i) {
      const Value& value = graph.value(node.outputs[i]);
      check(types[i] == value.type, pass, "types",
            cat(at, " makes ", types[i], " ", name(types[i].dtype), ", recorded is ", value.type, " ",
                name(value.type.dtype)));
      // A gradient may be made where it belongs by the operation that computes it.
      const auto [place, slot] =
          node.op->place ? node.op->place(graph, node, static_cast<int>(i)) : std::pair(Place::activation, int32_t{-1});
      const bool direct = !node.op->place && value.place == Place::gradient;
      check(direct || (value.place == place && (place == Place::activation || value.slot == slot)), pass, "places",
            cat(at, " makes a value in ", graph::name(place), ", recorded is ", graph::name(value.place)));
    }
  }
}

ValueId state_value(Graph& graph, int32_t slot) {
  for (size_t i = 0; i < graph.values.size(); ++i)
    if (graph.values[i].place == Place::state && graph.values[i].slot == slot && graph.values[i].producer < 0)
      return static_cast<ValueId>(i);
  if (slot == 0) return graph.add_value({DType::f32, 0, {}}, Place::state, 0);
  return graph.add_value({DType::i64, 0, {static_cast<int64_t>(backend::Counter::count)}}, Place::state, 1);
}

bool is_view(const Graph& graph, const Node& node) {
  if (!node.op->view) return false;
  const graph::Value &in = graph.value(node.inputs[0]), &out = graph.value(node.outputs[0]);
  constexpr auto kLast = graph::Layout::channels_last;
  if (in.layout != kLast && out.layout != kLast) return true;
  const auto area = [](const graph::Value& value) { return value.type.shape.count() / value.type.shape[0]; };
  if (in.layout == kLast && out.layout == kLast)
    return in.type.shape[0] == out.type.shape[0] && in.type.rows == out.type.rows;
  const graph::Value& last = in.layout == kLast ? in : out;
  return last.type.shape[0] == 1 || area(last) == 1;
}

int64_t value_bytes(const Graph& graph, ValueId id, int64_t samples, int lanes) {
  const Value& value = graph.value(id);
  const int64_t rounded = value.layout == graph::Layout::lanes ? (samples + lanes - 1) / lanes * lanes : samples;
  return value.type.elements() * (value.type.batched() ? rounded : 1) * size_of(value.type.dtype);
}

}  // namespace brisk::passes
