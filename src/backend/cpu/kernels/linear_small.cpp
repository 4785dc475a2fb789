// Linear layers on a batch of at most half the lanes: vectors run along the features, samples are scalars.
#include <array>
#include <utility>

#include "backend/cpu/kernels/functions.h"
#include "backend/cpu/kernels/linear.h"
#include "backend/cpu/kernels/range.h"
#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

constexpr int kOutputs = static_cast<int>(kDotOutputs);
constexpr int kSamples = kLanes == 16 ? 4 : 2;  ///< of a tile of dot products
constexpr int kTilePixels = tile_pixels(kLanes);

/// kOutputs rows of weights times the features of `kCount` samples; total[t * kLanes + n]: output t of sample n.
using DotTile = void (*)(const float* const (&w)[kOutputs], const float* x, int64_t pitch, int64_t features,
                         float* total);

template <int kCount>
BRISK_NOINLINE void dot_tile(const float* const (&w)[kOutputs], const float* x, int64_t pitch, int64_t features,
                             float* total) {
  Vec sum[kOutputs][kCount];
  BRISK_UNROLL for (int t = 0; t < kOutputs; ++t) { BRISK_UNROLL for (int n = 0; n < kCount; ++n) sum[t][n] = zero(); }
  const auto add = [&](int64_t i, auto load_weights) __attribute__((always_inline)) {
    Vec in[kCount];
    BRISK_UNROLL for (int n = 0; n < kCount; ++n) in[n] = load(x + n * pitch + i);
    BRISK_UNROLL for (int t = 0; t < kOutputs; ++t) {
      const Vec weight = load_weights(w[t] + i);
      BRISK_UNROLL for (int n = 0; n < kCount; ++n) sum[t][n] = fma(weight, in[n], sum[t][n]);
    }
  };
  int64_t i = 0;
  for (; i + kLanes <= features; i += kLanes) add(i, [](const float* from) { return load(from); });
  const Mask rest = first_lanes(features - i);
  if (i < features) add(i, [rest](const float* from) { return load(from, rest); });
  BRISK_UNROLL for (int n = 0; n < kCount; ++n) {
    float four[kOutputs];
    store4(four, sum4(sum[0][n], sum[1][n], sum[2][n], sum[3][n]));
    BRISK_UNROLL for (int t = 0; t < kOutputs; ++t) total[t * kLanes + n] = four[t];
  }
}

template <size_t... kIndex>
constexpr std::array<DotTile, sizeof...(kIndex)> all_tiles(std::index_sequence<kIndex...>) {
  return {&dot_tile<static_cast<int>(kIndex) + 1>...};
}
constexpr auto kTiles = all_tiles(std::make_index_sequence<kSamples>());

/// Features that fill no vector: the tap tile of a larger batch.
void spread_rest(const LinearSpread& p, const float* dy, const float* w, float* dx) {
  TapStrides s;
  s.x_column = kLanes, s.x_pixel = 0, s.w_column = p.features, s.w_tile = 1;
  s.y_channel = kLanes;
  TapCall call;
  call.columns = p.outputs;
  call.x = dy;
  for (int64_t i = p.vectors * kLanes; i < p.features; i += kTileChannels) {
    const int64_t count = p.features - i < kTileChannels ? p.features - i : kTileChannels;
    call.w = w + i;
    call.y = dx + i * kLanes;
    find_tap_tile(static_cast<int>(count), 1)(s, call);
  }
}

/// `vectors` vectors of features: the weights are what the tile loads, the samples of dy what it repeats.
void spread_tile(const LinearSpread& p, Range vectors, const float* dy, const float* w, float* dx) {
  alignas(64) float rows[kLanes][kTilePixels * kLanes];
  TapStrides s;
  s.x_column = p.features, s.x_pixel = kLanes, s.w_column = kLanes, s.w_tile = 1;
  s.y_channel = kTilePixels * kLanes, s.y_pixel = kLanes;
  TapCall call;
  call.columns = p.outputs;
  call.x = w + vectors.first * kLanes;
  for (int64_t n = 0; n < p.samples; n += kTileChannels) {
    const int64_t count = p.samples - n < kTileChannels ? p.samples - n : kTileChannels;
    call.w = dy + n;
    call.y = rows[n];
    find_tap_tile(static_cast<int>(count), static_cast<int>(vectors.size()))(s, call);
  }
  for (int64_t v = 0; v < vectors.size(); ++v) {
    Vec turned[kLanes];
    BRISK_UNROLL for (int n = 0; n < kLanes; ++n) turned[n] = n < p.samples ? load(rows[n] + v * kLanes) : zero();
    transpose(turned);
    float* to = dx + (vectors.first + v) * kLanes * kLanes;
    BRISK_UNROLL for (int i = 0; i < kLanes; ++i) store(to + i * kLanes, turned[i]);
  }
}

}  // namespace

void linear_dots(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const LinearDots*>(parameters);
  const TurnFeatures& t = p.turned;
  const float* weights = operands.input<float>(1);
  const Range tiles{p.output_tiles * first / p.output_parts, p.output_tiles * last / p.output_parts};
  for (int64_t k = tiles.first; k < tiles.last; ++k) {
    const Range outputs = stretch(p.outputs, kOutputs, k);
    const float* w[kOutputs];
    for (int64_t o = 0; o < kOutputs; ++o)
      w[o] = weights + (o < outputs.size() ? outputs.first + o : outputs.first) * t.features;
    for (int64_t image = 0; image < t.images; ++image) {
      const float* x = reinterpret_cast<const float*>(operands.workspace + t.at) + image * t.samples * t.pitch;
      alignas(64) float total[kOutputs][kLanes] = {};
      for (int64_t n = 0; n < t.samples; n += kSamples) {
        const int64_t count = t.samples - n < kSamples ? t.samples - n : kSamples;
        kTiles[static_cast<size_t>(count - 1)](w, x + n * t.pitch, t.pitch, t.features, total[0] + n);
      }
      float* y = operands.output<float>(0) + (image * p.outputs + outputs.first) * kLanes;
      for (int64_t o = 0; o < outputs.size(); ++o) {
        const Vec bias = p.bias ? set1(operands.input<float>(2)[outputs.first + o]) : zero();
        store(y + o * kLanes, activate(load(total[o]) + bias, p.activation));
      }
    }
  }
}

void linear_spread(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const LinearSpread*>(parameters);
  for (int64_t unit = first; unit < last; ++unit) {
    const int64_t image = unit / p.units_per_image, tile = unit % p.units_per_image;
    const float* dy = operands.input<float>(0) + image * p.outputs * kLanes;
    const float* w = operands.input<float>(1);
    float* dx = operands.output<float>(0) + image * p.features * kLanes;
    if (tile < p.tiles) {
      spread_tile(p, piece(p.vectors, p.tiles, tile), dy, w, dx);
    } else {
      spread_rest(p, dy, w, dx);
    }
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
