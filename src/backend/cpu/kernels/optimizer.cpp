// Formulas: PyTorch's SGD, Adam (Kingma and Ba, 2015) and AdamW (Loshchilov and Hutter, 2019).
#include "backend/cpu/kernels/optimizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/kernels/sums.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

template <class F>
BRISK_INLINE void for_each_stretch(const Walk& walk, int64_t unit, F f) {
  const auto at = static_cast<size_t>(unit);
  for (int32_t i = walk.unit_begin[at]; i < walk.unit_begin[at + 1]; ++i) f(walk.stretches[static_cast<size_t>(i)]);
}

/// PyTorch's clip_grad_norm_ adds it to the norm that it divides by.
constexpr double kClipEpsilon = 1e-6;

/// What squares in float must add up to, so that those that underflow do not count.
constexpr double kLeastSquares = 1e-27;

/// Sum of f over a stretch, in float.
template <class F>
BRISK_INLINE double sum_over(const float* g, int64_t count, F f) {
  const int64_t whole = count / kLanes;
  Vec total = sum_of(whole, [&](int64_t i) { return f(load(g + i * kLanes)); });
  if (whole * kLanes < count) total += f(load_first(g + whole * kLanes, count - whole * kLanes));
  return sum_double(total);
}

struct Squares {
  double sum = 0;
  double nonfinite = 0;
};

/// In double, without the elements that are not finite.
Squares sum_finite_squares(const float* g, int64_t count) {
  Squares squares;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isfinite(g[i])) {
      squares.sum += static_cast<double>(g[i]) * static_cast<double>(g[i]);
    } else {
      squares.nonfinite += 1;
    }
  }
  return squares;
}

/// Squares in float; in double where those leave the range in which they are exact enough.
Squares sum_squares(const float* g, int64_t count) {
  const double sum = sum_over(g, count, [](Vec v) { return v * v; });
  if (std::isfinite(sum) && sum >= kLeastSquares) return {sum, 0};
  if (sum == 0 && sum_over(g, count, [](Vec v) { return abs(v); }) == 0) return {};
  return sum_finite_squares(g, count);
}

/// Calls f(first element, mask of the vector) over a stretch.
template <class F>
BRISK_INLINE void for_each_vector(const Stretch& s, F f) {
  int64_t i = s.first;
  const int64_t end = s.first + s.count;
  const Mask all = first_lanes(kLanes);
  for (; i + kLanes <= end; i += kLanes) f(i, all, [](const float* p, Mask) { return load(p); });
  if (i < end) f(i, first_lanes(end - i), [](const float* p, Mask mask) { return load(p, mask); });
}

/// True when the update must move nothing.
bool skips(const Operands& operands, int stats) {
  return operands.run->status->set() || operands.input<float>(stats)[1] != 0;
}

/// A skipped walk: what is not updated in place is copied.
void copy_stretch(const Stretch& s, const float* from, float* to) {
  if (from != to) std::memcpy(to + s.first, from + s.first, static_cast<size_t>(s.count) * sizeof(float));
}

void skip(const Walk& walk, const Operands& operands, int scalars, int memories, int64_t first, int64_t last) {
  for (int64_t unit = first; unit < last; ++unit) {
    for_each_stretch(walk, unit, [&](const Stretch& s) {
      const int in = scalars + s.parameter * (2 + memories);
      copy_stretch(s, operands.input<float>(in), operands.output<float>(s.parameter));
      for (int m = 0; m < memories; ++m) {
        copy_stretch(s, operands.input<float>(in + 2 + m),
                     operands.output<float>((1 + m) * walk.parameters + s.parameter));
      }
    });
  }
}

}  // namespace

