// Load, store, totals, seeds, gradients.
#include <algorithm>

#include "backend/cpu/kernels/plan.h"
#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"
#include "backend/cpu/lower/relayout.h"

namespace brisk::backend::cpu {
namespace {

constexpr int64_t kUnitBytes = 32768;

void relayout(const Call& call, PhaseFunction lanes_kernel, Lowering& lowering) {
  const graph::ValueType& type = call.output(0);
  if (!type.batched()) {
    const PlainCopy copy{type.elements() * size_of(type.dtype), kUnitBytes};
    lowering.phase(BRISK_PHASE(call, copy_plain), std::max<int64_t>(1, ceil_divide(copy.bytes, copy.unit)), copy);
    return;
  }
  const Relayout move = make_relayout(call, type);
  lowering.phase(lanes_kernel, units(call, move), move);
}

RowSum row_sum(const Call& call) { return {call.samples, call.input(0).rows, call.inputs() > 1, 1}; }

}  // namespace

void lower_load(const Call& call, Lowering& lowering) { relayout(call, BRISK_PHASE(call, load_lanes), lowering); }

void lower_store(const Call& call, Lowering& lowering) { relayout(call, BRISK_PHASE(call, store_lanes), lowering); }

void lower_total(const Call& call, Lowering& lowering) {
  lowering.phase(BRISK_PHASE(call, add_total), 1, row_sum(call));
}

void lower_seed_rows(const Call& call, Lowering& lowering) {
  lowering.phase(BRISK_PHASE(call, seed_rows), 1, RowSum{call.samples, call.output(0).rows, call.inputs() > 2, 1});
}

void lower_seed_count(const Call& call, Lowering& lowering) {
  RowSum sum = row_sum(call);
  sum.factor = call.node.attributes.real("factor");
  lowering.phase(BRISK_PHASE(call, seed_count), 1, sum);
}

void lower_store_gradient(const Call& call, Lowering& lowering) {
  const GradientStore store{call.output(0).elements(), kUnitBytes / 4};
  lowering.phase(BRISK_PHASE(call, store_gradient), ceil_divide(store.count, store.unit), store);
}

}  // namespace brisk::backend::cpu
