// Reshape, concat, slice and its derivative.
#include <algorithm>

#include "backend/cpu/kernels/shape.h"
#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"

namespace brisk::backend::cpu {
namespace {

using graph::ValueType;
constexpr int64_t kUnitBytes = 32768;

/// Bytes of one step along per-sample axis `axis`, lanes included.
int64_t step_bytes(const Call& call, const ValueType& type, int64_t axis) {
  int64_t step = size_of(type.dtype) * (type.batched() ? call.lanes() : 1);
  for (int64_t i = axis + 1; i < type.shape.rank(); ++i) step *= type.shape[static_cast<int>(i)];
  return step;
}

void assemble(const Call& call, RowParts rows, Lowering& lowering) {
  const ValueType& out = call.output(0);
  rows.total = stored(out, call.blocks(), call.lanes()) * size_of(out.dtype);
  rows.unit = kUnitBytes;
  std::erase_if(rows.parts, [](const RowPart& part) { return part.bytes == 0; });
  const int64_t units = ceil_divide(rows.total, rows.unit);
  lowering.phase(BRISK_PHASE(call, assemble_rows), units, std::move(rows));
}

}  // namespace

// A copy; left out by the executor when the output shares the input's storage, as it does but for parameters.
void lower_reshape(const Call& call, Lowering& lowering) {
  const ValueType& out = call.output(0);
  RowParts rows;
  rows.row = stored(out, call.blocks(), call.lanes()) * size_of(out.dtype);
  rows.parts.push_back({.input = 0, .bytes = rows.row, .source_row = rows.row});
  assemble(call, std::move(rows), lowering);
}

void lower_concat(const Call& call, Lowering& lowering) {
  const int64_t axis = call.node.attributes.integer("axis");
  const int64_t step = step_bytes(call, call.output(0), axis);
  RowParts rows;
  for (int i = 0; i < call.inputs(); ++i) {
    const int64_t bytes = call.input(i).shape[static_cast<int>(axis)] * step;
    rows.parts.push_back({.input = i, .first = rows.row, .bytes = bytes, .source_row = bytes});
    rows.row += bytes;
  }
  assemble(call, std::move(rows), lowering);
}

void lower_slice(const Call& call, Lowering& lowering) {
  const int64_t axis = call.node.attributes.integer("axis");
  const int64_t step = step_bytes(call, call.input(0), axis);
  RowParts rows;
  rows.row = call.node.attributes.integer("count") * step;
  rows.parts.push_back({.input = 0,
                        .bytes = rows.row,
                        .source_row = call.input(0).shape[static_cast<int>(axis)] * step,
                        .source_first = call.node.attributes.integer("first") * step});
  assemble(call, std::move(rows), lowering);
}

void lower_pad_slice(const Call& call, Lowering& lowering) {
  const int64_t axis = call.node.attributes.integer("axis");
  const int64_t step = step_bytes(call, call.output(0), axis);
  const int64_t before = call.node.attributes.integer("first") * step;
  const int64_t bytes = call.input(0).shape[static_cast<int>(axis)] * step;
  RowParts rows;
  rows.row = call.node.attributes.integer("size") * step;
  rows.parts.push_back({.bytes = before});
  rows.parts.push_back({.input = 0, .first = before, .bytes = bytes, .source_row = bytes});
  rows.parts.push_back({.first = before + bytes, .bytes = rows.row - before - bytes});
  assemble(call, std::move(rows), lowering);
}

}  // namespace brisk::backend::cpu
