// Batch normalization. Unused lanes of the last block never enter a sum.
#include "backend/cpu/kernels/norm.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "backend/cpu/kernels/functions.h"
#include "backend/cpu/kernels/sums.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

/// Contiguous vectors of one channel.
struct Span {
  int64_t at;  ///< float offset
  int64_t vectors;
  int64_t samples;  ///< valid lanes
};

/// Calls f(span) for the spans of one slice of one channel, in their order.
template <class F>
BRISK_INLINE void for_each_span(const ChannelSlices& c, int64_t slice, int64_t channel, F f) {
  const int64_t segment = slice % c.segments;
  const int64_t first = slice / c.segments * c.lines_per_slice;
  const int64_t last = std::min(c.lines, first + c.lines_per_slice);
  const int64_t skipped = segment * c.per_segment;
  const int64_t vectors = std::min(c.per_segment, c.vectors - skipped);
  for (int64_t line = first; line < last; ++line) {
    const int64_t samples = std::min<int64_t>(kLanes, c.samples - line / c.rows * kLanes);
    f(Span{((line * c.channels + channel) * c.vectors + skipped) * kLanes, vectors, samples});
  }
}

/// Calls f(slice, channel) for the units [first, last).
template <class F>
BRISK_INLINE void for_each_channel(const ChannelSlices& c, int64_t first, int64_t last, F f) {
  for (int64_t unit = first; unit < last; ++unit) {
    const int64_t slice = unit / c.units_per_slice;
    const int64_t begin = unit % c.units_per_slice * c.channels_per_unit;
    for (int64_t channel = begin; channel < std::min(c.channels, begin + c.channels_per_unit); ++channel) {
      f(slice, channel);
    }
  }
}

/// Calls f(channel) for the units [first, last) of a phase over channels alone.
template <class F>
void for_each_combined(const BatchNorm& norm, int64_t first, int64_t last, F f) {
  const int64_t end = std::min(norm.cut.channels, last * norm.channels_per_combine);
  for (int64_t channel = first * norm.channels_per_combine; channel < end; ++channel) f(channel);
}

/// Sum over one slice of f(float offset): a vector sum over each span, the spans one after another.
template <class F>
BRISK_INLINE Vec sum_slice(const ChannelSlices& c, int64_t slice, int64_t channel, F f) {
  Vec total = zero();
  for_each_span(c, slice, channel, [&](const Span& span) {
    const Vec part = sum_of(span.vectors, [&](int64_t i) { return f(span.at + i * kLanes); });
    total += span.samples == kLanes ? part : keep(first_lanes(span.samples), part);
  });
  return total;
}

/// Valid elements of a channel in one slice.
BRISK_INLINE double count_slice(const ChannelSlices& c, int64_t slice) {
  const int64_t first = slice / c.segments * c.lines_per_slice;
  const int64_t last = std::min(c.lines, first + c.lines_per_slice);
  const int64_t vectors = std::min(c.per_segment, c.vectors - slice % c.segments * c.per_segment);
  const int64_t lanes_short = c.lines / c.rows * kLanes - c.samples;  // in each line of the last block
  const int64_t short_lines = std::max<int64_t>(0, last - std::max(first, c.lines - c.rows));
  return static_cast<double>(vectors * ((last - first) * kLanes - short_lines * lanes_short));
}

double* partials(const BatchNorm& norm, const Operands& operands, int64_t channel, int64_t slice) {
  return reinterpret_cast<double*>(operands.workspace + norm.partials_at) + (channel * norm.cut.slices + slice) * 2;
}

float* coefficients(const BatchNorm& norm, const Operands& operands, int64_t which) {
  return reinterpret_cast<float*>(operands.workspace + norm.coefficients_at) + which * norm.cut.channels;
}

template <Activation kActivation>
BRISK_INLINE Vec activate(Vec a) {
  if constexpr (kActivation == Activation::relu) return relu(a);
  if constexpr (kActivation == Activation::tanh) return tanh(a);
  if constexpr (kActivation == Activation::sigmoid) return sigmoid(a);
  if constexpr (kActivation == Activation::silu) return silu(a);
  return a;
}

/// The gradient before the activation, from the one after it and z, what the activation was applied to.
template <Activation kActivation>
BRISK_INLINE Vec before(Vec dy, Vec z) {
  if constexpr (kActivation == Activation::relu) return relu_gradient(dy, z);
  if constexpr (kActivation == Activation::silu) return dy * silu_gradient(z);
  return dy;
}

/// Calls body with the activation of a gradient as a constant.
template <class Body>
BRISK_INLINE void with_gradient(Activation activation, const Body& body) {
  if (activation == Activation::relu) return body(std::integral_constant<Activation, Activation::relu>());
  if (activation == Activation::silu) return body(std::integral_constant<Activation, Activation::silu>());
  body(std::integral_constant<Activation, Activation::none>());
}

