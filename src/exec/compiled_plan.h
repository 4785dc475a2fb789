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

/// Precision::automatic becomes what the target has matrix units for; others stay.
Precision resolve(Precision asked, const backend::Target& target);

/// Runs the passes and adds up the bytes: arithmetic only.
std::shared_ptr<const CompiledPlan> compile_plan(PlanSource source);

/// Offsets of the trained parameters in the gradient arena (and in each moment's): canonical order, frozen ones closed
/// up.
struct TrainedLayout {
  std::vector<int64_t> offsets;  ///< floats, by Graph::parameters index; -1: not trained
  int64_t floats = 0;
};
TrainedLayout trained_layout(const graph::Graph& program);

/// Where the values of one place lie that a plan has by parameter (shadows, staged statistics).
struct SlotLayout {
  std::vector<int64_t> offsets;  ///< bytes, by Graph::parameters index; -1: the plan has none
  int64_t bytes = 0;
  /// Appends what the plan has and this does not yet; true: there was any.
  bool add(const graph::Graph& plan, graph::Place place);
};

/// Of Place::state, when a plan has any: counters, then the loss scale.
constexpr int64_t kStateBytes = 64;
constexpr int64_t kScaleOffset = int64_t{sizeof(int64_t)} * static_cast<int64_t>(backend::Counter::count);
bool has_state(const graph::Graph& plan);

}  // namespace brisk::exec
