// Gradient statistics and the optimizers' walks.
#include <algorithm>
#include <numeric>

#include "backend/cpu/kernels/optimizer.h"
#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"

namespace brisk::backend::cpu {
namespace {

/// 8192, and more for models that no machine holds yet, whose plans shall be short as well.
int64_t unit_floats(const std::vector<int64_t>& sizes) {
  constexpr int64_t kMostUnits = int64_t{1} << 20;
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  int64_t unit = 8192;
  while (total / unit > kMostUnits) unit *= 2;
  return unit;
}

/// Cuts parameters of these sizes into units; a large one is cut at multiples of the unit.
Walk make_walk(const std::vector<int64_t>& sizes) {
  const int64_t unit = unit_floats(sizes);
  Walk walk;
  walk.parameters = static_cast<int32_t>(sizes.size());
  walk.unit_begin.push_back(0);
  int64_t room = unit;
  const auto close = [&] {
    walk.unit_begin.push_back(static_cast<int32_t>(walk.stretches.size()));
    room = unit;
  };
  for (size_t k = 0; k < sizes.size(); ++k) {
    for (int64_t first = 0; first < sizes[k];) {
      const int64_t left = sizes[k] - first;
      if (room < unit && left > room) close();
      const int64_t count = std::min(left, room);
      walk.stretches.push_back({static_cast<int32_t>(k), first, count});
      first += count;
      room -= count;
      if (room == 0) close();
    }
  }
  if (room < unit) close();
  return walk;
}

int64_t units(const Walk& walk) { return static_cast<int64_t>(walk.unit_begin.size()) - 1; }

std::vector<int64_t> output_sizes(const Call& call, int count) {
  std::vector<int64_t> sizes;
  for (int i = 0; i < count; ++i) sizes.push_back(call.output(i).elements());
  return sizes;
}

std::vector<float> floats(const std::vector<double>& values) { return {values.begin(), values.end()}; }

void set_groups(const Call& call, Walk& walk) {
  walk.weight_decay = floats(call.node.attributes.reals("weight_decay"));
  walk.rate_scale = floats(call.node.attributes.reals("rate_scale"));
}

}  // namespace

void lower_gradient_stats(const Call& call, Lowering& lowering) {
  std::vector<int64_t> sizes;
  std::vector<int32_t> slots;
  const bool scaled = call.node.attributes.flag("scaled");
  for (int i = scaled ? 2 : 1; i < call.inputs(); ++i) {
    sizes.push_back(call.input(i).elements());
    slots.push_back(call.graph.value(call.node.inputs[static_cast<size_t>(i)]).slot);
  }
  Walk walk = make_walk(sizes);
  walk.parameter_slots = std::move(slots);
  walk.scaled = scaled;
  walk.clip_norm = static_cast<float>(call.node.attributes.real("clip_norm"));
  walk.partials_at = lowering.workspace(units(walk) * 2 * 8);
  lowering.phase(BRISK_PHASE(call, gradient_squares), units(walk), walk);
  lowering.phase(BRISK_PHASE(call, gradient_stats), 1, walk);
}

void lower_commit_staged(const Call& call, Lowering& lowering) {
  const Walk walk = make_walk(output_sizes(call, static_cast<int>(call.node.outputs.size())));
  lowering.phase(BRISK_PHASE(call, commit_staged), units(walk), walk);
}

void lower_scale_update(const Call& call, Lowering& lowering) {
  const graph::Attributes& attributes = call.node.attributes;
  const auto number = [&](const char* name) { return static_cast<float>(attributes.real(name)); };
  lowering.phase(BRISK_PHASE(call, scale_update), 1,
                 ScaleRule{attributes.flag("scaled"), number("backoff"), number("growth"), number("minimum"),
                           number("maximum"), attributes.integer("interval")});
}

void lower_sgd_walk(const Call& call, Lowering& lowering) {
  const graph::Attributes& attributes = call.node.attributes;
  const double momentum = attributes.real("momentum");
  const int memories = momentum != 0 ? 1 : 0;
  Walk walk = make_walk(output_sizes(call, static_cast<int>(call.node.outputs.size()) / (1 + memories)));
  walk.momentum_used = memories > 0;
  walk.momentum = static_cast<float>(momentum);
  walk.undamped = static_cast<float>(1 - attributes.real("dampening"));
  walk.nesterov = attributes.flag("nesterov");
  set_groups(call, walk);
  lowering.phase(BRISK_PHASE(call, sgd_walk), units(walk), walk);
}

void lower_adam_walk(const Call& call, Lowering& lowering) {
  const graph::Attributes& attributes = call.node.attributes;
  Walk walk = make_walk(output_sizes(call, static_cast<int>(call.node.outputs.size()) / 3));
  const double beta1 = attributes.real("beta1"), beta2 = attributes.real("beta2");
  walk.beta1 = static_cast<float>(beta1);
  walk.beta2 = static_cast<float>(beta2);
  walk.rest1 = static_cast<float>(1 - beta1);
  walk.rest2 = static_cast<float>(1 - beta2);
  walk.epsilon = static_cast<float>(attributes.real("epsilon"));
  walk.decoupled = attributes.flag("decoupled");
  set_groups(call, walk);
  lowering.phase(BRISK_PHASE(call, adam_walk), units(walk), walk);
}

}  // namespace brisk::backend::cpu
