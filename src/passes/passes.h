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
  int64_t started = 0;  ///< updates that the step had made when it began to train it
};

/// Parameters that started together have a walk and scalars that count updates ("first", "bias1", "bias2") of their
/// own. Name of such a scalar: "bias1", or "bias1.500" for those trained since update 500.
std::string cohort_scalar(const std::string& name, int64_t started);

/// What a plan is specialised to.
struct PlanRequest {
  double clip_norm = 0;  ///< the gradient's norm is at most this; 0: as it is
  graph::Phase phase = graph::Phase::train;
  int64_t samples = 0;                   ///< rows of the micro-batch
  bool seeds_from_host = true;           ///< false: terms with a count of their own are counted before they are seeded
  Optimizer optimizer;                   ///< rates are scalars of the plan: the schedule is not read
  std::vector<ParameterRule> rules;      ///< by Graph::parameters index
  Precision precision = Precision::f32;  ///< automatic has been resolved
  LossScale loss_scale;                  ///< of fp16
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
