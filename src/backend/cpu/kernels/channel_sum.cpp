// Sums per channel (the gradient of a bias), and a bias added.
#include "backend/cpu/kernels/linear.h"
#include "backend/cpu/kernels/range.h"
#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

/// Sum of `count` vectors that follow one another, lanes outside the mask left out.
BRISK_INLINE Vec sum_run(const float* from, int64_t count, Mask mask) {
  constexpr int kChains = 4;
  Vec chain[kChains] = {zero(), zero(), zero(), zero()};
  int64_t i = 0;
  for (; i + kChains <= count; i += kChains) {
    BRISK_UNROLL for (int k = 0; k < kChains; ++k) chain[k] += load_whole(from + (i + k) * kLanes, mask);
  }
  for (; i < count; ++i) chain[0] += load_whole(from + i * kLanes, mask);
  return (chain[0] + chain[2]) + (chain[1] + chain[3]);
}

BRISK_INLINE void put(float* to, float total, bool add) { *to = add ? *to + total : total; }

}  // namespace

void channel_sum(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const ChannelSum*>(parameters);
  const bool whole = p.slices == 1;
  float* out = whole ? operands.output<float>(0) : reinterpret_cast<float*>(operands.workspace + p.partial_at);
  const bool add = whole && p.accumulates && operands.run->accumulate;
  for (int64_t unit = first; unit < last; ++unit) {
    const int64_t slice = unit / p.channel_units;
    const Range images = piece(p.images, p.slices, slice);
    const Range channels = stretch(p.channels, p.channels_per_unit, unit % p.channel_units);
    for (int64_t c = channels.first; c < channels.last; ++c) {
      Vec total = zero();
      for (int64_t i = images.first; i < images.last; ++i) {
        const Mask mask = first_lanes(valid_count(p.samples, p.images_per_block, i));
        total += sum_run(operands.input<float>(0) + (i * p.channels + c) * p.inner * kLanes, p.inner, mask);
      }
      put(out + slice * p.channels + c, sum(total), add);
    }
  }
}

void add_channel_slices(const void* parameters, const Operands& operands, int64_t, int64_t) {
  const auto& p = *static_cast<const ChannelSum*>(parameters);
  auto* partial = reinterpret_cast<float*>(operands.workspace + p.partial_at);
  const bool add = p.accumulates && operands.run->accumulate;
  // A fixed binary tree over the slices, in place.
  for (int64_t apart = 1; apart < p.slices; apart *= 2) {
    for (int64_t s = 0; s + apart < p.slices; s += 2 * apart) {
      for (int64_t c = 0; c < p.channels; ++c) partial[s * p.channels + c] += partial[(s + apart) * p.channels + c];
    }
  }
  for (int64_t c = 0; c < p.channels; ++c) put(operands.output<float>(0) + c, partial[c], add);
}

void bias_add(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const BiasAdd*>(parameters);
  for (int64_t image = first; image < last; ++image) {
    const int64_t start = image * p.channels * p.inner * kLanes;
    const float* x = operands.input<float>(0) + start;
    float* y = operands.output<float>(0) + start;
    for (int64_t c = 0; c < p.channels; ++c) {
      const Vec bias = set1(operands.input<float>(1)[c]);
      for (int64_t i = 0; i < p.inner; ++i, x += kLanes, y += kLanes) store(y, load(x) + bias);
    }
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