/// y = activation((x - mean) * factor + beta + residual), where factor(channel) is gamma / deviation.
template <Activation kActivation, class Mean, class Factor>
void apply_activated(const BatchNorm& norm, const Operands& operands, int64_t first, int64_t last, Mean mean_of,
                     Factor factor_of) {
  const auto* x = operands.input<float>(0);
  const auto* residual = norm.residual ? operands.input<float>(5) : nullptr;
  auto* y = operands.output<float>(0);
  for_each_channel(norm.cut, first, last, [&](int64_t slice, int64_t channel) {
    const Vec mean = set1(mean_of(channel)), factor = set1(factor_of(channel));
    const Vec beta = set1(operands.input<float>(2)[channel]);
    for_each_span(norm.cut, slice, channel, [&](const Span& span) {
      const int64_t end = span.at + span.vectors * kLanes;
      if (residual == nullptr) {
        for (int64_t i = span.at; i < end; i += kLanes) {
          store(y + i, activate<kActivation>(fma(load(x + i) - mean, factor, beta)));
        }
        return;
      }
      for (int64_t i = span.at; i < end; i += kLanes) {
        store(y + i, activate<kActivation>(fma(load(x + i) - mean, factor, beta) + load(residual + i)));
      }
    });
  });
}

template <class Mean, class Factor>
void apply(const BatchNorm& norm, const Operands& operands, int64_t first, int64_t last, Mean mean, Factor factor) {
  switch (norm.activation) {
    case Activation::none:
      return apply_activated<Activation::none>(norm, operands, first, last, mean, factor);
    case Activation::relu:
      return apply_activated<Activation::relu>(norm, operands, first, last, mean, factor);
    case Activation::tanh:
      return apply_activated<Activation::tanh>(norm, operands, first, last, mean, factor);
    case Activation::sigmoid:
      return apply_activated<Activation::sigmoid>(norm, operands, first, last, mean, factor);
    case Activation::silu:
      return apply_activated<Activation::silu>(norm, operands, first, last, mean, factor);
  }
}

/// What the forward pass normalised a channel to, with its bits: input 5 of the gradient is beta where an activation
/// followed.
struct Normalised {
  Vec mean, factor, beta;
  Normalised(const BatchNorm& norm, const Operands& operands, int64_t channel)
      : mean(set1(operands.input<float>(3)[channel])),
        factor(set1(operands.input<float>(2)[channel] * operands.input<float>(4)[channel])),
        beta(norm.activation == Activation::none ? zero() : set1(operands.input<float>(5)[channel])) {}
  BRISK_INLINE Vec of(Vec deviation) const { return fma(deviation, factor, beta); }
};

void put_gradient(float* to, double value, bool adds) { *to = (adds ? *to : 0.0f) + static_cast<float>(value); }

}  // namespace

void batch_norm_slices(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& norm = *static_cast<const BatchNorm*>(parameters);
  const auto* x = operands.input<float>(0);
  for_each_channel(norm.cut, first, last, [&](int64_t slice, int64_t channel) {
    const double count = count_slice(norm.cut, slice);
    const Vec sum = sum_slice(norm.cut, slice, channel, [&](int64_t at) { return load(x + at); });
    const auto near = static_cast<float>(sum_double(sum) / count);
    const Vec mean = set1(near);
    // The deviations' own sum repairs what the rounding of the mean costs.
    Vec squares = zero(), deviations = zero();
    for_each_span(norm.cut, slice, channel, [&](const Span& span) {
      const TwoSums part = two_sums_of(span.vectors, [&](int64_t i, TwoSums& sums) {
        const Vec d = load(x + span.at + i * kLanes) - mean;
        sums.first = fma(d, d, sums.first);
        sums.second += d;
      });
      const Mask valid = first_lanes(span.samples);
      squares += keep(valid, part.first);
      deviations += keep(valid, part.second);
    });
    const double error = sum_double(deviations);
    double* out = partials(norm, operands, channel, slice);
    out[0] = static_cast<double>(near) + error / count;
    out[1] = sum_double(squares) - error * error / count;
  });
}

void batch_norm_combine(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& norm = *static_cast<const BatchNorm*>(parameters);
  for_each_combined(norm, first, last, [&](int64_t channel) {
    double count = 0, mean = 0, squares = 0;
    for (int64_t slice = 0; slice < norm.cut.slices; ++slice) {
      const double* part = partials(norm, operands, channel, slice);
      const double more = count_slice(norm.cut, slice);
      const double delta = part[0] - mean;
      mean += delta * more / (count + more);
      squares += part[1] + delta * delta * count * more / (count + more);
      count += more;
    }
    operands.output<float>(1)[channel] = static_cast<float>(mean);
    operands.output<float>(2)[channel] = static_cast<float>(1 / std::sqrt(squares / count + norm.epsilon));
    operands.output<float>(3)[channel] = static_cast<float>(squares / std::max(count - 1, 1.0));
  });
}

void batch_norm_apply(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& norm = *static_cast<const BatchNorm*>(parameters);
  const auto* gamma = operands.input<float>(1);
  const float *mean = operands.output<float>(1), *inv_std = operands.output<float>(2);
  apply(
      norm, operands, first, last, [=](int64_t channel) { return mean[channel]; },
      [=](int64_t channel) { return gamma[channel] * inv_std[channel]; });
}

