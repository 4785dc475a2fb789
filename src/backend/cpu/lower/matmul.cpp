// Products of per-sample matrices.
#include "backend/cpu/kernels/matmul.h"

#include <algorithm>

#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"

namespace brisk::backend::cpu {

void lower_matmul(const Call& call, Lowering& lowering) {
  const graph::ValueType &a = call.input(0), &b = call.input(1), &out = call.output(0);
  const bool transpose_a = call.node.attributes.flag("transpose_a");
  const bool transpose_b = call.node.attributes.flag("transpose_b");
  Matmul s;
  s.m = out.shape[0];
  s.p = out.shape[1];
  s.k = a.shape[transpose_a ? 0 : 1];
  s.a_row = transpose_a ? 1 : s.k;
  s.a_column = transpose_a ? s.m : 1;
  s.b_row = transpose_b ? 1 : s.p;
  s.b_column = transpose_b ? s.k : 1;
  s.a_batched = a.batched();
  s.b_batched = b.batched();
  constexpr int64_t kUnitProducts = 4096;  // vectors of them
  s.rows_per_unit = ceil_divide(std::max<int64_t>(1, kUnitProducts / std::max<int64_t>(1, s.k * s.p)), 4) * 4;
  s.units_per_matrix = ceil_divide(s.m, s.rows_per_unit);
  const int64_t matrices = out.batched() ? call.blocks() * out.rows : 1;
  lowering.phase(BRISK_PHASE(call, matmul), matrices * s.units_per_matrix, s);
}

}  // namespace brisk::backend::cpu
