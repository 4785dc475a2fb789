// Sums per channel (the gradient of a bias), and a bias added.
#include <algorithm>

#include "backend/cpu/kernels/linear.h"
#include "backend/cpu/kernels/range.h"
#include "backend/cpu/kernels/sums.h"
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

/// Sum of a channel over some images, a lane a sample. Runs of a few hundred vectors are summed apart.
BRISK_INLINE Vec sum_images(const ChannelSum& p, const float* x, int64_t channel, Range images) {
  constexpr int64_t kRun = 256;
  const int64_t images_per_run = std::max<int64_t>(1, kRun / p.inner);
  RunningSum total;
  for (int64_t first = images.first; first < images.last; first += images_per_run) {
    Vec run = zero();
    for (int64_t i = first; i < std::min(images.last, first + images_per_run); ++i) {
      const Mask mask = first_lanes(valid_count(p.samples, p.images_per_block, i));
      const float* from = x + (i * p.channels + channel) * p.inner * kLanes;
      for (int64_t at = 0; at < p.inner; at += kRun) {
        run += sum_run(from + at * kLanes, std::min(kRun, p.inner - at), mask);
        if (p.inner <= kRun) continue;
        total.add(run);
        run = zero();
      }
    }
    total.add(run);
  }
  return total.sum;
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
      put(out + slice * p.channels + c, sum(sum_images(p, operands.input<float>(0), c, images)), add);
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
