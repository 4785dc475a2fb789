// Each lane goes where its own index says. What belongs to an index out of range, or to no sample, is 0.
#include "backend/cpu/kernels/indexing.h"

#include <algorithm>

#include "backend/cpu/kernels/labels.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

constexpr int64_t kChunk = 16;  // features of a unit: a cache line, so that no two units write one

/// Samples of a line's block, when a block has `lines` of them.
BRISK_INLINE int64_t samples_of(const Indexing& g, int64_t line, int64_t lines) {
  return std::min<int64_t>(kLanes, g.samples - line / lines * kLanes);
}

/// Calls f(lane, index) for the valid indices of one line.
template <class F>
BRISK_INLINE void for_each_index(const Indexing& g, const int64_t* index, int64_t samples, F f) {
  for (int64_t i = 0; i < samples; ++i) {
    if (index[i] >= 0 && index[i] < g.choices) f(i, index[i]);
  }
}

template <class F>
BRISK_INLINE void for_each_line(const Indexing& g, int64_t first, int64_t last, F f) {
  const int64_t end = std::min(g.lines, last * g.per_unit);
  for (int64_t line = first * g.per_unit; line < end; ++line) f(line);
}

}  // namespace

void check_indices(const void* parameters, const Operands& operands, int64_t, int64_t) {
  const auto& g = *static_cast<const Indexing*>(parameters);
  look_at_labels(operands, operands.input<int64_t>(g.indices), g.samples, g.rows, g.picks,
                 [&](int64_t index) { return index >= 0 && index < g.choices; });
}

void gather(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& g = *static_cast<const Indexing*>(parameters);
  for_each_line(g, first, last, [&](int64_t line) {
    const float* x = operands.input<float>(0) + line * g.choices * kLanes;
    const int64_t samples = samples_of(g, line, g.rows);
    for (int64_t k = line * g.picks; k < (line + 1) * g.picks; ++k) {
      float* y = operands.output<float>(0) + k * kLanes;
      std::fill_n(y, kLanes, 0.0f);
      for_each_index(g, operands.input<int64_t>(1) + k * kLanes, samples,
                     [&](int64_t i, int64_t index) { y[i] = x[index * kLanes + i]; });
    }
  });
}

void gather_gradient(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& g = *static_cast<const Indexing*>(parameters);
  for_each_line(g, first, last, [&](int64_t line) {
    float* dx = operands.output<float>(0) + line * g.choices * kLanes;
    std::fill_n(dx, g.choices * kLanes, 0.0f);
    const int64_t samples = samples_of(g, line, g.rows);
    for (int64_t k = line * g.picks; k < (line + 1) * g.picks; ++k) {
      const float* dy = operands.input<float>(0) + k * kLanes;
      for_each_index(g, operands.input<int64_t>(1) + k * kLanes, samples,
                     [&](int64_t i, int64_t index) { dx[index * kLanes + i] += dy[i]; });
    }
  });
}

void argmax(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& g = *static_cast<const Indexing*>(parameters);
  for_each_line(g, first, last, [&](int64_t line) {
    const float* x = operands.input<float>(0) + line * g.choices * kLanes;
    Vec top = load(x);
    Ints best = set1_int(0);
    for (int64_t k = 1; k < g.choices; ++k) {
      const Vec value = load(x + k * kLanes);
      const Mask larger = (value > top) | (is_nan(value) & ~is_nan(top));
      top = select(larger, value, top);
      best = select(larger, set1_int(static_cast<int32_t>(k)), best);
    }
    alignas(64) int32_t found[kLanes];
    store(found, best);
    std::copy_n(found, kLanes, operands.output<int64_t>(0) + line * kLanes);
  });
}

void one_hot(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& g = *static_cast<const Indexing*>(parameters);
  for_each_line(g, first, last, [&](int64_t line) {
    float* y = operands.output<float>(0) + line * g.choices * kLanes;
    std::fill_n(y, g.choices * kLanes, 0.0f);
    for_each_index(g, operands.input<int64_t>(0) + line * kLanes, samples_of(g, line, g.rows * g.picks),
                   [&](int64_t i, int64_t index) { y[index * kLanes + i] = 1.0f; });
  });
}

void embedding(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& g = *static_cast<const Indexing*>(parameters);
  for_each_line(g, first, last, [&](int64_t line) {
    const float* row[kLanes] = {};
    for_each_index(g, operands.input<int64_t>(1) + line * kLanes, samples_of(g, line, g.rows * g.picks),
                   [&](int64_t i, int64_t index) { row[i] = operands.input<float>(0) + index * g.features; });
    float* y = operands.output<float>(0) + line * g.features * kLanes;
    for (int64_t f = 0; f < g.features; f += kLanes) {
      const int64_t width = std::min<int64_t>(kLanes, g.features - f);
      Vec tile[kLanes];
      BRISK_UNROLL for (int i = 0; i < kLanes; ++i) {
        tile[i] = row[i] == nullptr ? zero() : load_first(row[i] + f, width);
      }
      transpose(tile);
      for (int64_t i = 0; i < width; ++i) store(y + (f + i) * kLanes, tile[i]);
    }
  });
}

void clear_embedding(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& g = *static_cast<const Indexing*>(parameters);
  if (g.accumulates && operands.run->accumulate) return;
  const int64_t begin = first * g.per_unit, end = std::min(g.choices, last * g.per_unit);
  std::fill_n(operands.output<float>(0) + begin * g.features, (end - begin) * g.features, 0.0f);
}

void embedding_gradient(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& g = *static_cast<const Indexing*>(parameters);
  const int64_t end = std::min(g.features, last * kChunk);
  for (int64_t line = 0; line < g.lines; ++line) {
    const float* dy = operands.input<float>(0) + line * g.features * kLanes;
    const int64_t samples = samples_of(g, line, g.rows * g.picks);
    for (int64_t f = first * kChunk; f < end; f += kLanes) {
      const int64_t width = std::min<int64_t>(kLanes, end - f);
      Vec tile[kLanes];
      BRISK_UNROLL for (int i = 0; i < kLanes; ++i) tile[i] = i < width ? load(dy + (f + i) * kLanes) : zero();
      transpose(tile);
      for_each_index(g, operands.input<int64_t>(1) + line * kLanes, samples, [&](int64_t i, int64_t index) {
        float* to = operands.output<float>(0) + index * g.features + f;
        store_first(to, load_first(to, width) + tile[i], width);
      });
    }
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