void gradient_squares(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& walk = *static_cast<const Walk*>(parameters);
  auto* partials = reinterpret_cast<double*>(operands.workspace + walk.partials_at);
  const int in = walk.scaled ? 2 : 1;
  for (int64_t unit = first; unit < last; ++unit) {
    Squares total;
    for_each_stretch(walk, unit, [&](const Stretch& s) {
      const Squares squares = sum_squares(operands.input<float>(in + s.parameter) + s.first, s.count);
      total.sum += squares.sum;
      total.nonfinite += squares.nonfinite;
    });
    partials[2 * unit] = total.sum;
    partials[2 * unit + 1] = total.nonfinite;
  }
}

void gradient_stats(const void* parameters, const Operands& operands, int64_t, int64_t) {
  const auto& walk = *static_cast<const Walk*>(parameters);
  const auto* partials = reinterpret_cast<const double*>(operands.workspace + walk.partials_at);
  const size_t units = walk.unit_begin.size() - 1;
  Squares total;
  size_t bad = units;
  for (size_t unit = 0; unit < units; ++unit) {
    total.sum += partials[2 * unit];
    total.nonfinite += partials[2 * unit + 1];
    if (partials[2 * unit + 1] > 0 && bad == units) bad = unit;
  }
  const int in = walk.scaled ? 2 : 1;
  const double scale = walk.scaled ? static_cast<double>(operands.input<float>(1)[0]) : 1;
  const double ratio = std::fabs(static_cast<double>(operands.input<float>(0)[0])) / scale;
  const double norm = ratio * std::sqrt(total.sum), limit = static_cast<double>(walk.clip_norm);
  float* out = operands.output<float>(0);
  out[0] = static_cast<float>(norm);
  out[1] = static_cast<float>(total.nonfinite);
  out[2] = static_cast<float>((limit > 0 && norm > limit ? limit / (norm + kClipEpsilon) : 1) / scale);
  out[3] = -1;
  if (bad == units) return;
  for_each_stretch(walk, static_cast<int64_t>(bad), [&](const Stretch& s) {
    if (out[3] >= 0 || sum_finite_squares(operands.input<float>(in + s.parameter) + s.first, s.count).nonfinite == 0)
      return;
    out[3] = static_cast<float>(s.parameter);
  });
  // With a loss scale this is no error: the update is skipped, and the scale will be another one.
  int32_t none = Status::none;
  Status& status = *operands.run->status;
  if (walk.scaled || !status.kind.compare_exchange_strong(none, Status::nonfinite_gradient)) return;
  status.node = operands.node;
  status.sample = walk.parameter_slots[static_cast<size_t>(out[3])];
}

void commit_staged(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  if (skips(operands, 0)) return;
  const auto& walk = *static_cast<const Walk*>(parameters);
  for (int64_t unit = first; unit < last; ++unit)
    for_each_stretch(walk, unit, [&](const Stretch& s) {
      copy_stretch(s, operands.input<float>(1 + s.parameter), operands.output<float>(s.parameter));
    });
}

void scale_update(const void* parameters, const Operands& operands, int64_t, int64_t) {
  const auto& rule = *static_cast<const ScaleRule*>(parameters);
  float scale = operands.input<float>(1)[0];
  enum { updates, good, skips_in_row, skipped, count };
  int64_t counters[count];
  std::memcpy(counters, operands.in[2], sizeof counters);
  if (operands.input<float>(0)[1] != 0) {
    ++counters[skips_in_row];
    ++counters[skipped];
    counters[good] = 0;
    if (rule.scaled) scale = std::max(scale * rule.backoff, rule.minimum);
  } else {
    ++counters[updates];
    counters[skips_in_row] = 0;
    if (++counters[good] == rule.interval) {
      counters[good] = 0;
      if (rule.scaled) scale = std::min(scale * rule.growth, rule.maximum);
    }
  }
  const bool counts = !operands.run->status->set();
  operands.output<float>(0)[0] = counts ? scale : operands.input<float>(1)[0];
  std::memcpy(operands.out[1], counts ? counters : operands.in[2], sizeof counters);
}

