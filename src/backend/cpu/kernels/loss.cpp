// A vector of rows at a time; the classes are the loop.
#include "backend/cpu/kernels/loss.h"

#include <algorithm>

#include "backend/cpu/kernels/labels.h"
#include "backend/cpu/kernels/math.h"
#include "backend/cpu/kernels/sums.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

/// The labels of one vector of rows, as far as they name a class.
struct Labels {
  alignas(64) int32_t index[kLanes];  ///< -1: ignored, no such class, or no such sample
  alignas(64) float weight[kLanes];   ///< of the label's class, else 0

  Labels(const Classification& c, const int64_t* labels, int64_t samples) {
    for (int i = 0; i < kLanes; ++i) {
      const int64_t label = i < samples ? labels[i] : -1;
      const bool valid = label >= 0 && label < c.classes && label != c.ignored;
      index[i] = valid ? static_cast<int32_t>(label) : -1;
      weight[i] = valid ? (c.weighted ? c.class_weights[static_cast<size_t>(label)] : 1.0f) : 0.0f;
    }
  }
  Mask valid() const { return load_ints(index) > set1_int(-1); }
  /// x at each lane's own class.
  Vec gather(const float* x) const {
    alignas(64) float value[kLanes];
    for (int i = 0; i < kLanes; ++i) value[i] = index[i] < 0 ? 0.0f : x[index[i] * kLanes + i];
    return load(value);
  }
};

/// Calls f(vector of rows, the valid samples in it) for the vectors of units [first, last).
template <class F>
void for_each_vector(const Classification& c, int64_t first, int64_t last, F f) {
  const int64_t vectors = (c.samples + kLanes - 1) / kLanes * c.rows;
  const int64_t end = std::min(vectors, last * c.per_unit);
  for (int64_t v = first * c.per_unit; v < end; ++v) {
    f(v, std::min<int64_t>(kLanes, c.samples - v / c.rows * kLanes));
  }
}

void check(const Classification& c, const Operands& operands) {
  look_at_labels(operands, operands.input<int64_t>(1), c.samples, c.rows, 1,
                 [&](int64_t label) { return label == c.ignored || (label >= 0 && label < c.classes); });
}

/// The loss from log p = (x - top) - shift: the label's class and, when smoothed, all classes.
BRISK_INLINE Vec loss_of(const Classification& c, const Labels& labels, const float* x, Vec top, Vec shift) {
  const Vec weight = load(labels.weight);
  const Vec chosen = keep(weight > zero(), weight * (shift - (labels.gather(x) - top)));
  Vec loss = set1(c.chosen) * chosen;
  if (c.spread > 0) {
    Vec all = zero();
    for (int64_t k = 0; k < c.classes; ++k) {
      const float w = c.class_weights[static_cast<size_t>(k)];
      if (w != 0) all = fma(set1(w), shift - (load(x + k * kLanes) - top), all);
    }
    loss = fma(set1(c.spread), all, loss);
  }
  return keep(labels.valid(), loss);
}

/// Calls f(class, its target in all lanes).
template <class F>
BRISK_INLINE void for_each_target(const Classification& c, const Labels& labels, F f) {
  const Ints index = load_ints(labels.index);
  const Vec chosen = set1(c.chosen) * load(labels.weight);
  for (int64_t k = 0; k < c.classes; ++k) {
    const Vec all = set1(c.spread * c.class_weights[static_cast<size_t>(k)]);
    f(k, all + keep(index == set1_int(static_cast<int32_t>(k)), chosen));
  }
}

}  // namespace

void check_labels(const void* parameters, const Operands& operands, int64_t, int64_t) {
  check(*static_cast<const Classification*>(parameters), operands);
}

void nll(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& c = *static_cast<const Classification*>(parameters);
  if (c.checks) check(c, operands);
  for_each_vector(c, first, last, [&](int64_t v, int64_t samples) {
    const Labels labels(c, operands.input<int64_t>(1) + v * kLanes, samples);
    const float* x = operands.input<float>(0) + v * c.classes * kLanes;
    store(operands.output<float>(0) + v * kLanes, loss_of(c, labels, x, zero(), zero()));
    store(operands.output<float>(1) + v * kLanes, load(labels.weight));
  });
}

