// Walks a graph and applies the rule of each node.
#include "oracle/oracle.h"

#include <stdexcept>

#include "graph/op_table.h"
#include "oracle/rules.h"

namespace brisk::oracle {
namespace {

using graph::Graph;
using graph::Node;
using graph::ValueId;

const Rule* find_rule(std::string_view op) {
  for (const auto* rules :
       {&custom_rules(), &elementwise_rules(), &indexing_rules(), &layer_norm_rules(), &layer_rules(), &loss_rules(),
        &norm_rules(), &plan_rules(), &pool_rules(), &random_rules(), &shape_rules()}) {
    for (const Rule& rule : *rules) {
      if (rule.op == op) return &rule;
    }
  }
  return nullptr;
}

void check_size(const Graph& graph, ValueId id, int64_t samples, const Array& array) {
  if (array.shape == full_shape(graph.type(id), samples) &&
      static_cast<int64_t>(array.data.size()) == array.shape.count()) {
    return;
  }
  throw std::logic_error("oracle: value " + std::to_string(id) + " is " + array.shape.text() + ", its type says " +
                         full_shape(graph.type(id), samples).text());
}

}  // namespace

Shape full_shape(const graph::ValueType& type, int64_t samples) {
  Shape shape;
  if (type.batched()) shape.append(type.rows * samples);
  for (const int64_t size : type.shape) shape.append(size);
  return shape;
}

Array zeros(const graph::ValueType& type, int64_t samples) {
  Array array;
  array.shape = full_shape(type, samples);
  array.data.assign(static_cast<size_t>(array.shape.count()), 0.0);
  return array;
}

void Frame::require(bool condition, const std::string& what) const {
  if (!condition) throw std::logic_error("oracle: " + std::string(node.op->name) + " '" + node.name + "': " + what);
}

bool knows(std::string_view op) { return find_rule(op) != nullptr; }

Values evaluate(const Graph& graph, int64_t samples, Values given, const Run& run, Fault* fault) {
  Fault ignored;
  Fault& first_fault = fault ? *fault : ignored;
  for (const auto& [id, array] : given) check_size(graph, id, samples, array);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const Rule* rule = find_rule(node.op->name);
    if (!rule) throw std::logic_error("oracle: no rule for " + std::string(node.op->name));
    Frame frame{graph, node, static_cast<int32_t>(i), samples, run, first_fault, {}, {}};
    for (const ValueId id : node.inputs) {
      const auto found = given.find(id);
      frame.require(found != given.end(), "input " + std::to_string(id) + " has no value");
      frame.inputs.push_back(&found->second);
    }
    for (const ValueId id : node.outputs) {
      const auto before = given.find(id);
      frame.outputs.push_back(before != given.end() ? before->second : zeros(graph.type(id), samples));
    }
    rule->apply(frame);
    for (size_t k = 0; k < node.outputs.size(); ++k) {
      check_size(graph, node.outputs[k], samples, frame.outputs[k]);
      given[node.outputs[k]] = std::move(frame.outputs[k]);
    }
  }
  return given;
}

}  // namespace brisk::oracle
