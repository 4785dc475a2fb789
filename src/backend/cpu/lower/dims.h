// Sizes and strides of iteration spaces, shared by the lowerings.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cpu/lowering.h"
#include "core/strides.h"

namespace brisk::backend::cpu {

/// Rows (when batched), then the shape: what lies in one sample.
inline std::vector<int64_t> sample_dims(const graph::ValueType& type) {
  std::vector<int64_t> dims;
  dims.reserve(Shape::kMaximumRank + 1);
  if (type.batched()) dims.push_back(type.rows);
  for (const int64_t size : type.shape) dims.push_back(size);
  return dims;
}

/// The same, ones put between rows and shape until the shape has the rank of `out`'s: how it broadcasts to `out`.
inline std::vector<int64_t> sample_dims(const graph::ValueType& type, const graph::ValueType& out) {
  std::vector<int64_t> dims = sample_dims(type);
  const auto missing = static_cast<size_t>(out.shape.rank() - type.shape.rank());
  if (type.batched()) dims.insert(dims.begin() + 1, missing, 1);
  return dims;
}

/// Floats (or elements) that a value's storage holds, lanes included.
inline int64_t stored(const graph::ValueType& type, int64_t blocks, int lanes) {
  return type.batched() ? type.elements() * blocks * lanes : type.elements();
}

/// Strides, in elements, of an operand of shape `dims` broadcast to `wide` (both aligned at the right).
inline std::vector<int64_t> broadcast_strides(const std::vector<int64_t>& dims, const std::vector<int64_t>& wide) {
  std::vector<int64_t> strides(wide.size(), 0);
  int64_t stride = 1;
  for (size_t i = dims.size(), j = wide.size(); i-- > 0;) {
    --j;
    if (dims[i] != 1) strides[j] = stride;
    stride *= dims[i];
  }
  return strides;
}

}  // namespace brisk::backend::cpu
