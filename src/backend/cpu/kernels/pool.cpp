// Each written pixel gathers what it needs, so that no two units write the same memory and sums have one order.
#include "backend/cpu/kernels/pool.h"

#include "backend/cpu/kernels/range.h"
#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

/// Calls body(read offset, write offset, write index, rows, columns) for each written pixel of each plane of the units;
/// offsets in vectors.
template <class Body>
BRISK_INLINE void for_pixels(const Pooling& p, int64_t first, int64_t last, const Body& body) {
  const auto height = static_cast<int64_t>(p.rows.size()), width = static_cast<int64_t>(p.columns.size());
  const WindowRange* rows = p.rows.data();
  const WindowRange* columns = p.columns.data();
  for (int64_t unit = first; unit < last; ++unit) {
    const Range planes = stretch(p.planes, p.planes_per_unit, unit);
    for (int64_t plane = planes.first; plane < planes.last; ++plane) {
      const int64_t read = plane * p.read_height * p.read_width, write = plane * height * width;
      for (int64_t h = 0; h < height; ++h) {
        for (int64_t w = 0; w < width; ++w) body(read, write + h * width + w, h * width + w, rows[h], columns[w]);
      }
    }
  }
}

template <bool kDivide>
BRISK_INLINE void sum_windows(const Pooling& p, const Operands& operands, int64_t first, int64_t last) {
  const auto* from = operands.input<float>(0);
  auto* to = operands.output<float>(0);
  const Vec count = set1(p.count);
  for_pixels(p, first, last, [&](int64_t read, int64_t write, int64_t, WindowRange rows, WindowRange columns) {
    Vec total = zero();
    for (int64_t h = rows.first; h < rows.last; ++h) {
      for (int64_t w = columns.first; w < columns.last; ++w) {
        const Vec value = load(from + (read + h * p.read_width + w) * kLanes);
        total += kDivide ? value : value / count;
      }
    }
    store(to + write * kLanes, kDivide ? total / count : total);
  });
}

}  // namespace

void max_pool(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const Pooling*>(parameters);
  const auto* x = operands.input<float>(0);
  auto* y = operands.output<float>(0);
  auto* index = operands.output<int32_t>(1);
  for_pixels(p, first, last, [&](int64_t read, int64_t write, int64_t, WindowRange rows, WindowRange columns) {
    int64_t at = rows.first * p.read_width + columns.first;
    Vec best = load(x + (read + at) * kLanes);
    Ints chosen = set1_int(static_cast<int32_t>(at));
    for (int64_t h = rows.first; h < rows.last; ++h) {
      at = h * p.read_width + columns.first;
      for (int64_t w = columns.first; w < columns.last; ++w, ++at) {
        const Vec value = load(x + (read + at) * kLanes);
        // Larger, or the first NaN: NaN compares with nothing.
        const Mask take = ~(value <= best) & ~is_nan(best);
        best = select(take, value, best);
        chosen = select(take, set1_int(static_cast<int32_t>(at)), chosen);
      }
    }
    store(y + write * kLanes, best);
    store(index + write * kLanes, chosen);
  });
}

void max_pool_gradient(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const Pooling*>(parameters);
  const auto* dy = operands.input<float>(0);
  const auto* index = operands.input<int32_t>(1);
  auto* dx = operands.output<float>(0);
  for_pixels(p, first, last, [&](int64_t read, int64_t write, int64_t own, WindowRange rows, WindowRange columns) {
    const Ints wanted = set1_int(static_cast<int32_t>(own));
    Vec total = zero();
    for (int64_t h = rows.first; h < rows.last; ++h) {
      for (int64_t w = columns.first; w < columns.last; ++w) {
        const int64_t at = (read + h * p.read_width + w) * kLanes;
        total += keep(load_ints(index + at) == wanted, load(dy + at));
      }
    }
    store(dx + write * kLanes, total);
  });
}

void average_pool(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  sum_windows<true>(*static_cast<const Pooling*>(parameters), operands, first, last);
}

void average_pool_gradient(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  sum_windows<false>(*static_cast<const Pooling*>(parameters), operands, first, last);
}

}  // namespace brisk::backend::cpu::BRISK_ISA
