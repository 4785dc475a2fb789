// Vertical sums: a lane is a sample, so that only the sum over the batch crosses lanes.
#include "backend/cpu/kernels/reduce.h"

#include <algorithm>

#include "backend/cpu/kernels/sums.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

int64_t offset_of(int64_t index, const std::vector<int64_t>& dims, const std::vector<int64_t>& strides) {
  int64_t offset = 0;
  for (size_t i = dims.size(); i-- > 0;) {
    offset += index % dims[i] * strides[i];
    index /= dims[i];
  }
  return offset;
}

/// Element `at` for all lanes: a vector of samples, or one value for every lane.
template <bool kBatched>
BRISK_INLINE Vec element(const float* x, int64_t at) {
  if constexpr (kBatched) {
    return load(x + at * kLanes);
  } else {
    return set1(x[at]);
  }
}

/// Runs of at most 256 elements are summed apart and then added.
template <bool kBatched>
Vec sum_reduced(const Reduction& r, const float* x) {
  constexpr int64_t kRun = 256;
  const int64_t inner = r.reduced.back(), stride = r.reduced_strides.back();
  int64_t outer = 1;
  for (size_t i = 0; i + 1 < r.reduced.size(); ++i) outer *= r.reduced[i];
  RunningSum total;
  for (int64_t o = 0; o < outer; ++o) {
    const float* line = x + offset_of(o * inner, r.reduced, r.reduced_strides) * (kBatched ? kLanes : 1);
    for (int64_t i = 0; i < inner; i += kRun) {
      total.add(
          sum_of(std::min(kRun, inner - i), [&](int64_t k) { return element<kBatched>(line, (i + k) * stride); }));
    }
  }
  return total.sum;
}

template <bool kBatched>
void reduce_units(const Reduction& r, const Operands& operands, int64_t first, int64_t last) {
  const Vec scale = set1(r.scale);
  for (int64_t unit = first; unit < last; ++unit) {
    const int64_t block = unit / r.units_per_block;
    const int64_t begin = unit % r.units_per_block * r.per_unit;
    const int64_t end = std::min(r.out_elements, begin + r.per_unit);
    constexpr int64_t kWidth = kBatched ? kLanes : 1;
    const float* x = operands.input<float>(0) + block * r.in_elements * kWidth;
    float* y = operands.output<float>(0) + block * r.out_elements * kWidth;
    for (int64_t o = begin; o < end; ++o) {
      const Vec total = sum_reduced<kBatched>(r, x + offset_of(o, r.kept, r.kept_strides) * kWidth) * scale;
      if constexpr (kBatched) {
        store(y + o * kLanes, total);
      } else {
        store_first(y + o, total, 1);
      }
    }
  }
}

}  // namespace

void reduce(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& r = *static_cast<const Reduction*>(parameters);
  if (r.batched) {
    reduce_units<true>(r, operands, first, last);
  } else {
    reduce_units<false>(r, operands, first, last);
  }
}

void sum_slices(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& s = *static_cast<const BatchSum*>(parameters);
  const auto* x = operands.input<float>(0);
  const int64_t blocks = (s.samples + kLanes - 1) / kLanes;
  const bool adds = s.slices == 1 && s.accumulates && operands.run->accumulate;
  float* partials =
      s.slices == 1 ? operands.output<float>(0) : reinterpret_cast<float*>(operands.workspace + s.partials_at);
  for (int64_t unit = first; unit < last; ++unit) {
    const int64_t slice = unit / s.units_per_slice;
    const int64_t begin = unit % s.units_per_slice * s.per_unit;
    const int64_t end = std::min(s.elements, begin + s.per_unit);
    const int64_t block0 = slice * s.blocks_per_slice, block1 = std::min(blocks, block0 + s.blocks_per_slice);
    for (int64_t e = begin; e < end; e += kLanes) {
      const int64_t width = std::min<int64_t>(kLanes, end - e);
      Vec sums[kLanes];
      for (int i = 0; i < kLanes; ++i) sums[i] = zero();
      for (int64_t block = block0; block < block1; ++block) {
        const Mask valid = valid_lanes(s.samples, block);
        for (int64_t row = 0; row < s.rows; ++row) {
          const float* from = x + ((block * s.rows + row) * s.elements + e) * kLanes;
          for (int64_t i = 0; i < width; ++i) sums[i] += load_whole(from + i * kLanes, valid);
        }
      }
      transpose(sums);
      for (int step = kLanes / 2; step > 0; step /= 2) {
        for (int i = 0; i < step; ++i) sums[i] += sums[i + step];
      }
      float* to = partials + slice * s.elements + e;
      store_first(to, adds ? load_first(to, width) + sums[0] : sums[0], width);
    }
  }
}

void add_slices(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& s = *static_cast<const BatchSum*>(parameters);
  const auto* partials = reinterpret_cast<const float*>(operands.workspace + s.partials_at);
  auto* out = operands.output<float>(0);
  const bool adds = s.accumulates && operands.run->accumulate;
  const int64_t end = std::min(s.elements, last * s.per_unit);
  for (int64_t e = first * s.per_unit; e < end; e += kLanes) {
    const Mask here = first_lanes(end - e);
    const Vec total = sum_of(s.slices, [&](int64_t k) { return load(partials + k * s.elements + e, here); });
    store(out + e, adds ? load(out + e, here) + total : total, here);
  }
}

void reduce_max(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& m = *static_cast<const Maximum*>(parameters);
  for (int64_t line = first * m.per_unit; line < std::min(m.lines, last * m.per_unit); ++line) {
    const float* x = operands.input<float>(0) + (line / m.inner * m.size * m.inner + line % m.inner) * kLanes;
    Vec top = load(x);
    Ints best = set1_int(0);
    for (int64_t k = 1; k < m.size; ++k) {
      const Vec value = load(x + k * m.inner * kLanes);
      const Mask larger = (value > top) | (is_nan(value) & ~is_nan(top));
      top = select(larger, value, top);
      best = select(larger, set1_int(static_cast<int32_t>(k)), best);
    }
    store(operands.output<float>(0) + line * kLanes, top);
    store(operands.output<int32_t>(1) + line * kLanes, best);
  }
}

void reduce_max_gradient(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& m = *static_cast<const Maximum*>(parameters);
  for (int64_t line = first * m.per_unit; line < std::min(m.lines, last * m.per_unit); ++line) {
    float* dx = operands.output<float>(0) + (line / m.inner * m.size * m.inner + line % m.inner) * kLanes;
    const Vec dy = load(operands.input<float>(0) + line * kLanes);
    const Ints best = load_ints(operands.input<int32_t>(1) + line * kLanes);
    for (int64_t k = 0; k < m.size; ++k) {
      store(dx + k * m.inner * kLanes, keep(best == set1_int(static_cast<int32_t>(k)), dy));
    }
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
