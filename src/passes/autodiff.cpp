// autodiff: appends the backward pass. Each term of the objective is seeded with factor / expected count, in fp16 times
// the loss scale; contributions to one value are added in the reverse order of the walk; gradients of parameters go to
// the gradient arena.
#include <algorithm>
#include <set>

#include "passes/common.h"

namespace brisk::passes {

using graph::Graph;
using graph::kNoValue;
using graph::Node;
using graph::Place;
using graph::Stage;
using graph::Term;
using graph::ValueId;

namespace {

/// Backward operations that can add into the gradient arena by themselves: their outputs are bound to it directly.
bool writes_gradients(const Node& node) {
  return is(node, "conv2d_weight_gradient") || is(node, "linear_weight_gradient") || is(node, "channel_sum") ||
         is(node, "batch_norm_gradient") || is(node, "layer_norm_gradient") || is(node, "group_norm_gradient") ||
         is(node, "embedding_gradient");
}

class Differentiator {
 public:
  Differentiator(Graph& graph, const PlanRequest& request) : graph_(graph), request_(request) {}

  void run() {
    forward_nodes_ = static_cast<int32_t>(graph_.nodes.size());
    mark_needed();
    gradients_.assign(graph_.values.size(), kNoValue);
    for (Term& term : graph_.objective) seed(term);
    for (int32_t node = forward_nodes_ - 1; node >= 0; --node) derive(node);
    store_parameters();
    store_wanted();
  }

 private:
  void mark_needed() {
    needed_.assign(graph_.values.size(), false);
    for (size_t i = 0; i < graph_.values.size(); ++i) {
      const graph::Value& value = graph_.values[i];
      needed_[i] = value.place == Place::parameter && graph_.parameters[static_cast<size_t>(value.slot)].trainable;
    }
    for (const ValueId id : graph_.wanted_gradients) needed_[static_cast<size_t>(id)] = true;
    for (const Node& node : graph_.nodes) {
      const bool any = std::any_of(node.inputs.begin() + node.op->constant_inputs, node.inputs.end(),
                                   [&](ValueId id) { return needed(id); });
      if (any && node.op->derive)
        for (const ValueId id : node.outputs)
          if (graph_.type(id).dtype == DType::f32) needed_[static_cast<size_t>(id)] = true;
    }
  }

  bool needed(ValueId id) const { return static_cast<size_t>(id) < needed_.size() && needed_[static_cast<size_t>(id)]; }

  void contribute(ValueId to, ValueId gradient) {
    check(graph_.type(to) == graph_.type(gradient), "autodiff", "types",
          cat("gradient of ", graph_.type(to), " has type ", graph_.type(gradient)));
    ValueId& sum = gradients_[static_cast<size_t>(to)];
    sum = sum == kNoValue ? gradient : graph_.emit("add", {sum, gradient}, {}, "gradient_sum", {}, Stage::backward);
  }

  void seed(Term& term) {
    if (!needed(term.per_row)) return;
    ValueId scalar = kNoValue;
    if (request_.seeds_from_host || term.row_weight == kNoValue) {
      term.seed = graph_.add_scalar("seed." + term.name);
      scalar = graph_.scalar_value(term.seed);
    } else {
      scalar = graph_.emit("seed_count", {term.row_weight}, {{"factor", term.weight}}, "seed." + term.name, {},
                           Stage::backward);
    }
    std::vector<ValueId> inputs = {scalar, term.per_row};
    if (scales_loss(request_)) inputs.push_back(state_value(graph_, 0));
    contribute(term.per_row, graph_.emit("seed_rows", inputs, {}, "seed." + term.name, {}, Stage::backward));
  }

  void derive(int32_t index) {
    const Node node = node_at(graph_, index);
    if (!node.op->derive) return;
    std::vector<ValueId> output_gradients;
    bool any = false;
    for (const ValueId id : node.outputs) {
      output_gradients.push_back(gradients_[static_cast<size_t>(id)]);
      any |= output_gradients.back() != kNoValue;
    }
    if (!any) return;
    graph::Derivation derivation(graph_, index, output_gradients);
    bool wanted = false;
    for (auto i = static_cast<size_t>(node.op->constant_inputs); i < node.inputs.size(); ++i)
      if (needed(node.inputs[i])) {
        derivation.want(static_cast<int>(i));
        wanted = true;
      }
    if (!wanted) return;
    const size_t before = graph_.nodes.size();
    node.op->derive(derivation);
    check_reads(node, before);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId gradient = derivation.result(static_cast<int>(i));
      if (needed(node.inputs[i]) && gradient != kNoValue) contribute(node.inputs[i], gradient);
    }
  }

