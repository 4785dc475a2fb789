// Transposes between rows and lanes; sums and seeds over valid rows; gradients of windows.
#include "backend/cpu/kernels/plan.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/kernels/sums.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

/// Elements [e0, e1) of one block.
struct Piece {
  int64_t block, e0, e1;
  int64_t samples;  ///< that the block holds
};

Piece piece(const Relayout& move, int64_t unit) {
  const int64_t block = unit / move.units_per_block;
  const int64_t e0 = unit % move.units_per_block * move.per_unit;
  return {block, e0, std::min(move.elements, e0 + move.per_unit),
          std::min<int64_t>(kLanes, move.samples - block * kLanes)};
}

void load_words(const float* rows, float* lanes, const Piece& p, int64_t elements) {
  for (int64_t e = p.e0; e < p.e1; e += kLanes) {
    const int64_t width = std::min<int64_t>(kLanes, p.e1 - e);
    Vec tile[kLanes];
    BRISK_UNROLL for (int i = 0; i < kLanes; ++i) {
      tile[i] = i < p.samples ? load_first(rows + i * elements + e, width) : zero();
    }
    transpose(tile);
    for (int64_t i = 0; i < width; ++i) store(lanes + (e + i) * kLanes, tile[i]);
  }
}

void store_words(const float* lanes, float* rows, const Piece& p, int64_t elements) {
  for (int64_t e = p.e0; e < p.e1; e += kLanes) {
    const int64_t width = std::min<int64_t>(kLanes, p.e1 - e);
    Vec tile[kLanes];
    BRISK_UNROLL for (int i = 0; i < kLanes; ++i) tile[i] = i < width ? load(lanes + (e + i) * kLanes) : zero();
    transpose(tile);
    for (int64_t i = 0; i < p.samples; ++i) store_first(rows + i * elements + e, tile[i], width);
  }
}

template <class T>
void load_elements(const T* rows, T* lanes, const Piece& p, int64_t elements) {
  for (int64_t e = p.e0; e < p.e1; ++e) {
    for (int64_t i = 0; i < kLanes; ++i) lanes[e * kLanes + i] = i < p.samples ? rows[i * elements + e] : T{0};
  }
}

template <class T>
void store_elements(const T* lanes, T* rows, const Piece& p, int64_t elements) {
  for (int64_t i = 0; i < p.samples; ++i) {
    for (int64_t e = p.e0; e < p.e1; ++e) rows[i * elements + e] = lanes[e * kLanes + i];
  }
}

/// Calls f with pointers of a type as wide as the elements, at the start of the piece's block.
template <class Rows, class Lanes, class F>
void with_type(const Relayout& move, const Piece& p, Rows* rows, Lanes* lanes, F f) {
  rows += p.block * kLanes * move.elements * move.size;
  lanes += p.block * kLanes * move.elements * move.size;
  constexpr bool kFromRows = std::is_const_v<Rows>;
  const auto call = [&]<class T>(T) {
    if constexpr (kFromRows) {
      f(reinterpret_cast<const T*>(rows), reinterpret_cast<T*>(lanes));
    } else {
      f(reinterpret_cast<T*>(rows), reinterpret_cast<const T*>(lanes));
    }
  };
  if (move.size == 4) {
    call(float{});
  } else if (move.size == 8) {
    call(int64_t{});
  } else if (move.size == 2) {
    call(uint16_t{});
  } else {
    call(uint8_t{});
  }
}

/// Calls f(vectors of row r of block b, how many lanes are valid) for all rows, in a fixed order.
template <class F>
void for_each_row(const RowSum& sum, F f) {
  for (int64_t block = 0; block * kLanes < sum.samples; ++block) {
    for (int64_t r = 0; r < sum.rows; ++r) f((block * sum.rows + r) * kLanes, valid_lanes(sum.samples, block));
  }
}

double sum_rows(const RowSum& sum, const float* x) {
  double total = 0;
  for_each_row(sum, [&](int64_t at, Mask valid) { total += sum_double(keep(valid, load(x + at))); });
  return total;
}

}  // namespace

void load_lanes(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& move = *static_cast<const Relayout*>(parameters);
  for (int64_t unit = first; unit < last; ++unit) {
    const Piece p = piece(move, unit);
    with_type(move, p, operands.input<char>(0), operands.output<char>(0), [&]<class T>(const T* rows, T* lanes) {
      if constexpr (std::is_same_v<T, float>) {
        load_words(rows, lanes, p, move.elements);
      } else {
        load_elements(rows, lanes, p, move.elements);
      }
    });
  }
}

void store_lanes(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& move = *static_cast<const Relayout*>(parameters);
  if (operands.out[0] == nullptr) return;  // nobody wants it
  for (int64_t unit = first; unit < last; ++unit) {
    const Piece p = piece(move, unit);
    with_type(move, p, operands.output<char>(0), operands.input<char>(0), [&]<class T>(T* rows, const T* lanes) {
      if constexpr (std::is_same_v<T, float>) {
        store_words(lanes, rows, p, move.elements);
      } else {
        store_elements(lanes, rows, p, move.elements);
      }
    });
  }
}

void copy_plain(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& copy = *static_cast<const PlainCopy*>(parameters);
  if (operands.out[0] == nullptr) return;
  const int64_t begin = first * copy.unit, end = std::min(last * copy.unit, copy.bytes);
  std::memcpy(operands.output<char>(0) + begin, operands.input<char>(0) + begin, static_cast<size_t>(end - begin));
}

void add_total(const void* parameters, const Operands& operands, int64_t, int64_t) {
  const auto& sum = *static_cast<const RowSum*>(parameters);
  auto* totals = operands.output<double>(0);
  totals[0] += sum_rows(sum, operands.input<float>(0));
  totals[1] += sum.weighted ? sum_rows(sum, operands.input<float>(1)) : static_cast<double>(sum.samples * sum.rows);
}

void seed_rows(const void* parameters, const Operands& operands, int64_t, int64_t) {
  const auto& sum = *static_cast<const RowSum*>(parameters);
  const Vec seed = set1(operands.input<float>(0)[0] * (sum.weighted ? operands.input<float>(2)[0] : 1));
  auto* out = operands.output<float>(0);
  for_each_row(sum, [&](int64_t at, Mask valid) { store(out + at, keep(valid, seed)); });
}

void seed_count(const void* parameters, const Operands& operands, int64_t, int64_t) {
  const auto& sum = *static_cast<const RowSum*>(parameters);
  const double count = sum_rows(sum, operands.input<float>(0));
  operands.output<float>(0)[0] = count == 0 ? 0.0f : static_cast<float>(sum.factor / count);
}

void store_gradient(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& gradient = *static_cast<const GradientStore*>(parameters);
  const auto* g = operands.input<float>(0);
  auto* out = operands.output<float>(0);
  const int64_t end = std::min(last * gradient.unit, gradient.count);
  for (int64_t i = first * gradient.unit; i < end; i += kLanes) {
    const Mask here = first_lanes(end - i);
    const Vec now = load(g + i, here);
    store(out + i, operands.run->accumulate ? load(out + i, here) + now : now, here);
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
