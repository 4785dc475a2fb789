// Tracing of small programs, running passes up to one, and the check of a broken graph.
#include "passes/broken.h"

#include <numeric>
#include <set>
#include <stdexcept>

#include "backend/cpu/cpu_backend.h"
#include "brisk/ops/conv.h"
#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/norm.h"
#include "brisk/ops/pool.h"
#include "brisk/ops/random.h"
#include "brisk/ops/shape.h"
#include "exec/freeze.h"
#include "graph/model_state.h"
#include "graph/trace.h"

namespace brisk::passes::test {

using graph::Access;

Program trace_program(const Inputs& inputs, const Objective& objective, const Objective& metric) {
  const auto tracer = std::make_shared<graph::Tracer>("objective", 0, false);
  const Vars in = graph::declare_inputs(tracer, inputs.fields());
  std::vector<Mean::Term> terms;
  std::vector<graph::ValueId> roots;
  size_t losses = 0;
  {
    const graph::TraceGuard guard(tracer);
    terms = objective(in).terms();
    losses = terms.size();
    if (metric) {
      const Mean measured = metric(in);
      terms.insert(terms.end(), measured.terms().begin(), measured.terms().end());
    }
  }
  for (const Mean::Term& term : terms) {
    roots.push_back(Access::value(term.per_row));
    if (!Access::empty(term.row_weight)) roots.push_back(Access::value(term.row_weight));
  }
  tracer->finish(roots);
  Program program{std::move(tracer->graph), tracer->models};
  size_t root = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    graph::Term made;
    made.name = terms[i].name;
    made.weight = terms[i].factor;
    made.per_row = roots[root++];
    if (!Access::empty(terms[i].row_weight)) made.row_weight = roots[root++];
    (i < losses ? program.graph.objective : program.graph.metrics).push_back(made);
  }
  for (graph::ParameterRef& ref : program.graph.parameters) {
    const graph::Segment& segment =
        program.models[static_cast<size_t>(ref.store)]->segments[static_cast<size_t>(ref.segment)];
    ref.trainable = !segment.frozen && !segment.spec.buffer;
  }
  exec::mark_frozen(program.graph, program.models);
  return program;
}

ModelFunction small_function() {
  return [](const Vars& in) {
    Var x = in["image"];
    x = tanh(max_pool2d(relu(conv2d(x, {.channels = 4, .kernel = 3})), {.kernel = 2}));
    const Var y = batch_norm(conv2d(x, {.bias = false, .channels = 4, .kernel = 3, .padding = 1}));
    x = flatten(relu(x + y));
    x = dropout(relu(linear(x, 12)), 0.5);
    return Vars{{"logits", linear(x, 3)}, {"value", linear(x, 2)}};
  };
}

Model small_model() { return Model(small_function(), Inputs{{"image", {1, 12, 12}}}); }

Program small_program(const Model& model) {
  const Inputs inputs{{"image", {1, 12, 12}}, {"label", {}, DType::i64}, {"wanted", {2}}};
  Var logits;
  return trace_program(
      inputs,
      [&](const Vars& in) {
        const Vars out = model(Vars{{"image", in["image"]}});
        logits = out["logits"];
        return cross_entropy(logits, in["label"], {.name = "class"}) +
               0.5 * mse(out["value"], in["wanted"], {.name = "value"});
      },
      [&](const Vars& in) { return accuracy(logits, in["label"]); });
}

Program small_program() { return small_program(small_model()); }

Graph small_network() { return small_model().state()->graph; }

Graph function_graph(const ModelFunction& function) { return Model(function, Shape{6}).state()->graph; }

PlanRequest request_for(Phase phase, int64_t samples) {
  static const auto target = backend::cpu::make_target(backend::cpu::Isa::avx2);
  PlanRequest request;
  request.phase = phase;
  request.samples = samples;
  request.optimizer = sgd({.learning_rate = 0.1, .momentum = 0.9});
  request.target = target.get();
  return request;
}

Graph before(std::string_view pass, Graph graph, const PlanRequest& request) {
  for (const Pass& known : all()) {
    if (pass == known.name) return graph;
    graph = known.run(std::move(graph), request);
    known.verify(graph, request);
  }
  throw std::logic_error("no such pass");
}

Graph after(std::string_view pass, Graph graph, const PlanRequest& request) {
  graph = before(pass, std::move(graph), request);
  for (const Pass& known : all()) {
    if (pass != known.name) continue;
    graph = known.run(std::move(graph), request);
    known.verify(graph, request);
  }
  return graph;
}

Graph after(std::string_view pass, Phase phase) {
  return after(pass, phase == Phase::predict ? small_network() : small_program().graph, request_for(phase));
}

int32_t find(const Graph& graph, std::string_view op, int nth) {
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (is(graph.nodes[i], op) && nth-- == 0) return static_cast<int32_t>(i);
  throw std::logic_error(cat("no node of this kind: ", op));
}

Node& node(Graph& graph, std::string_view op, int nth) {
  return graph.nodes[static_cast<size_t>(find(graph, op, nth))];
}

int count(const Graph& graph, std::string_view op) {
  int found = 0;
  for (const Node& candidate : graph.nodes) found += is(candidate, op);
  return found;
}

ValueId output(const Graph& graph, std::string_view op, int nth) {
  return node_at(graph, find(graph, op, nth)).outputs[0];
}

namespace {

std::vector<int32_t> present_order(const Graph& graph) {
  std::vector<int32_t> order(graph.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  return order;
}

}  // namespace

void erase(Graph& graph, int32_t index) {
  std::vector<int32_t> order = present_order(graph);
  order.erase(order.begin() + index);
  reorder(graph, order);
}

void move(Graph& graph, int32_t from, int32_t to) {
  std::vector<int32_t> order = present_order(graph);
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  reorder(graph, order);
}

ValueId insert(Graph& graph, int32_t at, std::string_view op, const std::vector<ValueId>& inputs,
               const Attributes& attributes, Stage stage) {
  const int32_t index = graph.add_node(op, inputs, attributes, "inserted", {}, stage);
  const ValueId made = node_at(graph, index).outputs[0];
  move(graph, index, at);
  return made;
}

std::ostream& operator<<(std::ostream& out, const Broken& broken) { return out << broken.name; }

void expect_refused(std::string_view pass, const Broken& broken, Graph graph) {
  PlanRequest request = request_for(broken.phase);
  for (const Pass& known : all()) {
    if (pass != known.name) continue;
    ASSERT_NO_THROW(known.verify(graph, request)) << "before it is broken";
    broken.mutate(graph, request);
    try {
      known.verify(graph, request);
      ADD_FAILURE() << broken.name << " is not refused:\n" << graph::print(graph);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::state) << error.what();
      EXPECT_EQ(error.field(), cat(pass, ": ", broken.rule)) << error.what();
    }
    return;
  }
  ADD_FAILURE() << "no pass " << pass;
}

void expect_refused(std::string_view pass, const Broken& broken) {
  expect_refused(pass, broken, after(pass, broken.phase));
}

void expect_ten_or_more(const std::vector<Broken>& table) {
  std::set<std::string> names, rules;
  for (const Broken& broken : table) {
    names.insert(broken.name);
    rules.insert(broken.rule);
  }
  EXPECT_GE(table.size(), 10u);
  EXPECT_EQ(names.size(), table.size());
  EXPECT_GE(rules.size(), 10u);
}

}  // namespace brisk::passes::test
