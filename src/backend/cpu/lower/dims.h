// Sizes and strides of iteration spaces, shared by the lowerings.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cpu/lowering.h"

namespace brisk::backend::cpu {

inline int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

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

/// Merges neighbouring dimensions wherever every list of strides allows it, and drops dimensions of size 1.
inline void collapse(std::vector<int64_t>& dims, const std::vector<std::vector<int64_t>*>& strides) {
  size_t kept = 0;
  const auto merges = [&](size_t inner) {
    for (const auto* s : strides) {
      if ((*s)[kept - 1] != (*s)[inner] * dims[inner]) return false;
    }
    return true;
  };
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1) continue;
    if (kept > 0 && merges(i)) {
      dims[kept - 1] *= dims[i];
      for (auto* s : strides) (*s)[kept - 1] = (*s)[i];
    } else {
      dims[kept] = dims[i];
      for (auto* s : strides) (*s)[kept] = (*s)[i];
      ++kept;
    }
  }
  if (kept == 0) {
    dims.assign(1, 1);
    for (auto* s : strides) s->assign(1, 0);
    return;
  }
  dims.resize(kept);
  for (auto* s : strides) s->resize(kept);
}

}  // namespace brisk::backend::cpu
