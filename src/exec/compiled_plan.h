// A Program specialised to (phase, rows, precision, target): the graph after all passes, and what it needs.
#pragma once

#include <memory>

#include "brisk/plan.h"
#include "passes/passes.h"

namespace brisk::exec {

/// What a plan is made from; kept so that a dump can show each pass.
struct PlanSource {
  graph::Graph program;
  passes::PlanRequest request;
  std::shared_ptr<const backend::Target> target;  ///< keeps request.target alive
  int threads = 1;
};

struct CompiledPlan {
  PlanSource source;
  graph::Graph graph;
  PlanBytes bytes;
};

/// Runs the passes and adds up the bytes: arithmetic only.
std::shared_ptr<const CompiledPlan> compile_plan(PlanSource source);

/// Offsets of the trained parameters in the gradient arena (and in each moment's): canonical order, frozen ones closed
/// up.
struct TrainedLayout {
  std::vector<int64_t> offsets;  ///< floats, by Graph::parameters index; -1: not trained
  int64_t floats = 0;
};
TrainedLayout trained_layout(const graph::Graph& program);

}  // namespace brisk::exec
