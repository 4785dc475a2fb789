// Building a graph: every node passes the op table's checks before it is part of it.
#include "graph/graph.h"

#include <algorithm>

#include "core/text.h"
#include "graph/op_table.h"

namespace brisk::graph {

std::string ValueType::text() const {
  if (!batched()) return shape.text();
  std::string out = rows == 1 ? "[N" : cat("[", rows, "N");
  for (const int64_t size : shape) out += cat(", ", size);
  return out + "]";
}

const char* name(Place place) {
  switch (place) {
    case Place::activation:
      return "activation";
    case Place::input:
      return "input";
    case Place::output:
      return "output";
    case Place::parameter:
      return "parameter";
    case Place::buffer:
      return "buffer";
    case Place::gradient:
      return "gradient";
    case Place::moment1:
      return "moment1";
    case Place::moment2:
      return "moment2";
    case Place::staged:
      return "staged";
    case Place::shadow:
      return "shadow";
    case Place::scalar:
      return "scalar";
    case Place::state:
      return "state";
    case Place::totals:
      return "totals";
  }
  return "unknown";
}

const char* name(Stage stage) {
  switch (stage) {
    case Stage::forward:
      return "forward";
    case Stage::backward:
      return "backward";
    case Stage::commit:
      return "commit";
    case Stage::update:
      return "update";
  }
  return "unknown";
}

const char* name(Phase phase) {
  switch (phase) {
    case Phase::train:
      return "train";
    case Phase::evaluate:
      return "evaluate";
    case Phase::predict:
      return "predict";
    case Phase::count:
      return "count";
  }
  return "unknown";
}

ValueId Graph::add_value(ValueType type, Place place, int32_t slot) {
  Value value;
  value.type = type;
  value.place = place;
  value.slot = slot;
  values.push_back(value);
  return static_cast<ValueId>(values.size() - 1);
}

int32_t Graph::add_node(std::string_view op, std::vector<ValueId> operands, Attributes attributes, std::string name,
                        Where where, Stage stage) {
  Node node;
  node.op = &graph::op(op);
  node.inputs = std::move(operands);
  node.attributes = std::move(attributes);
  node.name = std::move(name);
  node.where = where;
  node.stage = stage;
  const std::vector<ValueType> types = infer(*this, node);
  const int32_t index = static_cast<int32_t>(nodes.size());
  for (int i = 0; i < static_cast<int>(types.size()); ++i) {
    const auto [place, slot] = node.op->place ? node.op->place(*this, node, i) : std::pair(Place::activation, -1);
    node.outputs.push_back(add_value(types[static_cast<size_t>(i)], place, slot));
    values.back().producer = index;
  }
  nodes.push_back(std::move(node));
  return index;
}

ValueId Graph::emit(std::string_view op, std::vector<ValueId> operands, Attributes attributes, std::string name,
                    Where where, Stage stage) {
  const Node& node = nodes[static_cast<size_t>(
      add_node(op, std::move(operands), std::move(attributes), std::move(name), where, stage))];
  if (node.outputs.size() != 1) {
    throw Error(ErrorCode::state, label(node), cat("has ", node.outputs.size(), " outputs, not one"), where);
  }
  return node.outputs[0];
}

int32_t Graph::add_scalar(std::string name) {
  const auto found = std::find(scalars.begin(), scalars.end(), name);
  if (found != scalars.end()) return static_cast<int32_t>(found - scalars.begin());
  scalars.push_back(std::move(name));
  return static_cast<int32_t>(scalars.size() - 1);
}

ValueId Graph::scalar_value(int32_t slot) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].place == Place::scalar && values[i].slot == slot) return static_cast<ValueId>(i);
  }
  return add_value({}, Place::scalar, slot);
}

std::vector<std::vector<int32_t>> Graph::consumers() const {
  std::vector<std::vector<int32_t>> readers(values.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const ValueId id : nodes[i].inputs) {
      std::vector<int32_t>& list = readers[static_cast<size_t>(id)];
      // x * x reads x once.
      if (list.empty() || list.back() != static_cast<int32_t>(i)) list.push_back(static_cast<int32_t>(i));
    }
  }
  return readers;
}

}  // namespace brisk::graph
