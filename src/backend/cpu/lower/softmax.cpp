// Softmax, its logarithm, their gradients.
#include <algorithm>

#include "backend/cpu/kernels/softmax.h"
#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"
#include "graph/op_table.h"

namespace brisk::backend::cpu {
namespace {

constexpr int64_t kUnitFloats = 4096;

void lower_lines(const Call& call, bool logarithm, PhaseFunction kernel, Lowering& lowering) {
  const graph::ValueType& type = call.output(0);
  const auto axis = static_cast<int>(call.node.attributes.integer("axis"));
  SoftmaxShape s;
  s.batched = type.batched();
  s.logarithm = logarithm;
  s.outer = type.batched() ? type.rows : 1;
  for (int i = 0; i < axis; ++i) s.outer *= type.shape[i];
  s.size = type.shape[axis];
  for (int i = axis + 1; i < type.shape.rank(); ++i) s.inner *= type.shape[i];
  const int64_t lines = s.outer * s.inner;
  s.per_unit = std::max<int64_t>(1, kUnitFloats / (s.size * (s.batched ? call.lanes() : 1)));
  s.units_per_block = ceil_divide(lines, s.per_unit);
  lowering.phase(kernel, (s.batched ? call.blocks() : 1) * s.units_per_block, s);
}

}  // namespace

void lower_softmax(const Call& call, Lowering& lowering) {
  lower_lines(call, call.node.op->name == "log_softmax", BRISK_PHASE(call, softmax), lowering);
}

void lower_softmax_gradient(const Call& call, Lowering& lowering) {
  lower_lines(call, call.node.op->name == "log_softmax_gradient", BRISK_PHASE(call, softmax_gradient), lowering);
}

}  // namespace brisk::backend::cpu
