// Each written pixel gathers what it needs, so that no two units write the same memory and sums have one order.
#include "backend/cpu/kernels/pool.h"

#include "backend/cpu/kernels/range.h"
#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

/// Calls body(plane offset, own offset, own index, rows, columns) for each pixel that has ranges, in each plane of the
/// units; offsets in vectors: of the plane that the ranges point into, and of the pixel in its own.
template <class Body>
BRISK_INLINE void for_pixels(const Pooling& p, int64_t first, int64_t last, const Body& body) {
  const auto height = static_cast<int64_t>(p.rows.size()), width = static_cast<int64_t>(p.columns.size());
  const WindowRange* rows = p.rows.data();
  const WindowRange* columns = p.columns.data();
  for (int64_t unit = first; unit < last; ++unit) {
    const Range planes = stretch(p.planes, p.planes_per_unit, unit);
    for (int64_t plane = planes.first; plane < planes.last; ++plane) {
      const int64_t other = plane * p.height * p.width, own = plane * height * width;
      for (int64_t h = 0; h < height; ++h) {
        for (int64_t w = 0; w < width; ++w) body(other, own + h * width + w, h * width + w, rows[h], columns[w]);
      }
    }
  }
}

/// A running maximum and where it was found: the first of equal ones, or the first NaN (which compares with nothing).
struct Best {
  Vec value;
  Ints index;
  BRISK_INLINE void offer(Vec candidate, Ints at) {
    const Mask take = ~(candidate <= value) & ~is_nan(value);
    value = select(take, candidate, value);
    index = select(take, at, index);
  }
};

template <bool kDivide>
BRISK_INLINE void sum_windows(const Pooling& p, const Operands& operands, int64_t first, int64_t last) {
  const auto* from = operands.input<float>(0);
  auto* to = operands.output<float>(0);
  const Vec count = set1(p.count);
  for_pixels(p, first, last, [&](int64_t read, int64_t write, int64_t, WindowRange rows, WindowRange columns) {
    Vec total = zero();
    for (int64_t h = rows.first; h < rows.last; ++h) {
      for (int64_t w = columns.first; w < columns.last; ++w) {
        const Vec value = load(from + (read + h * p.width + w) * kLanes);
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
  const auto general = [&](int64_t read, int64_t write, int64_t, WindowRange rows, WindowRange columns) {
    int64_t at = rows.first * p.width + columns.first;
    Best best{load(x + (read + at) * kLanes), set1_int(static_cast<int32_t>(at))};
    for (int64_t h = rows.first; h < rows.last; ++h) {
      at = h * p.width + columns.first;
      for (int64_t w = columns.first; w < columns.last; ++w, ++at) {
        best.offer(load(x + (read + at) * kLanes), set1_int(static_cast<int32_t>(at)));
      }
    }
    store(y + write * kLanes, best.value);
    store(index + write * kLanes, best.index);
  };
  const auto row = static_cast<int32_t>(p.width);
  const Ints offset[4] = {set1_int(0), set1_int(1), set1_int(row), set1_int(row + 1)};
  const auto twos = [&](int64_t read, int64_t write, int64_t, WindowRange rows, WindowRange columns) {
    const int64_t at = rows.first * p.width + columns.first;
    const float* from = x + (read + at) * kLanes;
    Best best{load(from), offset[0]};
    best.offer(load(from + kLanes), offset[1]);
    best.offer(load(from + row * kLanes), offset[2]);
    best.offer(load(from + (row + 1) * kLanes), offset[3]);
    store(y + write * kLanes, best.value);
    store(index + write * kLanes, best.index + set1_int(static_cast<int32_t>(at)));
  };
  p.twos ? for_pixels(p, first, last, twos) : for_pixels(p, first, last, general);
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
        const int64_t at = (read + h * p.width + w) * kLanes;
        total += keep(load_ints(index + at) == wanted, load(dy + at));
      }
    }
    store(dx + write * kLanes, total);
  });
}

void max_pool_scatter(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const Pooling*>(parameters);
  const auto* dy = operands.input<float>(0);
  const auto* index = operands.input<int32_t>(1);
  auto* dx = operands.output<float>(0);
  const auto row = static_cast<int32_t>(p.width);
  const Ints offset[4] = {set1_int(0), set1_int(1), set1_int(row), set1_int(row + 1)};
  for_pixels(p, first, last, [&](int64_t write, int64_t read, int64_t, WindowRange rows, WindowRange columns) {
    const int64_t at = rows.first * p.width + columns.first;
    const Vec gradient = load(dy + read * kLanes);
    const Ints chosen = load_ints(index + read * kLanes) - set1_int(static_cast<int32_t>(at));
    float* to = dx + (write + at) * kLanes;
    store(to, keep(chosen == offset[0], gradient));
    store(to + kLanes, keep(chosen == offset[1], gradient));
    store(to + row * kLanes, keep(chosen == offset[2], gradient));
    store(to + (row + 1) * kLanes, keep(chosen == offset[3], gradient));
  });
}

void average_pool(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  sum_windows<true>(*static_cast<const Pooling*>(parameters), operands, first, last);
}

void average_pool_gradient(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  sum_windows<false>(*static_cast<const Pooling*>(parameters), operands, first, last);
}

}  // namespace brisk::backend::cpu::BRISK_ISA
