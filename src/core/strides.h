// Iteration spaces: sizes of dimensions, and for each operand how far apart, in elements, neighbours of a dimension
// lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace brisk {

constexpr int64_t ceil_divide(int64_t a, int64_t b) { return (a + b - 1) / b; }

/// Row-major.
inline std::vector<int64_t> packed_strides(const std::vector<int64_t>& dims) {
  std::vector<int64_t> strides(dims.size());
  int64_t stride = 1;
  for (size_t i = dims.size(); i-- > 0;) {
    strides[i] = stride;
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

}  // namespace brisk
