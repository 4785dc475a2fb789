// Reductions over per-sample axes and over the batch.
#include <algorithm>

#include "backend/cpu/kernels/reduce.h"
#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"
#include "graph/op_table.h"

namespace brisk::backend::cpu {
namespace {

constexpr int64_t kUnitFloats = 8192;

/// wide: the value with the axis.
void lower_maximum(const Call& call, const graph::ValueType& wide, PhaseFunction kernel, Lowering& lowering) {
  const auto axis = static_cast<int>(call.node.attributes.integer("axis"));
  Maximum m;
  m.size = wide.shape[axis];
  for (int i = axis + 1; i < wide.shape.rank(); ++i) m.inner *= wide.shape[i];
  m.lines = call.blocks() * wide.elements() / m.size;
  m.per_unit = std::max<int64_t>(1, kUnitFloats / (m.size * call.lanes()));
  lowering.phase(kernel, ceil_divide(m.lines, m.per_unit), m);
}

}  // namespace

void lower_reduce(const Call& call, Lowering& lowering) {
  const graph::ValueType& in = call.input(0);
  const std::vector<int64_t> dims = sample_dims(in);
  const std::vector<int64_t> strides = broadcast_strides(dims, dims);
  std::vector<bool> goes(dims.size(), false);
  for (const int64_t axis : call.node.attributes.integers("axes")) {
    goes[static_cast<size_t>(axis + (in.batched() ? 1 : 0))] = true;
  }
  Reduction r;
  for (size_t i = 0; i < dims.size(); ++i) {
    (goes[i] ? r.reduced : r.kept).push_back(dims[i]);
    (goes[i] ? r.reduced_strides : r.kept_strides).push_back(strides[i]);
  }
  collapse(r.kept, {&r.kept_strides});
  collapse(r.reduced, {&r.reduced_strides});
  r.batched = in.batched();
  r.in_elements = in.elements();
  r.out_elements = call.output(0).elements();
  const int64_t ratio = std::max<int64_t>(1, r.in_elements / std::max<int64_t>(1, r.out_elements));
  if (call.node.op->name == "reduce_mean") r.scale = static_cast<float>(1.0 / static_cast<double>(ratio));
  const int64_t blocks = r.batched ? call.blocks() : 1;
  r.per_unit = std::max<int64_t>(1, kUnitFloats / (ratio * (r.batched ? call.lanes() : 1)));
  r.units_per_block = ceil_divide(r.out_elements, r.per_unit);
  const int64_t units = blocks * r.units_per_block;
  lowering.phase(BRISK_PHASE(call, reduce), units, std::move(r));
}

void lower_batch_sum(const Call& call, Lowering& lowering) {
  const graph::ValueType& in = call.input(0);
  BatchSum sum;
  sum.samples = call.samples;
  sum.rows = in.rows;
  sum.elements = call.output(0).elements();
  sum.accumulates = call.graph.value(call.node.outputs[0]).place == graph::Place::gradient;
  const int64_t blocks = call.blocks();
  // Slices of about 64 vectors an element, more only as far as there is work for them.
  const int64_t wanted = std::min(ceil_divide(blocks * sum.rows, 64), blocks);
  sum.blocks_per_slice = ceil_divide(blocks, std::max<int64_t>(1, wanted));
  sum.slices = ceil_divide(blocks, sum.blocks_per_slice);
  const int64_t vectors = kUnitFloats / call.lanes();
  const int64_t each = ceil_divide(std::max<int64_t>(1, vectors / (sum.blocks_per_slice * sum.rows)), call.lanes());
  sum.per_unit = each * call.lanes();
  sum.units_per_slice = ceil_divide(sum.elements, sum.per_unit);
  if (sum.slices > 1) sum.partials_at = lowering.workspace(sum.slices * sum.elements * 4);
  lowering.phase(BRISK_PHASE(call, sum_slices), sum.slices * sum.units_per_slice, sum);
  if (sum.slices == 1) return;
  sum.per_unit = kUnitFloats;
  lowering.phase(BRISK_PHASE(call, add_slices), ceil_divide(sum.elements, sum.per_unit), sum);
}

void lower_reduce_max(const Call& call, Lowering& lowering) {
  lower_maximum(call, call.input(0), BRISK_PHASE(call, reduce_max), lowering);
}

void lower_reduce_max_gradient(const Call& call, Lowering& lowering) {
  lower_maximum(call, call.output(0), BRISK_PHASE(call, reduce_max_gradient), lowering);
}

}  // namespace brisk::backend::cpu
