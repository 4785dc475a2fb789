// compose: forms semantic operations that have a derivative of their own: conv/linear + bias + activation,
// batch_norm + add + activation, log_softmax + negative log-likelihood. So what backward keeps is chosen here.
#include <algorithm>
#include <optional>

#include "passes/common.h"

namespace brisk::passes {

using graph::Graph;
using graph::Node;
using graph::ValueId;

namespace {

bool is_activation(const Node& node) { return is(node, "relu") || is(node, "tanh") || is(node, "sigmoid"); }
bool is_matrix(const Node& node) { return is(node, "conv2d") || is(node, "linear"); }
bool is_norm(const Node& node) { return is(node, "batch_norm") || is(node, "batch_norm_inference"); }
bool bare(const Node& node) { return node.attributes.text("activation") == "none"; }
size_t plain_norm_inputs() { return 5; }

/// What node `second` may swallow.
struct Match {
  int32_t first;   ///< the producer that is swallowed
  int32_t second;  ///< its only reader, at whose place the composed node stands
};

/// The composed node, or nothing when the two do not compose.
std::optional<Node> compose_pair(const Graph& graph, const Node& first, const Node& second) {
  const ValueId between = first.outputs[0];
  Node made = first;
  made.outputs[0] = second.outputs[0];
  if (is_activation(second) && (is_matrix(first) || is_norm(first)) && bare(first)) {
    made.attributes.set("activation", std::string(second.op->name));
    return made;
  }
  if (is(second, "silu") && is_norm(first) && bare(first) && first.inputs.size() == plain_norm_inputs()) {
    made.attributes.set("activation", std::string("silu"));
    return made;
  }
  if (is(second, "bias_add") && second.inputs[0] == between && is_matrix(first) && bare(first) &&
      first.inputs.size() == 2) {
    made.inputs.push_back(second.inputs[1]);
    return made;
  }
  if (is(second, "add") && is_norm(first) && bare(first) && first.inputs.size() == plain_norm_inputs()) {
    const ValueId other = second.inputs[0] == between ? second.inputs[1] : second.inputs[0];
    if (other == between || !(graph.type(other) == graph.type(between))) return std::nullopt;
    made.inputs.push_back(other);
    return made;
  }
  if (is(first, "log_softmax") && is(second, "negative_log_likelihood") && second.inputs[0] == between &&
      first.attributes.integer("axis") == graph.type(between).shape.rank() - 1) {
    made = second;
    made.op = &graph::op("softmax_cross_entropy");
    made.inputs[0] = first.inputs[0];
    return made;
  }
  return std::nullopt;
}

/// Readers that matter: nodes, and the graph's own references (outputs, terms).
std::vector<int> reference_counts(const Graph& graph) {
  std::vector<int> counts(graph.values.size(), 0);
  const auto add = [&](ValueId id) {
    if (id != graph::kNoValue) ++counts[static_cast<size_t>(id)];
  };
  for (const Node& node : graph.nodes)
    for (const ValueId id : node.inputs) add(id);
  for (const ValueId id : graph.wanted_gradients) add(id);
  for (const auto* terms : {&graph.objective, &graph.metrics})
    for (const graph::Term& term : *terms) {
      add(term.per_row);
      add(term.row_weight);
    }
  return counts;
}

std::optional<Match> find_match(const Graph& graph) {
  const std::vector<int> counts = reference_counts(graph);
  for (auto second = static_cast<int32_t>(graph.nodes.size()) - 1; second >= 0; --second) {
    const Node& reader = node_at(graph, second);
    for (auto input = reader.inputs.rbegin(); input != reader.inputs.rend(); ++input) {
      const int32_t first = graph.value(*input).producer;
      if (first < 0 || counts[static_cast<size_t>(*input)] != 1 || node_at(graph, first).outputs[0] != *input) continue;
      const Node& producer = node_at(graph, first);
      const bool others_unused = std::all_of(producer.outputs.begin() + 1, producer.outputs.end(),
                                             [&](ValueId id) { return counts[static_cast<size_t>(id)] == 0; });
      if (others_unused && compose_pair(graph, producer, reader)) return Match{first, second};
    }
  }
  return std::nullopt;
}

}  // namespace

Graph compose(Graph graph, const PlanRequest&) {
  while (const std::optional<Match> match = find_match(graph)) {
    Node made = *compose_pair(graph, node_at(graph, match->first), node_at(graph, match->second));
    if (is(made, "softmax_cross_entropy"))
      made.outputs.push_back(graph.add_value(graph.type(made.inputs[0])));  // the probabilities, kept for backward
    graph.nodes[static_cast<size_t>(match->second)] = std::move(made);
    std::vector<int32_t> order;
    for (int32_t i = 0; i < static_cast<int32_t>(graph.nodes.size()); ++i)
      if (i != match->first) order.push_back(i);
    reorder(graph, order);
  }
  return graph;
}

void verify_compose(const Graph& graph, const PlanRequest&) {
  const char* pass = "compose";
  verify_structure(graph, pass);
  for (const Node& node : graph.nodes) {
    check(node.stage == graph::Stage::forward, pass, "forward",
          cat(graph::label(node), " is not of the forward stage"));
    if (!node.attributes.has("activation")) continue;
    const std::string& activation = node.attributes.text("activation");
    check(activation == "none" || activation == "relu" || activation == "tanh" || activation == "sigmoid" ||
              (activation == "silu" && is_norm(node)),
          pass, "activation", cat(graph::label(node), " has activation ", activation));
    if (is_norm(node) && node.inputs.size() > plain_norm_inputs())
      check(graph.type(node.inputs.back()) == graph.type(node.outputs[0]), pass, "residual",
            cat(graph::label(node), ": the residual is not of the output's type"));
  }
  verify_types(graph, pass);
  for (const graph::Value& value : graph.values)
    check(value.producer < static_cast<int32_t>(graph.nodes.size()), pass, "producer",
          "a value of a swallowed node is left");
  check(live_nodes(graph).size() == graph.nodes.size(), pass, "dead", "a swallowed node is left");
  check(!find_match(graph), pass, "complete", "two nodes that compose were left apart");
}

}  // namespace brisk::passes
