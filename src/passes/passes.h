// The passes, in their order: trace > infer > compose > autodiff > update > precision > recompute > group > select >
// schedule > memory. Each takes a graph and returns one; each has a verifier that throws Error [state] "pass: rule:
// ...".
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "brisk/optimizer.h"
#include "brisk/precision.h"
#include "graph/graph.h"

namespace brisk::passes {

/// What the optimizer does to one trained parameter.
struct ParameterRule {
  double weight_decay = 0;
  double rate_scale = 1;
};

/// What a plan is specialised to.
struct PlanRequest {
  graph::Phase phase = graph::Phase::train;
  int64_t samples = 0;               ///< rows of the micro-batch
  bool seeds_from_host = true;       ///< false: terms with a count of their own are counted before they are seeded
  Optimizer optimizer;               ///< rates are scalars of the plan: the schedule is not read
  std::vector<ParameterRule> rules;  ///< by Graph::parameters index
  Precision precision = Precision::f32;
  const backend::Target* target = nullptr;
};

struct Pass {
  const char* name;
  graph::Graph (*run)(graph::Graph, const PlanRequest&);
  void (*verify)(const graph::Graph&, const PlanRequest&);
};

/// In order.
const std::vector<Pass>& all();

/// Runs all passes, verifying after each. `observe` (may be null) sees the graph after each pass.
graph::Graph compile(graph::Graph program, const PlanRequest& request,
                     const std::function<void(const char* pass, const graph::Graph&)>& observe = nullptr);

/// Throws Error [state] "<pass>: <rule>: <message>" unless the condition holds.
void check(bool condition, const char* pass, const char* rule, const std::string& message);

#define BRISK_PASS(pass)                                             \
  graph::Graph pass(graph::Graph graph, const PlanRequest& request); \
  void verify_##pass(const graph::Graph& graph, const PlanRequest& request)
BRISK_PASS(trace);
BRISK_PASS(infer);
BRISK_PASS(compose);
BRISK_PASS(autodiff);
BRISK_PASS(update);
BRISK_PASS(precision);
BRISK_PASS(recompute);
BRISK_PASS(group);
BRISK_PASS(select);
BRISK_PASS(schedule);
BRISK_PASS(memory);
#undef BRISK_PASS

}  // namespace brisk::passes
