// How a batched value is cut for its way between rows and lanes.
#pragma once

#include <algorithm>

#include "backend/cpu/kernels/plan.h"
#include "backend/cpu/lower/dims.h"

namespace brisk::backend::cpu {

inline Relayout make_relayout(const Call& call, const graph::ValueType& type) {
  constexpr int64_t kUnitBytes = 32768;
  Relayout move{call.samples, type.elements(), size_of(type.dtype), 0, 1};
  move.per_unit = std::max<int64_t>(kUnitBytes / (move.size * call.lanes()), 64);
  move.units_per_block = ceil_divide(move.elements, move.per_unit);
  return move;
}

inline int64_t units(const Call& call, const Relayout& move) { return call.blocks() * move.units_per_block; }

}  // namespace brisk::backend::cpu
