// Two passes for the statistics: deviations are taken from the mean, and their own sum repairs what its rounding costs.
#include "backend/cpu/kernels/layer_norm.h"

#include <algorithm>

#include "backend/cpu/kernels/sums.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

constexpr int64_t kRun = 256;  // vectors that are summed apart, so that errors do not grow with the size

template <class F>
BRISK_INLINE Vec sum_line(int64_t size, F f) {
  RunningSum total;
  for (int64_t i = 0; i < size; i += kRun) {
    total.add(sum_of(std::min(kRun, size - i), [&](int64_t k) { return f(i + k); }));
  }
  return total.sum;
}

/// As two_sums_of, in runs.
template <class F>
BRISK_INLINE TwoSums two_sums_of_runs(int64_t size, F add) {
  RunningSum first, second;
  for (int64_t i = 0; i < size; i += kRun) {
    const TwoSums part = two_sums_of(std::min(kRun, size - i), [&](int64_t k, TwoSums& sums) { add(i + k, sums); });
    first.add(part.first);
    second.add(part.second);
  }
  return {first.sum, second.sum};
}

/// The parameters of a line.
BRISK_INLINE const float* of_line(const LineNorm& n, const float* parameters, int64_t line) {
  return parameters + line % n.period * n.per_line;
}

template <class F>
BRISK_INLINE void for_each_line(const LineNorm& n, int64_t first, int64_t last, F f) {
  const int64_t end = std::min(n.lines, last * n.per_unit);
  for (int64_t line = first * n.per_unit; line < end; ++line) f(line, line * n.size * kLanes);
}

/// Sums over a line of dy w and of dy w (x - mean).
BRISK_INLINE TwoSums weighted_sums(const LineNorm& n, const float* dy, const float* x, Vec mean, const float* weight) {
  const auto add = [&](int64_t e, Vec d, TwoSums& sums) {
    sums.first += d;
    sums.second = fma(d, load(x + e * kLanes) - mean, sums.second);
  };
  if (!n.affine) {
    return two_sums_of_runs(n.size, [&](int64_t e, TwoSums& sums) { add(e, load(dy + e * kLanes), sums); });
  }
  if (n.repeat == 1) {
    return two_sums_of_runs(n.size,
                            [&](int64_t e, TwoSums& sums) { add(e, load(dy + e * kLanes) * set1(weight[e]), sums); });
  }
  TwoSums total = {zero(), zero()};
  for (int64_t p = 0; p < n.per_line; ++p) {
    const TwoSums part = two_sums_of_runs(n.repeat, [&](int64_t i, TwoSums& sums) {
      add(p * n.repeat + i, load(dy + (p * n.repeat + i) * kLanes), sums);
    });
    total.first = fma(part.first, set1(weight[p]), total.first);
    total.second = fma(part.second, set1(weight[p]), total.second);
  }
  return total;
}

/// Sums over a slice of turns for one parameter: of dy (x - mean) inverse deviation, and of dy.
struct ParameterSums {
  Vec weight = zero(), bias = zero();

  BRISK_INLINE void add_line(const LineNorm& n, const Operands& operands, int64_t line, int64_t parameter) {
    const Mask valid = valid_lanes(n.samples, line / n.lines_per_block);
    const int64_t at = (line * n.size + parameter % n.per_line * n.repeat) * kLanes;
    const float *dy = operands.input<float>(0) + at, *x = operands.input<float>(1) + at;
    const Vec mean = load(operands.input<float>(2) + line * kLanes);
    const Vec inverse = load(operands.input<float>(3) + line * kLanes);
    const auto normalised = [&](int64_t i) { return keep(valid, (load(x + i * kLanes) - mean) * inverse); };
    if (n.repeat == 1) {
      const Vec d = load_whole(dy, valid);
      bias += d;
      weight = fma(d, normalised(0), weight);
      return;
    }
    const TwoSums part = two_sums_of_runs(n.repeat, [&](int64_t i, TwoSums& sums) {
      const Vec d = load_whole(dy + i * kLanes, valid);
      sums.first = fma(d, normalised(i), sums.first);
      sums.second += d;
    });
    weight += part.first;
    bias += part.second;
  }
};

}  // namespace

