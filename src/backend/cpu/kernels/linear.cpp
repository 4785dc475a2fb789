// Linear layers: forward and input gradient on the tap tile, weight gradient on a tile of its own; sums per channel.
#include "backend/cpu/kernels/linear.h"

#include <array>
#include <utility>

#include "backend/cpu/kernels/range.h"
#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

constexpr int kTileVectors = tile_pixels(kLanes);  ///< of features, in a tile of a weight gradient
constexpr int kTileFloats = kTileVectors * kLanes;

/// Samples that a weight gradient walks over: images [images.first, images.last), their turned features in order.
struct Samples {
  Range images;
  int64_t samples = 0, images_per_block = 1;
  int64_t dy_image = 0;
};

/// [outputs][vectors] of the weight gradient; `tail` masks the last vector.
struct GradientTarget {
  float* out = nullptr;
  int64_t pitch = 0;
  Mask tail = {};
  bool add = false;
};
using GradientTile = void (*)(const Samples& s, const float* dy, const float* turned, const GradientTarget& target);

template <int kOutputs, int kVectors>
BRISK_NOINLINE void gradient_tile(const Samples& s, const float* dy, const float* turned,
                                  const GradientTarget& target) {
  const Mask all = first_lanes(kLanes);
  Vec sum[kOutputs][kVectors];
  BRISK_UNROLL for (int t = 0; t < kOutputs; ++t) {
    BRISK_UNROLL for (int v = 0; v < kVectors; ++v) {
      const float* from = target.out + t * target.pitch + v * kLanes;
      sum[t][v] = target.add ? load(from, v + 1 < kVectors ? all : target.tail) : zero();
    }
  }
  for (int64_t i = s.images.first; i < s.images.last; ++i) {
    const float* g = dy + i * s.dy_image;
    for (int64_t n = valid_count(s.samples, s.images_per_block, i); n > 0; --n, ++g, turned += kTileFloats) {
      Vec in[kVectors];
      BRISK_UNROLL for (int v = 0; v < kVectors; ++v) in[v] = load(turned + v * kLanes);
      BRISK_UNROLL for (int t = 0; t < kOutputs; ++t) {
        const Vec gradient = set1(g[t * kLanes]);
        BRISK_UNROLL for (int v = 0; v < kVectors; ++v) sum[t][v] = fma(gradient, in[v], sum[t][v]);
      }
    }
  }
  BRISK_UNROLL for (int t = 0; t < kOutputs; ++t) {
    BRISK_UNROLL for (int v = 0; v < kVectors; ++v) {
      float* to = target.out + t * target.pitch + v * kLanes;
      if (v + 1 < kVectors) {
        store(to, sum[t][v]);
      } else {
        store(to, sum[t][v], target.tail);
      }
    }
  }
}

template <size_t... kIndex>
constexpr std::array<GradientTile, sizeof...(kIndex)> all_tiles(std::index_sequence<kIndex...>) {
  return {&gradient_tile<kIndex / kTileVectors + 1, kIndex % kTileVectors + 1>...};
}
constexpr auto kTiles = all_tiles(std::make_index_sequence<kTileChannels * kTileVectors>());

/// Valid samples in the images before `image`.
int64_t samples_before(const TurnFeatures& t, int64_t image) {
  const int64_t block = image / t.images_per_block, row = image % t.images_per_block;
  return block * kLanes * t.images_per_block + row * valid_count(t.samples, t.images_per_block, image);
}

}  // namespace