  /// The derivative reads no more of the forward pass than the table says, so that memory can be planned by the table.
  void check_reads(const Node& node, size_t first) const {
    const auto among = [](const std::vector<ValueId>& list, ValueId id) {
      return std::find(list.begin(), list.end(), id) != list.end();
    };
    const graph::Reads reads = graph::backward_reads(node);
    for (size_t i = first; i < graph_.nodes.size(); ++i)
      for (const ValueId id : graph_.nodes[i].inputs) {
        const graph::Value& value = graph_.value(id);
        if (value.producer < 0 || value.producer >= forward_nodes_) continue;
        const bool allowed =
            (among(node.inputs, id) && (reads == graph::Reads::inputs || reads == graph::Reads::both)) ||
            (among(node.outputs, id) && (reads == graph::Reads::outputs || reads == graph::Reads::both));
        check(allowed, "autodiff", "reads",
              cat(graph::label(graph_.nodes[i]), " reads a value that the table does not keep"));
      }
  }

  void store_parameters() {
    std::vector<ValueId> parameters(graph_.parameters.size(), kNoValue);
    for (size_t i = 0; i < gradients_.size(); ++i)
      if (graph_.values[i].place == Place::parameter)
        parameters[static_cast<size_t>(graph_.values[i].slot)] = static_cast<ValueId>(i);
    for (size_t slot = 0; slot < parameters.size(); ++slot) {
      if (parameters[slot] == kNoValue) continue;
      const ValueId gradient = gradients_[static_cast<size_t>(parameters[slot])];
      if (gradient == kNoValue) continue;
      graph::Value& value = graph_.value(gradient);
      // What lies in the gradient arena adds up over micro-batches: nobody else may read it.
      const auto users = std::count_if(parameters.begin(), parameters.end(), [&](ValueId id) {
        return id != kNoValue && gradients_[static_cast<size_t>(id)] == gradient;
      });
      const bool direct = value.place == Place::activation && value.producer >= forward_nodes_ && users == 1 &&
                          writes_gradients(node_at(graph_, value.producer)) && !read_by_any(gradient);
      if (direct) {
        value.place = Place::gradient;
        value.slot = static_cast<int32_t>(slot);
      } else {
        graph_.add_node("store_gradient", {gradient}, {{"slot", static_cast<int64_t>(slot)}},
                        "gradient." + graph_.parameters[slot].name, {}, Stage::backward);
      }
    }
  }

  bool read_by_any(ValueId id) const {
    for (const Node& node : graph_.nodes)
      if (std::find(node.inputs.begin(), node.inputs.end(), id) != node.inputs.end()) return true;
    return false;
  }

  void store_wanted() {
    for (const ValueId id : graph_.wanted_gradients) {
      const ValueId gradient = gradients_[static_cast<size_t>(id)];
      if (gradient == kNoValue) continue;
      const Node& load = node_at(graph_, graph_.value(id).producer);
      const std::string name = "gradient." + graph_.inputs[static_cast<size_t>(graph_.value(load.inputs[0]).slot)].name;
      const auto slot = static_cast<int64_t>(graph_.outputs.size());
      graph_.outputs.push_back({name, kNoValue});
      graph_.outputs.back().value = graph_.emit("store", {gradient}, {{"slot", slot}}, name, {}, Stage::backward);
    }
    graph_.wanted_gradients.clear();
  }

  Graph& graph_;
  const PlanRequest& request_;
  int32_t forward_nodes_ = 0;
  std::vector<bool> needed_;
  std::vector<ValueId> gradients_;
};

}  // namespace

Graph autodiff(Graph graph, const PlanRequest& request) {
  if (graph.phase != graph::Phase::train) return graph;
  Differentiator(graph, request).run();
  reorder(graph, live_nodes(graph));
  return graph;
}

namespace {

/// Trained parameters that the objective depends on through operations that have a derivative.
std::set<int32_t> differentiated_parameters(const Graph& graph) {
  std::vector<bool> reached(graph.values.size(), false);
  for (const Term& term : graph.objective) reached[static_cast<size_t>(term.per_row)] = true;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node)
    if (node->stage == Stage::forward && node->op->derive && reached[static_cast<size_t>(node->outputs[0])])
      for (auto i = static_cast<size_t>(node->op->constant_inputs); i < node->inputs.size(); ++i)
        reached[static_cast<size_t>(node->inputs[i])] = true;
  std::set<int32_t> slots;
  for (size_t i = 0; i < reached.size(); ++i) {
    const graph::Value& value = graph.values[i];
    if (reached[i] && value.place == Place::parameter && graph.parameters[static_cast<size_t>(value.slot)].trainable)
      slots.insert(value.slot);
  }
  return slots;
}