void sgd_walk(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& walk = *static_cast<const Walk*>(parameters);
  const int memories = walk.momentum_used ? 1 : 0;
  if (skips(operands, 3)) return skip(walk, operands, 4, memories, first, last);
  const Vec ratio = set1(operands.input<float>(1)[0] * operands.input<float>(3)[2]);
  const bool begins = operands.input<float>(2)[0] != 0;
  const Vec momentum = set1(walk.momentum), undamped = set1(walk.undamped);
  for (int64_t unit = first; unit < last; ++unit) {
    for_each_stretch(walk, unit, [&](const Stretch& s) {
      const int in = 4 + s.parameter * (2 + memories);
      const auto k = static_cast<size_t>(s.parameter);
      const Vec decay = set1(walk.weight_decay[k]);
      const Vec rate = set1(operands.input<float>(0)[0] * walk.rate_scale[k]);
      const float *w = operands.input<float>(in), *g = operands.input<float>(in + 1);
      float* out = operands.output<float>(s.parameter);
      const float* buffer = memories > 0 ? operands.input<float>(in + 2) : nullptr;
      float* buffer_out = memories > 0 ? operands.output<float>(walk.parameters + s.parameter) : nullptr;
      for_each_vector(s, [&](int64_t i, Mask mask, auto get) {
        const Vec weight = get(w + i, mask);
        Vec step = fma(decay, weight, ratio * get(g + i, mask));
        if (buffer != nullptr) {
          const Vec moved = begins ? step : fma(momentum, get(buffer + i, mask), undamped * step);
          store(buffer_out + i, moved, mask);
          step = walk.nesterov ? fma(momentum, moved, step) : moved;
        }
        store(out + i, fnma(rate, step, weight), mask);
      });
    });
  }
}

void adam_walk(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& walk = *static_cast<const Walk*>(parameters);
  if (skips(operands, 4)) return skip(walk, operands, 5, 2, first, last);
  const Vec ratio = set1(operands.input<float>(1)[0] * operands.input<float>(4)[2]);
  const Vec beta1 = set1(walk.beta1), beta2 = set1(walk.beta2), rest1 = set1(walk.rest1), rest2 = set1(walk.rest2);
  const Vec epsilon = set1(walk.epsilon);
  const auto bias1 = static_cast<double>(operands.input<float>(2)[0]);
  const auto bias2 = static_cast<double>(operands.input<float>(3)[0]);
  const Vec correction = set1(static_cast<float>(1 / std::sqrt(bias2)));
  for (int64_t unit = first; unit < last; ++unit) {
    for_each_stretch(walk, unit, [&](const Stretch& s) {
      const int in = 5 + s.parameter * 4;
      const auto k = static_cast<size_t>(s.parameter);
      const double rate = static_cast<double>(operands.input<float>(0)[0]) * static_cast<double>(walk.rate_scale[k]);
      const double decay = static_cast<double>(walk.weight_decay[k]);
      const Vec coupled = set1(walk.decoupled ? 0.0f : walk.weight_decay[k]);
      const Vec shrink = set1(walk.decoupled ? static_cast<float>(rate * decay) : 0.0f);
      const Vec step = set1(static_cast<float>(rate / bias1));
      const float *w = operands.input<float>(in), *g = operands.input<float>(in + 1);
      const float *m = operands.input<float>(in + 2), *v = operands.input<float>(in + 3);
      float* w_out = operands.output<float>(s.parameter);
      float* m_out = operands.output<float>(walk.parameters + s.parameter);
      float* v_out = operands.output<float>(2 * walk.parameters + s.parameter);
      for_each_vector(s, [&](int64_t i, Mask mask, auto get) {
        Vec weight = get(w + i, mask);
        const Vec gradient = fma(coupled, weight, ratio * get(g + i, mask));
        weight = fnma(shrink, weight, weight);
        const Vec moment = fma(beta1, get(m + i, mask), rest1 * gradient);
        const Vec square = fma(beta2, get(v + i, mask), rest2 * gradient * gradient);
        store(m_out + i, moment, mask);
        store(v_out + i, square, mask);
        store(w_out + i, fnma(step, moment / fma(sqrt(square), correction, epsilon), weight), mask);
      });
    });
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