void batch_norm_prepare(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& norm = *static_cast<const BatchNorm*>(parameters);
  float* factor = coefficients(norm, operands, 0);
  for_each_combined(norm, first, last, [&](int64_t channel) {
    const double variance = static_cast<double>(operands.input<float>(4)[channel]);
    const double gamma = static_cast<double>(operands.input<float>(1)[channel]);
    factor[channel] = static_cast<float>(gamma / std::sqrt(variance + norm.epsilon));
  });
}

void batch_norm_apply_given(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& norm = *static_cast<const BatchNorm*>(parameters);
  const float *mean = operands.input<float>(3), *factor = coefficients(norm, operands, 0);
  apply(
      norm, operands, first, last, [=](int64_t channel) { return mean[channel]; },
      [=](int64_t channel) { return factor[channel]; });
}

void batch_norm_gradient_slices(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& norm = *static_cast<const BatchNorm*>(parameters);
  with_gradient(norm.activation, [&](auto activation) {
    const float *dy = operands.input<float>(0), *x = operands.input<float>(1);
    for_each_channel(norm.cut, first, last, [&](int64_t slice, int64_t channel) {
      const Normalised z(norm, operands, channel);
      Vec sums = zero(), products = zero();
      for_each_span(norm.cut, slice, channel, [&](const Span& span) {
        const TwoSums part = two_sums_of(span.vectors, [&](int64_t i, TwoSums& pair) {
          const Vec deviation = load(x + span.at + i * kLanes) - z.mean;
          const Vec d = before<activation()>(load(dy + span.at + i * kLanes), z.of(deviation));
          pair.first += d;
          pair.second = fma(d, deviation, pair.second);
        });
        const Mask valid = first_lanes(span.samples);
        sums += keep(valid, part.first);
        products += keep(valid, part.second);
      });
      double* out = partials(norm, operands, channel, slice);
      out[0] = sum_double(sums);
      out[1] = sum_double(products);
    });
  });
}

void batch_norm_gradient_combine(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& norm = *static_cast<const BatchNorm*>(parameters);
  const bool accumulate = operands.run->accumulate;
  for_each_combined(norm, first, last, [&](int64_t channel) {
    double sum = 0, product = 0;
    for (int64_t slice = 0; slice < norm.cut.slices; ++slice) {
      const double* part = partials(norm, operands, channel, slice);
      sum += part[0];
      product += part[1];
    }
    const auto inv_std = static_cast<double>(operands.input<float>(4)[channel]);
    put_gradient(operands.output<float>(1) + channel, product * inv_std, norm.adds_gamma && accumulate);
    put_gradient(operands.output<float>(2) + channel, sum, norm.adds_beta && accumulate);
    coefficients(norm, operands, 0)[channel] = static_cast<float>(sum / norm.count);
    coefficients(norm, operands, 1)[channel] = static_cast<float>(product * inv_std * inv_std / norm.count);
  });
}

void batch_norm_gradient_apply(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& norm = *static_cast<const BatchNorm*>(parameters);
  with_gradient(norm.activation, [&](auto activation) {
    const float *dy = operands.input<float>(0), *x = operands.input<float>(1);
    auto* dx = operands.output<float>(0);
    for_each_channel(norm.cut, first, last, [&](int64_t slice, int64_t channel) {
      const Normalised z(norm, operands, channel);
      const Vec average = set1(coefficients(norm, operands, 0)[channel]);
      const Vec slope = set1(coefficients(norm, operands, 1)[channel]);
      for_each_span(norm.cut, slice, channel, [&](const Span& span) {
        for (int64_t i = span.at; i < span.at + span.vectors * kLanes; i += kLanes) {
          const Vec deviation = load(x + i) - z.mean;
          const Vec d = before<activation()>(load(dy + i), z.of(deviation));
          store(dx + i, z.factor * fnma(deviation, slope, d - average));
        }
      });
    });
  });
}

void batch_norm_commit(const void* parameters, const Operands& operands, int64_t, int64_t) {
  const auto& norm = *static_cast<const BatchNorm*>(parameters);
  const bool skipped = operands.run->status->set();
  const float *mean = operands.input<float>(0), *variance = operands.input<float>(1);
  const int at = norm.staged && (norm.chained || operands.run->accumulate) ? 4 : 2;
  for (int which = 0; which < 2; ++which) {
    const float *batch = operands.input<float>(which), *before = operands.input<float>(at + which);
    auto* running = operands.output<float>(which);
    for (int64_t c = 0; c < norm.cut.channels; ++c) {
      // A batch that is not finite would stay in the running statistics for ever, though its update is skipped.
      const bool counts = !skipped && std::isfinite(mean[c]) && std::isfinite(variance[c]);
      running[c] = counts ? (1 - norm.momentum) * before[c] + norm.momentum * batch[c] : before[c];
    }
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
