// trace: specialises a program to one phase: evaluation rewrites, accumulators for means, stores for outputs; what the
// phase does not need is dropped.
#include <set>

#include "passes/common.h"

namespace brisk::passes {

using graph::Graph;
using graph::kNoValue;
using graph::Phase;
using graph::Place;
using graph::Term;

namespace {

/// In evaluation, and in frozen layers, running statistics are used and nothing is dropped.
void rewrite_for_evaluation(Graph& graph) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const graph::OpInfo& op = *graph.nodes[i].op;
    if (!op.evaluation) continue;
    if (graph.phase != Phase::train || graph.nodes[i].frozen) op.evaluation(graph, static_cast<int32_t>(i));
  }
}

void add_totals(Graph& graph, std::vector<Term>& terms, bool counts_only) {
  for (Term& term : terms) {
    if (counts_only && term.row_weight == kNoValue) continue;
    term.totals = static_cast<int32_t>(graph.totals.size());
    graph.totals.push_back(term.name);
    std::vector<graph::ValueId> inputs = {counts_only ? term.row_weight : term.per_row};
    if (term.row_weight != kNoValue) inputs.push_back(term.row_weight);
    graph.emit("total", inputs, {{"slot", int64_t{term.totals}}}, "total." + term.name);
  }
}

}  // namespace

Graph trace(Graph graph, const PlanRequest& request) {
  graph.phase = request.phase;
  rewrite_for_evaluation(graph);
  std::vector<graph::NamedValue> outputs = std::move(graph.outputs);
  graph.outputs.clear();
  if (graph.phase == Phase::predict) {
    graph.objective.clear();
    graph.metrics.clear();
  }
  if (graph.phase == Phase::predict || graph.phase == Phase::evaluate) {
    for (const graph::NamedValue& output : outputs) {
      const auto slot = static_cast<int64_t>(graph.outputs.size());
      graph.outputs.push_back({output.name, kNoValue});
      graph.outputs.back().value = graph.emit("store", {output.value}, {{"slot", slot}}, output.name);
    }
  }
  if (graph.phase == Phase::count) graph.metrics.clear();
  add_totals(graph, graph.objective, graph.phase == Phase::count);
  add_totals(graph, graph.metrics, false);
  if (graph.phase != Phase::train) graph.wanted_gradients.clear();
  reorder(graph, live_nodes(graph));
  return graph;
}

namespace {

/// Each term has an accumulator of its own, and one node that adds its rows there.
void verify_totals(const Graph& graph, const char* pass) {
  std::set<int32_t> taken;
  for (const auto* terms : {&graph.objective, &graph.metrics})
    for (const Term& term : *terms) {
      const bool counted = term.row_weight != kNoValue;
      if (graph.phase == Phase::count && !counted) continue;
      const graph::ValueId rows = graph.phase == Phase::count ? term.row_weight : term.per_row;
      for (const graph::ValueId id : {rows, counted ? term.row_weight : rows})
        check(graph.type(id).batched() && graph.type(id).shape.rank() == 0, pass, "objective",
              cat("term ", term.name, " must have one value a row"));
      check(term.totals >= 0 && static_cast<size_t>(term.totals) < graph.totals.size(), pass, "totals",
            cat("term ", term.name, " has no accumulator"));
      check(taken.insert(term.totals).second, pass, "accumulators",
            cat("term ", term.name, " shares its accumulator with another"));
      int adds = 0;
      for (const graph::Node& node : graph.nodes)
        adds += is(node, "total") && node.inputs[0] == rows && graph.value(node.outputs[0]).slot == term.totals;
      check(adds == 1, pass, "totals", cat("term ", term.name, " is added up ", adds, " times"));
    }
}

}  // namespace

void verify_trace(const Graph& graph, const PlanRequest& request) {
  const char* pass = "trace";
  verify_structure(graph, pass);
  check(graph.phase == request.phase, pass, "phase", cat("the graph is for ", graph::name(graph.phase)));
  std::set<std::string> names;
  for (const auto& input : graph.inputs)
    check(names.insert(input.name).second, pass, "inputs", cat("input \"", input.name, "\" twice"));
  for (const graph::Node& node : graph.nodes) {
    check(node.stage == graph::Stage::forward, pass, "forward",
          cat(graph::label(node), " is not of the forward stage"));
    for (const graph::ValueId id : node.inputs)
      check((graph.value(id).place == Place::input) == is(node, "load"), pass, "load",
            cat(graph::label(node), ": only load reads an input, and nothing else"));
  }
  check(live_nodes(graph).size() == graph.nodes.size(), pass, "dead", "a node has no effect");
  verify_totals(graph, pass);
  for (const auto& output : graph.outputs)
    check(graph.value(output.value).place == Place::output, pass, "outputs",
          cat("output ", output.name, " is not stored"));
}

}  // namespace brisk::passes