void nll_gradient(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& c = *static_cast<const Classification*>(parameters);
  for_each_vector(c, first, last, [&](int64_t v, int64_t samples) {
    const Labels labels(c, operands.input<int64_t>(1) + v * kLanes, samples);
    const Vec dloss = -load(operands.input<float>(0) + v * kLanes);
    float* dx = operands.output<float>(0) + v * c.classes * kLanes;
    const Mask valid = labels.valid();
    for_each_target(c, labels, [&](int64_t k, Vec target) { store(dx + k * kLanes, keep(valid, dloss * target)); });
  });
}

void cross_entropy(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& c = *static_cast<const Classification*>(parameters);
  if (c.checks) check(c, operands);
  for_each_vector(c, first, last, [&](int64_t v, int64_t samples) {
    const Labels labels(c, operands.input<int64_t>(1) + v * kLanes, samples);
    const float* x = operands.input<float>(0) + v * c.classes * kLanes;
    float* p = operands.output<float>(2) + v * c.classes * kLanes;
    Vec top = load(x);
    for (int64_t k = 1; k < c.classes; ++k) top = max(top, load(x + k * kLanes));
    const Vec total = sum_of(c.classes, [&](int64_t k) {
      const Vec e = exp(load(x + k * kLanes) - top);
      store(p + k * kLanes, e);
      return e;
    });
    const Vec shift = log(total);
    const Vec scale = set1(1.0f) / total;
    for (int64_t k = 0; k < c.classes; ++k) store(p + k * kLanes, load(p + k * kLanes) * scale);
    store(operands.output<float>(0) + v * kLanes, loss_of(c, labels, x, top, shift));
    store(operands.output<float>(1) + v * kLanes, load(labels.weight));
  });
}

void cross_entropy_gradient(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& c = *static_cast<const Classification*>(parameters);
  for_each_vector(c, first, last, [&](int64_t v, int64_t samples) {
    const Labels labels(c, operands.input<int64_t>(1) + v * kLanes, samples);
    const Vec dloss = load(operands.input<float>(0) + v * kLanes);
    const float* p = operands.input<float>(2) + v * c.classes * kLanes;
    float* dx = operands.output<float>(0) + v * c.classes * kLanes;
    const Mask valid = labels.valid();
    const Vec all = fma(set1(c.chosen), load(labels.weight), set1(c.spread * c.weight_sum));
    for_each_target(c, labels, [&](int64_t k, Vec target) {
      store(dx + k * kLanes, keep(valid, dloss * fma(all, load(p + k * kLanes), -target)));
    });
  });
}

void accuracy(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& c = *static_cast<const Classification*>(parameters);
  for_each_vector(c, first, last, [&](int64_t v, int64_t samples) {
    const auto* labels = operands.input<int64_t>(1) + v * kLanes;
    const float* x = operands.input<float>(0) + v * c.classes * kLanes;
    Vec top = load(x);
    Mask nan = is_nan(top);
    Ints best = set1_int(0);
    for (int64_t k = 1; k < c.classes; ++k) {
      const Vec value = load(x + k * kLanes);
      const Mask larger = value > top;
      nan = nan | is_nan(value);
      top = select(larger, value, top);
      best = select(larger, set1_int(static_cast<int32_t>(k)), best);
    }
    alignas(64) int32_t found[kLanes];
    store(found, select(nan, set1_int(-1), best));
    for (int i = 0; i < kLanes; ++i) {
      const bool counts = i < samples && labels[i] != c.ignored;
      operands.output<float>(0)[v * kLanes + i] = counts && found[i] >= 0 && labels[i] == found[i] ? 1.0f : 0.0f;
      operands.output<float>(1)[v * kLanes + i] = counts ? 1.0f : 0.0f;
    }
  });
}

}  // namespace brisk::backend::cpu::BRISK_ISA
