// Three passes a line (maximum, exponentials with their sum, scaling), every lane a line of its own. Without a batch
// each element is spread over the lanes and one lane is kept.
#include "backend/cpu/kernels/softmax.h"

#include <algorithm>

#include "backend/cpu/kernels/math.h"
#include "backend/cpu/kernels/sums.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

template <bool kBatched>
struct Line {
  static constexpr int64_t kWidth = kBatched ? kLanes : 1;
  int64_t base, stride;

  BRISK_INLINE Vec get(const float* x, int64_t k) const {
    if constexpr (kBatched) {
      return load(x + base + k * stride);
    } else {
      return set1(x[base + k * stride]);
    }
  }
  BRISK_INLINE void put(float* y, int64_t k, Vec value) const {
    if constexpr (kBatched) {
      store(y + base + k * stride, value);
    } else {
      store_first(y + base + k * stride, value, 1);
    }
  }
};

template <bool kBatched, class F>
void for_each_line(const SoftmaxShape& s, int64_t first, int64_t last, F f) {
  constexpr int64_t kWidth = Line<kBatched>::kWidth;
  const int64_t lines = s.outer * s.inner;
  for (int64_t unit = first; unit < last; ++unit) {
    const int64_t block = unit / s.units_per_block;
    const int64_t begin = unit % s.units_per_block * s.per_unit;
    for (int64_t i = begin; i < std::min(lines, begin + s.per_unit); ++i) {
      const int64_t at = (block * s.outer + i / s.inner) * s.size * s.inner + i % s.inner;
      f(Line<kBatched>{at * kWidth, s.inner * kWidth});
    }
  }
}

template <bool kBatched>
void forward(const SoftmaxShape& s, const float* x, float* y, int64_t first, int64_t last) {
  for_each_line<kBatched>(s, first, last, [&](const Line<kBatched>& line) {
    Vec top = line.get(x, 0);
    for (int64_t k = 1; k < s.size; ++k) top = max(top, line.get(x, k));
    if (s.logarithm) {
      const Vec total = sum_of(s.size, [&](int64_t k) { return exp(line.get(x, k) - top); });
      const Vec shift = log(total);
      for (int64_t k = 0; k < s.size; ++k) line.put(y, k, (line.get(x, k) - top) - shift);
      return;
    }
    const Vec total = sum_of(s.size, [&](int64_t k) {
      const Vec e = exp(line.get(x, k) - top);
      line.put(y, k, e);
      return e;
    });
    const Vec scale = set1(1.0f) / total;
    for (int64_t k = 0; k < s.size; ++k) line.put(y, k, line.get(y, k) * scale);
  });
}

template <bool kBatched>
void backward(const SoftmaxShape& s, const float* dy, const float* y, float* dx, int64_t first, int64_t last) {
  for_each_line<kBatched>(s, first, last, [&](const Line<kBatched>& line) {
    if (s.logarithm) {
      const Vec total = sum_of(s.size, [&](int64_t k) { return line.get(dy, k); });
      for (int64_t k = 0; k < s.size; ++k) line.put(dx, k, fnma(exp(line.get(y, k)), total, line.get(dy, k)));
      return;
    }
    const Vec dot = sum_of(s.size, [&](int64_t k) { return line.get(dy, k) * line.get(y, k); });
    for (int64_t k = 0; k < s.size; ++k) line.put(dx, k, line.get(y, k) * (line.get(dy, k) - dot));
  });
}

}  // namespace

void softmax(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& s = *static_cast<const SoftmaxShape*>(parameters);
  (s.batched ? forward<true> : forward<false>)(s, operands.input<float>(0), operands.output<float>(0), first, last);
}

void softmax_gradient(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& s = *static_cast<const SoftmaxShape*>(parameters);
  (s.batched ? backward<true> : backward<false>)(s, operands.input<float>(0), operands.input<float>(1),
                                                 operands.output<float>(0), first, last);
}

}  // namespace brisk::backend::cpu::BRISK_ISA
