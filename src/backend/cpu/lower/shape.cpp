// Reshape, concat, slice and its derivative, dimensions in another order, frames.
#include <algorithm>
#include <iterator>

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

void lower_permute(const Call& call, Lowering& lowering) {
  const ValueType &in = call.input(0), &out = call.output(0);
  const int64_t rows = in.batched() ? call.blocks() * in.rows : 1;
  Permutation p;
  p.chunk = size_of(in.dtype) * (in.batched() ? call.lanes() : 1);
  p.dims.push_back(rows);
  p.strides.push_back(in.shape.count());
  for (const int64_t axis : call.node.attributes.integers("axes")) {
    int64_t stride = 1;
    for (int64_t i = axis + 1; i < in.shape.rank(); ++i) stride *= in.shape[static_cast<int>(i)];
    p.dims.push_back(in.shape[static_cast<int>(axis)]);
    p.strides.push_back(stride);
  }
  collapse(p.dims, {&p.strides});
  for (int64_t& stride : p.strides) stride *= p.chunk;
  if (p.strides.back() == p.chunk && p.dims.size() > 1) {  // what stays in order moves as one
    p.chunk *= p.dims.back();
    p.dims.pop_back();
    p.strides.pop_back();
  }
  p.chunks = stored(out, call.blocks(), call.lanes()) * size_of(out.dtype) / p.chunk;
  p.per_unit = std::max<int64_t>(1, kUnitBytes / p.chunk);
  const int64_t units = ceil_divide(p.chunks, p.per_unit);
  lowering.phase(BRISK_PHASE(call, permute), units, std::move(p));
}

void lower_pad(const Call& call, Lowering& lowering) {
  const ValueType &in = call.input(0), &out = call.output(0);
  const std::vector<int64_t>& before = call.node.attributes.integers("before");
  const int64_t width = in.batched() ? call.lanes() : 1;
  const int rank = in.shape.rank();
  Padding p;
  p.value = static_cast<float>(call.node.attributes.real("value"));
  p.row = width * (rank > 0 ? in.shape[rank - 1] : 1);
  p.padded_row = width * (rank > 0 ? out.shape[rank - 1] : 1);
  if (!before.empty()) p.before = width * before.back();
  if (before.size() > 1) {
    p.rows = in.shape[rank - 2];
    p.padded_rows = out.shape[rank - 2];
    p.above = before[before.size() - 2];
  }
  p.total = stored(out, call.blocks(), call.lanes()) / p.padded_row;
  p.per_unit = std::max<int64_t>(1, kUnitBytes / (p.padded_row * 4));
  lowering.phase(BRISK_PHASE(call, pad), ceil_divide(p.total, p.per_unit), p);
}

void lower_constant(const Call& call, Lowering& lowering) {
  const std::vector<double>& values = call.node.attributes.reals("values");
  Constant constant;
  std::transform(values.begin(), values.end(), std::back_inserter(constant.values),
                 [](double value) { return static_cast<float>(value); });
  lowering.phase(BRISK_PHASE(call, put_constant), 1, std::move(constant));
}

}  // namespace brisk::backend::cpu
