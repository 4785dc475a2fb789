// autodiff: appends the backward pass. Each term of the objective is seeded with factor / expected count; contributions
// to one value are added in the reverse order of the walk; gradients of parameters go to the gradient arena.
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
         is(node, "batch_norm_gradient");
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
      const bool any = std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) { return needed(id); });
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
    contribute(term.per_row,
               graph_.emit("seed_rows", {scalar, term.per_row}, {}, "seed." + term.name, {}, Stage::backward));
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
    for (size_t i = 0; i < node.inputs.size(); ++i)
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
    const graph::Reads reads = node.op->backward_reads;
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
      const bool direct = value.place == Place::activation && value.producer >= forward_nodes_ &&
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

void verify_autodiff(const Graph& graph, const PlanRequest& request) {
  const char* pass = "autodiff";
  verify_structure(graph, pass);
  verify_types(graph, pass);
  std::set<int32_t> written;
  bool backward = false;
  for (const Node& node : graph.nodes) {
    check(node.stage == Stage::forward || node.stage == Stage::backward, pass, "stages",
          cat(graph::label(node), " is of stage ", graph::name(node.stage)));
    backward |= node.stage == Stage::backward;
    for (const ValueId id : node.outputs) {
      const graph::Value& value = graph.value(id);
      if (value.place != Place::gradient) continue;
      const graph::ParameterRef& parameter = graph.parameters[static_cast<size_t>(value.slot)];
      check(parameter.trainable, pass, "frozen", cat(parameter.name, " is frozen and gets a gradient"));
      check(value.type.shape == parameter.shape && !value.type.batched(), pass, "shape",
            cat(parameter.name, " ", parameter.shape, " gets a gradient of ", value.type));
      check(written.insert(value.slot).second, pass, "once", cat(parameter.name, " gets two gradients"));
      check(node.stage == Stage::backward, pass, "backward",
            cat(graph::label(node), " makes a gradient in the forward stage"));
    }
  }
  if (graph.phase != graph::Phase::train) {
    check(!backward, pass, "evaluation", "an evaluation graph has a backward pass");
    return;
  }
  for (const Term& term : graph.objective) {
    int seeds = 0;
    for (const Node& node : graph.nodes) seeds += is(node, "seed_rows") && node.inputs[1] == term.per_row;
    check(seeds <= 1 && (seeds == 1 || written.empty() || term.seed < 0), pass, "seeds",
          cat("term ", term.name, " has ", seeds, " seeds"));
    if (seeds == 1 && (request.seeds_from_host || term.row_weight == kNoValue))
      check(term.seed >= 0 && static_cast<size_t>(term.seed) < graph.scalars.size(), pass, "seeds",
            cat("term ", term.name, " has no host scalar"));
  }
}

}  // namespace brisk::passes
