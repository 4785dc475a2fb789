// Normalisation over the last dimensions of a sample, or over groups of its channels.
#include <algorithm>

#include "backend/cpu/kernels/layer_norm.h"
#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"

namespace brisk::backend::cpu {
namespace {

constexpr int64_t kUnitFloats = 8192;

LineNorm make(const Call& call, const graph::ValueType& type) {
  LineNorm n;
  n.samples = call.samples;
  const graph::Attributes& attributes = call.node.attributes;
  int64_t groups = 1;
  if (attributes.has("groups")) {
    groups = attributes.integer("groups");
    n.size = type.shape.count() / groups;
    n.per_line = type.shape[0] / groups;
    n.period = groups;
  } else {
    for (int i = 0; i < type.shape.rank(); ++i) {
      (i < type.shape.rank() - attributes.integer("dims") ? groups : n.size) *= type.shape[i];
    }
    n.per_line = n.size;
  }
  n.repeat = n.size / n.per_line;
  n.lines_per_block = type.rows * groups;
  n.lines = call.blocks() * n.lines_per_block;
  n.per_unit = std::max<int64_t>(1, kUnitFloats / (n.size * call.lanes()));
  return n;
}

void add_parameter_gradients(const Call& call, LineNorm n, Lowering& lowering) {
  const auto is_gradient = [&](size_t output) {
    return call.graph.value(call.node.outputs[output]).place == graph::Place::gradient;
  };
  n.adds_weight = is_gradient(1);
  n.adds_bias = is_gradient(2);
  n.turns_per_slice = std::clamp<int64_t>(256 / n.repeat, 1, n.turns());
  n.slices = ceil_divide(n.turns(), n.turns_per_slice);
  const int64_t each = n.turns_per_slice * n.repeat * call.lanes();
  n.parameters_per_unit = std::max<int64_t>(1, kUnitFloats / (4 * each)) * 4;
  n.units_per_slice = ceil_divide(n.parameters(), n.parameters_per_unit);
  n.partials_at = lowering.workspace(n.slices * 2 * n.parameters() * 4);
  lowering.phase(BRISK_PHASE(call, line_norm_slices), n.slices * n.units_per_slice, n);
  n.parameters_per_unit = std::max<int64_t>(16, 4096 / n.slices);
  lowering.phase(BRISK_PHASE(call, line_norm_combine), ceil_divide(n.parameters(), n.parameters_per_unit), n);
}

}  // namespace

void lower_line_norm(const Call& call, Lowering& lowering) {
  LineNorm n = make(call, call.input(0));
  n.affine = call.inputs() > 1;
  n.epsilon = static_cast<float>(call.node.attributes.real("epsilon"));
  lowering.phase(BRISK_PHASE(call, line_norm), ceil_divide(n.lines, n.per_unit), n);
}

void lower_line_norm_gradient(const Call& call, Lowering& lowering) {
  LineNorm n = make(call, call.input(1));
  n.affine = call.inputs() > 4;
  lowering.phase(BRISK_PHASE(call, line_norm_gradient), ceil_divide(n.lines, n.per_unit), n);
  if (n.affine) add_parameter_gradients(call, n, lowering);
}

}  // namespace brisk::backend::cpu