void line_norm(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& n = *static_cast<const LineNorm*>(parameters);
  const Vec share = set1(1.0f / static_cast<float>(n.size));
  for_each_line(n, first, last, [&](int64_t line, int64_t at) {
    const float* x = operands.input<float>(0) + at;
    float* y = operands.output<float>(0) + at;
    const Vec near = sum_line(n.size, [&](int64_t i) { return load(x + i * kLanes); }) * share;
    const TwoSums sums = two_sums_of_runs(n.size, [&](int64_t i, TwoSums& pair) {
      const Vec d = load(x + i * kLanes) - near;
      pair.first = fma(d, d, pair.first);
      pair.second += d;
    });
    const Vec error = sums.second * share;
    const Vec variance = max(zero(), fnma(error, error, sums.first * share));
    const Vec inverse = set1(1.0f) / sqrt(variance + set1(n.epsilon));
    store(operands.output<float>(1) + line * kLanes, near + error);
    store(operands.output<float>(2) + line * kLanes, inverse);
    for (int64_t p = 0; p < n.per_line; ++p) {
      const Vec factor = n.affine ? inverse * set1(of_line(n, operands.input<float>(1), line)[p]) : inverse;
      const Vec bias = n.affine ? set1(of_line(n, operands.input<float>(2), line)[p]) : zero();
      const Vec shift = fnma(error, factor, bias);
      for (int64_t i = p * n.repeat * kLanes; i < (p + 1) * n.repeat * kLanes; i += kLanes) {
        store(y + i, fma(load(x + i) - near, factor, shift));
      }
    }
  });
}

void line_norm_gradient(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& n = *static_cast<const LineNorm*>(parameters);
  const Vec share = set1(1.0f / static_cast<float>(n.size));
  for_each_line(n, first, last, [&](int64_t line, int64_t at) {
    const float *dy = operands.input<float>(0) + at, *x = operands.input<float>(1) + at;
    float* dx = operands.output<float>(0) + at;
    const Vec mean = load(operands.input<float>(2) + line * kLanes);
    const Vec inverse = load(operands.input<float>(3) + line * kLanes);
    const float* weight = n.affine ? of_line(n, operands.input<float>(4), line) : nullptr;
    const TwoSums sums = weighted_sums(n, dy, x, mean, weight);
    const Vec average = sums.first * share;
    const Vec slope = sums.second * share * inverse * inverse;
    for (int64_t p = 0; p < n.per_line; ++p) {
      const Vec w = n.affine ? set1(weight[p]) : set1(1.0f);
      for (int64_t i = p * n.repeat * kLanes; i < (p + 1) * n.repeat * kLanes; i += kLanes) {
        store(dx + i, inverse * fnma(load(x + i) - mean, slope, fma(load(dy + i), w, -average)));
      }
    }
  });
}

void line_norm_slices(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& n = *static_cast<const LineNorm*>(parameters);
  const int64_t count = n.parameters();
  for (int64_t unit = first; unit < last; ++unit) {
    const int64_t slice = unit / n.units_per_slice;
    const int64_t begin = unit % n.units_per_slice * n.parameters_per_unit;
    const int64_t end = std::min(count, begin + n.parameters_per_unit);
    const int64_t turn0 = slice * n.turns_per_slice, turn1 = std::min(n.turns(), turn0 + n.turns_per_slice);
    float* out = reinterpret_cast<float*>(operands.workspace + n.partials_at) + slice * 2 * count;
    for (int64_t p = begin; p < end; p += 4) {
      ParameterSums sums[4];
      const int64_t width = std::min<int64_t>(4, end - p);
      for (int64_t turn = turn0; turn < turn1; ++turn) {
        for (int64_t i = 0; i < width; ++i) {
          sums[i].add_line(n, operands, turn * n.period + (p + i) / n.per_line, p + i);
        }
      }
      alignas(16) float both[2][4];
      store4(both[0], sum4(sums[0].weight, sums[1].weight, sums[2].weight, sums[3].weight));
      store4(both[1], sum4(sums[0].bias, sums[1].bias, sums[2].bias, sums[3].bias));
      for (int64_t i = 0; i < width; ++i) {
        out[p + i] = both[0][i];
        out[count + p + i] = both[1][i];
      }
    }
  }
}

void line_norm_combine(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& n = *static_cast<const LineNorm*>(parameters);
  const int64_t count = n.parameters();
  const auto* partials = reinterpret_cast<const float*>(operands.workspace + n.partials_at);
  for (int which = 0; which < 2; ++which) {
    const bool adds = operands.run->accumulate && (which == 0 ? n.adds_weight : n.adds_bias);
    float* out = operands.output<float>(1 + which);
    for (int64_t p = first * n.parameters_per_unit; p < std::min(count, last * n.parameters_per_unit); ++p) {
      double sum = 0;
      for (int64_t slice = 0; slice < n.slices; ++slice) {
        sum += static_cast<double>(partials[(slice * 2 + which) * count + p]);
      }
      out[p] = (adds ? out[p] : 0.0f) + static_cast<float>(sum);
    }
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
