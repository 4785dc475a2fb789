// What a rule of the reference sees of a node, and the tables of rules, one a family.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "oracle/oracle.h"

namespace brisk::oracle {

/// One node with its values. Outputs start as zeros of the type that shape inference gave them.
struct Frame {
  const graph::Graph& graph;
  const graph::Node& node;
  int32_t index;
  int64_t samples;
  const Run& run;
  Fault& fault;
  std::vector<const Array*> inputs;
  std::vector<Array> outputs;

  const Array& in(int i) const { return *inputs[static_cast<size_t>(i)]; }
  Array& out(int i = 0) { return outputs[static_cast<size_t>(i)]; }
  int count() const { return static_cast<int>(inputs.size()); }
  const graph::ValueType& in_type(int i) const { return graph.type(node.inputs[static_cast<size_t>(i)]); }
  const graph::ValueType& out_type(int i = 0) const { return graph.type(node.outputs[static_cast<size_t>(i)]); }
  /// rows x N of a batched value, 1 of any other.
  int64_t rows(const graph::ValueType& type) const { return type.batched() ? type.rows * samples : 1; }
  int64_t integer(std::string_view name) const { return node.attributes.integer(name); }
  double real(std::string_view name) const { return node.attributes.real(name); }
  bool flag(std::string_view name) const { return node.attributes.flag(name); }
  const std::string& text(std::string_view name) const { return node.attributes.text(name); }
  const std::vector<int64_t>& integers(std::string_view name) const { return node.attributes.integers(name); }
  const std::vector<double>& reals(std::string_view name) const { return node.attributes.reals(name); }
  /// Throws std::logic_error naming the node.
  void require(bool condition, const std::string& what) const;
};

struct Rule {
  std::string_view op;
  void (*apply)(Frame&);
};

/// none, relu, tanh, sigmoid by name. NaN stays NaN.
double activate(const std::string& name, double x);

/// The per-sample shape as outer x size x inner around one axis.
struct Around {
  int64_t outer = 1, size = 1, inner = 1;
};
Around around(const Shape& shape, int64_t axis);

const std::vector<Rule>& custom_rules();
const std::vector<Rule>& elementwise_rules();
const std::vector<Rule>& indexing_rules();
const std::vector<Rule>& layer_norm_rules();
const std::vector<Rule>& layer_rules();
const std::vector<Rule>& loss_rules();
const std::vector<Rule>& norm_rules();
const std::vector<Rule>& plan_rules();
const std::vector<Rule>& pool_rules();
const std::vector<Rule>& random_rules();
const std::vector<Rule>& shape_rules();

}  // namespace brisk::oracle