/// Forward values that some derivative may read by the table; terms are read by their seeds.
std::vector<bool> readable(const Graph& graph) {
  std::vector<bool> kept(graph.values.size(), false);
  const auto keep = [&](const std::vector<ValueId>& list) {
    for (const ValueId id : list) kept[static_cast<size_t>(id)] = true;
  };
  for (const Node& node : graph.nodes) {
    if (node.stage != Stage::forward) continue;
    const graph::Reads reads = graph::backward_reads(node);
    if (reads == graph::Reads::inputs || reads == graph::Reads::both) keep(node.inputs);
    if (reads == graph::Reads::outputs || reads == graph::Reads::both) keep(node.outputs);
  }
  for (const Term& term : graph.objective) {
    keep({term.per_row});
    if (term.row_weight != kNoValue) keep({term.row_weight});
  }
  return kept;
}

void verify_gradient(const Graph& graph, const char* pass, const Node& node, const graph::Value& value) {
  const graph::ParameterRef& parameter = graph.parameters[static_cast<size_t>(value.slot)];
  check(parameter.trainable, pass, "frozen", cat(parameter.name, " is frozen and gets a gradient"));
  check(value.type.shape == parameter.shape && !value.type.batched(), pass, "shape",
        cat(parameter.name, " ", parameter.shape, " gets a gradient of ", value.type));
  check(node.stage == Stage::backward, pass, "backward",
        cat(graph::label(node), " makes a gradient in the forward stage"));
}

void verify_seeds(const Graph& graph, const char* pass, const PlanRequest& request) {
  std::set<const Node*> used;
  for (const Term& term : graph.objective) {
    const bool from_host = request.seeds_from_host || term.row_weight == kNoValue;
    std::vector<const Node*> seeds;
    for (const Node& node : graph.nodes) {
      if (!is(node, "seed_rows") || node.inputs[1] != term.per_row) continue;
      const graph::Value& seed = graph.value(node.inputs[0]);
      const bool own = from_host ? seed.place == Place::scalar && seed.slot == term.seed
                                 : seed.producer >= 0 && is(node_at(graph, seed.producer), "seed_count") &&
                                       node_at(graph, seed.producer).inputs[0] == term.row_weight;
      if (own && used.count(&node) == 0) seeds.push_back(&node);
      const bool scaled = node.inputs.size() == 3 && graph.value(node.inputs[2]).place == Place::state;
      check(scaled == scales_loss(request), pass, "scale",
            cat(graph::label(node), " and the recipe differ in a scale"));
    }
    // Terms that no trained parameter or wanted input influences have none.
    check(seeds.size() <= 1 || !from_host, pass, "seeds", cat("term ", term.name, " has ", seeds.size(), " seeds"));
    check(term.seed < 0 || seeds.size() == 1, pass, "seeds", cat("term ", term.name, " has a scalar and no seed"));
    if (!seeds.empty()) used.insert(seeds[0]);
  }
  for (const Node& node : graph.nodes)
    check(!is(node, "seed_rows") || used.count(&node) == 1, pass, "seeds", cat(graph::label(node), " seeds no term"));
}

}  // namespace

void verify_autodiff(const Graph& graph, const PlanRequest& request) {
  const char* pass = "autodiff";
  verify_structure(graph, pass);
  std::set<int32_t> written;
  const std::vector<bool> kept = readable(graph);
  for (const Node& node : graph.nodes) {
    const std::string at = graph::label(node);
    check(node.stage == Stage::forward || node.stage == Stage::backward, pass, "stages",
          cat(at, " is of stage ", graph::name(node.stage)));
    for (const ValueId id : node.outputs) {
      const graph::Value& value = graph.value(id);
      if (value.place != Place::gradient) continue;
      verify_gradient(graph, pass, node, value);
      check(written.insert(value.slot).second, pass, "once",
            cat(graph.parameters[static_cast<size_t>(value.slot)].name, " gets two gradients"));
    }
    for (const ValueId id : node.inputs) {
      const graph::Value& value = graph.value(id);
      check(value.place != Place::gradient, pass, "accumulates", cat(at, " reads what other micro-batches added to"));
      if (node.stage != Stage::backward || value.producer < 0) continue;
      check(node_at(graph, value.producer).stage == Stage::backward || kept[static_cast<size_t>(id)], pass, "reads",
            cat(at, " reads a value that the table does not keep"));
    }
  }
  verify_types(graph, pass);
  if (graph.phase != graph::Phase::train) return;
  verify_seeds(graph, pass, request);
  for (const int32_t slot : differentiated_parameters(graph))
    check(written.count(slot) == 1, pass, "complete",
          cat(graph.parameters[static_cast<size_t>(slot)].name, " gets no gradient"));
}

}  // namespace brisk::passes
