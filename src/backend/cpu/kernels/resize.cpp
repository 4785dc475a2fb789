// Each written pixel gathers what it needs, so that no two units write the same memory and sums have one order.
#include "backend/cpu/kernels/resize.h"

#include "backend/cpu/kernels/range.h"

namespace brisk::backend::cpu::BRISK_ISA {

void resize(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const Resize*>(parameters);
  const int32_t *row_first = p.rows.first.data(), *row_index = p.rows.index.data();
  const int32_t *column_first = p.columns.first.data(), *column_index = p.columns.index.data();
  const float *row_weight = p.rows.weight.data(), *column_weight = p.columns.weight.data();
  const Range planes = {first * p.planes_per_unit, stretch(p.planes, p.planes_per_unit, last - 1).last};
  for (int64_t plane = planes.first; plane < planes.last; ++plane) {
    const float* from = operands.input<float>(0) + plane * p.height * p.width * kLanes;
    float* to = operands.output<float>(0) + plane * p.out_height * p.out_width * kLanes;
    for (int64_t h = 0; h < p.out_height; ++h) {
      for (int64_t w = 0; w < p.out_width; ++w, to += kLanes) {
        Vec total = zero();
        for (int32_t r = row_first[h]; r < row_first[h + 1]; ++r) {
          const float* row = from + row_index[r] * p.width * kLanes;
          Vec line = zero();
          for (int32_t c = column_first[w]; c < column_first[w + 1]; ++c) {
            line = fma(set1(column_weight[c]), load(row + column_index[c] * kLanes), line);
          }
          total = fma(set1(row_weight[r]), line, total);
        }
        store(to, total);
      }
    }
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