void linear_taps(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const LinearTaps*>(parameters);
  const TapStrides& s = p.strides;
  const float* bias = p.bias ? operands.input<float>(2) : nullptr;
  for (int64_t unit = first; unit < last; ++unit) {
    const Range images = piece(p.images, p.image_tiles, unit / p.output_parts);
    const Range tiles = piece(p.output_tiles, p.output_parts, unit % p.output_parts);
    const float* x = operands.input<float>(0) + images.first * s.x_pixel;
    float* y = operands.output<float>(0) + images.first * s.y_pixel;
    for (int64_t c = 0; c < p.chunks; ++c) {
      const Range inputs = piece(p.inputs, p.chunks, c);
      const bool ends = c + 1 == p.chunks;
      TapCall call;
      call.columns = inputs.size();
      call.x = x + inputs.first * s.x_column;
      call.start = c > 0 ? TileStart::previous : p.bias ? TileStart::bias : TileStart::zeros;
      call.activation = ends && p.activation == Activation::relu ? Activation::relu : Activation::none;
      for (int64_t t = tiles.first; t < tiles.last; ++t) {
        const Range outputs = piece(p.outputs, p.output_tiles, t);
        const int count = static_cast<int>(outputs.size()), pixels = static_cast<int>(images.size());
        call.w = operands.input<float>(1) + inputs.first * s.w_column + outputs.first * s.w_tile;
        call.bias = bias ? bias + outputs.first : nullptr;
        call.y = y + outputs.first * s.y_channel;
        find_tap_tile(count, pixels)(s, call);
        if (ends && call.activation == Activation::none) activate_tile(s, call.y, count, pixels, p.activation);
      }
    }
  }
}

void turn_features(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const TurnFeatures*>(parameters);
  auto* turned = reinterpret_cast<float*>(operands.workspace + p.at);
  for (int64_t unit = first; unit < last; ++unit) {
    const Range vectors = piece(p.vectors, p.tiles, unit);
    float* to = turned + (p.tiled ? unit * p.rows() * p.pitch : vectors.first * kLanes);
    for (int64_t i = 0; i < p.images; ++i) {
      const int64_t count = valid_count(p.samples, p.images_per_block, i);
      const float* image = operands.input<float>(0) + i * p.features * kLanes;
      for (int64_t v = vectors.first; v < vectors.last; ++v) {
        Vec rows[kLanes];
        BRISK_UNROLL for (int k = 0; k < kLanes; ++k) {
          const int64_t feature = v * kLanes + k;
          rows[k] = feature < p.features ? load(image + feature * kLanes) : zero();
        }
        transpose(rows);
        float* at = to + (v - vectors.first) * kLanes;
        BRISK_UNROLL for (int k = 0; k < kLanes; ++k) {
          if (k < count) store(at + k * p.pitch, rows[k]);
        }
      }
      to += count * p.pitch;
    }
  }
}

void linear_weight_gradient(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const LinearWeightGradient*>(parameters);
  const TurnFeatures& t = p.turned;
  for (int64_t unit = first; unit < last; ++unit) {
    const int64_t tile = unit / p.output_parts;
    const Range vectors = piece(t.vectors, t.tiles, tile);
    const Range tiles = piece(p.output_tiles, p.output_parts, unit % p.output_parts);
    const float* turned = reinterpret_cast<const float*>(operands.workspace + t.at) + tile * t.rows() * kTileFloats;
    GradientTarget target{nullptr, t.features, first_lanes(t.features - (vectors.last - 1) * kLanes), false};
    for (int64_t begin = 0; begin < t.images; begin += p.image_chunk) {
      const int64_t end = begin + p.image_chunk < t.images ? begin + p.image_chunk : t.images;
      const Samples samples{{begin, end}, t.samples, t.images_per_block, p.outputs * kLanes};
      const float* from = turned + samples_before(t, begin) * kTileFloats;
      target.add = begin > 0 || (p.accumulates && operands.run->accumulate);
      for (int64_t k = tiles.first; k < tiles.last; ++k) {
        const Range outputs = piece(p.outputs, p.output_tiles, k);
        target.out = operands.output<float>(0) + outputs.first * t.features + vectors.first * kLanes;
        const auto function = kTiles[static_cast<size_t>((outputs.size() - 1) * kTileVectors + vectors.size() - 1)];
        function(samples, operands.input<float>(1) + outputs.first * kLanes, from, target);
      }
    }
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
