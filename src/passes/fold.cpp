#include "passes/fold.h"

#include <algorithm>

#include "passes/common.h"

namespace brisk::passes {

using graph::Graph;
using graph::Node;
using graph::Place;
using graph::ValueId;

namespace {

/// The nodes of one match: layer, bias_add or -1, batch_norm.
struct Match {
  int32_t layer = -1, bias_add = -1, norm = -1;
};

/// Index into Graph::parameters, or -1 when the value is computed.
int32_t parameter_of(const Graph& graph, ValueId id) {
  const graph::Value& value = graph.value(id);
  return value.place == Place::parameter || value.place == Place::buffer ? value.slot : -1;
}

bool all_parameters(const Graph& graph, const Node& node) {
  return std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                     [&](ValueId id) { return parameter_of(graph, id) >= 0; });
}

bool bare(const Node& node) { return node.attributes.text("activation") == "none"; }

Match find_match(const Graph& graph) {
  const auto readers = graph.consumers();
  // The producer of `id` when that is all that anybody does with it.
  const auto alone = [&](ValueId id) {
    const bool kept = std::any_of(graph.outputs.begin(), graph.outputs.end(),
                                  [id](const graph::NamedValue& output) { return output.value == id; });
    return kept || readers[static_cast<size_t>(id)].size() != 1 ? -1 : graph.value(id).producer;
  };
  for (int32_t norm = 0; norm < static_cast<int32_t>(graph.nodes.size()); ++norm) {
    if (!is(node_at(graph, norm), "batch_norm") || !all_parameters(graph, node_at(graph, norm))) continue;
    Match match{alone(node_at(graph, norm).inputs[0]), -1, norm};
    if (match.layer >= 0 && is(node_at(graph, match.layer), "bias_add")) {
      match.bias_add = match.layer;
      match.layer =
          all_parameters(graph, node_at(graph, match.bias_add)) ? alone(node_at(graph, match.bias_add).inputs[0]) : -1;
    }
    if (match.layer < 0) continue;
    const Node& layer = node_at(graph, match.layer);
    if ((is(layer, "conv2d") || is(layer, "linear")) && bare(layer) && all_parameters(graph, layer)) return match;
  }
  return {};
}

Fold describe(const Graph& graph, const Match& match) {
  const Node &layer = node_at(graph, match.layer), &norm = node_at(graph, match.norm);
  Fold fold;
  fold.source_weight = parameter_of(graph, layer.inputs[1]);
  if (layer.inputs.size() > 2) fold.source_biases.push_back(parameter_of(graph, layer.inputs[2]));
  if (match.bias_add >= 0) fold.source_biases.push_back(parameter_of(graph, node_at(graph, match.bias_add).inputs[1]));
  fold.scale = parameter_of(graph, norm.inputs[1]);
  fold.shift = parameter_of(graph, norm.inputs[2]);
  fold.mean = parameter_of(graph, norm.inputs[3]);
  fold.variance = parameter_of(graph, norm.inputs[4]);
  fold.epsilon = norm.attributes.real("epsilon");
  return fold;
}

bool same_sources(const Fold& a, const Fold& b) {
  return a.source_weight == b.source_weight && a.source_biases == b.source_biases && a.scale == b.scale &&
         a.shift == b.shift && a.mean == b.mean && a.variance == b.variance && a.epsilon == b.epsilon;
}

int32_t add_parameter(Graph& graph, const std::string& name, const Shape& shape) {
  graph.parameters.push_back({-1, -1, name, shape, false, false});
  return static_cast<int32_t>(graph.parameters.size()) - 1;
}

void rewrite(Graph& graph, const Match& match, const Fold& fold) {
  Node& layer = graph.nodes[static_cast<size_t>(match.layer)];
  const Node& norm = node_at(graph, match.norm);
  const auto value = [&](int32_t slot) {
    const Shape shape = graph.parameters[static_cast<size_t>(slot)].shape;
    return graph.add_value({DType::f32, 0, shape}, Place::parameter, slot);
  };
  layer.inputs = {layer.inputs[0], value(fold.weight), value(fold.bias)};
  layer.outputs = {norm.outputs[0]};
  layer.name += " + " + norm.name;
  for (const ValueId id : norm.outputs) graph.value(id).producer = -1;
  std::vector<int32_t> order;
  for (int32_t i = 0; i < static_cast<int32_t>(graph.nodes.size()); ++i)
    if (i != match.bias_add && i != match.norm) order.push_back(i);
  reorder(graph, order);
}

}  // namespace

std::vector<Fold> fold_batch_norm(Graph& program) {
  std::vector<Fold> folds;
  for (Match match = find_match(program); match.layer >= 0; match = find_match(program)) {
    Fold fold = describe(program, match);
    const auto known =
        std::find_if(folds.begin(), folds.end(), [&](const Fold& other) { return same_sources(fold, other); });
    if (known == folds.end()) {
      const graph::ParameterRef weight = program.parameters[static_cast<size_t>(fold.source_weight)];
      const std::string with = " with " + node_at(program, match.norm).name;
      fold.weight = add_parameter(program, weight.name + with, weight.shape);
      fold.bias = add_parameter(program, "bias of " + weight.name + with, {weight.shape[0]});
      folds.push_back(fold);
    } else {
      fold = *known;
    }
    rewrite(program, match, fold);
  }
  return folds;
}

}  // namespace brisk::passes
