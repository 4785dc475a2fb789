// One function for each tile size, chosen from a table.
#include "backend/cpu/kernels/tap_tile.h"

#include <array>
#include <utility>

#include "backend/cpu/kernels/functions.h"
#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

constexpr int kTilePixels = tile_pixels(kLanes);

template <int kChannels, int kPixels>
BRISK_INLINE void start_tile(Vec (&sum)[kChannels][kPixels], const TapStrides& s, const TapCall& call) {
  if (call.start == TileStart::previous) {
    BRISK_UNROLL for (int t = 0; t < kChannels; ++t) {
      BRISK_UNROLL for (int j = 0; j < kPixels; ++j) sum[t][j] = load(call.y + t * s.y_channel + j * s.y_pixel);
    }
    return;
  }
  BRISK_UNROLL for (int t = 0; t < kChannels; ++t) {
    const Vec first = call.start == TileStart::bias ? set1(call.bias[t]) : zero();
    BRISK_UNROLL for (int j = 0; j < kPixels; ++j) sum[t][j] = first;
  }
}

/// The taps of a call as three loops, the longest possible run innermost.
struct Walk {
  int64_t planes, lines, taps;
  int64_t x_plane, x_line, x_tap;
  int64_t w_plane, w_line, w_tap;
};

Walk walk_of(const TapStrides& s, const TapCall& call) {
  Walk walk{s.channels, call.rows, call.columns, s.x_channel, s.x_row, s.x_column, s.w_channel, s.w_row, s.w_column};
  for (int i = 0; i < 2 && walk.taps == 1; ++i) {
    walk.taps = walk.lines, walk.x_tap = walk.x_line, walk.w_tap = walk.w_line;
    walk.lines = walk.planes, walk.x_line = walk.x_plane, walk.w_line = walk.w_plane;
    walk.planes = 1;
  }
  if (walk.lines == 1) {
    walk.lines = walk.planes, walk.x_line = walk.x_plane, walk.w_line = walk.w_plane;
    walk.planes = 1;
  }
  return walk;
}

template <int kChannels, int kPixels>
BRISK_INLINE void add_tap(Vec (&sum)[kChannels][kPixels], const float* x, const float* w, int64_t pixel, int64_t tile) {
  Vec in[kPixels];
  BRISK_UNROLL for (int j = 0; j < kPixels; ++j) in[j] = load(x + j * pixel);
  const float* upper = w + 3 * tile;
  BRISK_UNROLL for (int t = 0; t < kChannels; ++t) {
    const Vec weight = set1(t < 3 ? w[t * tile] : upper[(t - 3) * tile]);
    BRISK_UNROLL for (int j = 0; j < kPixels; ++j) sum[t][j] = fma(weight, in[j], sum[t][j]);
  }
}

/// Adds the products of a walk; kTaps: walk.taps, or 0 for any number.
template <int kTaps, int kChannels, int kPixels>
BRISK_INLINE void add_taps(Vec (&sum)[kChannels][kPixels], const Walk& walk, const TapStrides& s, const TapCall& call) {
  const float* x_plane = call.x;
  const float* w_plane = call.w;
  const int64_t pixel = s.x_pixel, tile = s.w_tile;
  for (int64_t c = 0; c < walk.planes; ++c) {
    const float* x_line = x_plane;
    const float* w_line = w_plane;
    for (int64_t r = 0; r < walk.lines; ++r) {
      const float* x = x_line;
      const float* w = w_line;
      if constexpr (kTaps > 0) {
        BRISK_UNROLL for (int k = 0; k < kTaps; ++k) add_tap(sum, x + k * walk.x_tap, w + k * walk.w_tap, pixel, tile);
      } else {
        for (int64_t k = walk.taps; k > 0; --k) {
          add_tap(sum, x, w, pixel, tile);
          x += walk.x_tap;
          w += walk.w_tap;
        }
      }
      x_line += walk.x_line;
      w_line += walk.w_line;
    }
    x_plane += walk.x_plane;
    w_plane += walk.w_plane;
  }
}

template <int kChannels, int kPixels>
BRISK_NOINLINE void tap_tile(const TapStrides& s, const TapCall& call) {
  Vec sum[kChannels][kPixels];
  start_tile(sum, s, call);
  const Walk walk = walk_of(s, call);
  if (walk.taps == 2) {
    add_taps<2>(sum, walk, s, call);
  } else if (walk.taps == 3) {
    add_taps<3>(sum, walk, s, call);
  } else {
    add_taps<0>(sum, walk, s, call);
  }
  if (call.activation == Activation::relu) {
    BRISK_UNROLL for (int t = 0; t < kChannels; ++t) {
      BRISK_UNROLL for (int j = 0; j < kPixels; ++j) sum[t][j] = relu(sum[t][j]);
    }
  }
  BRISK_UNROLL for (int t = 0; t < kChannels; ++t) {
    BRISK_UNROLL for (int j = 0; j < kPixels; ++j) store(call.y + t * s.y_channel + j * s.y_pixel, sum[t][j]);
  }
}

template <size_t... kIndex>
constexpr std::array<TapTile, sizeof...(kIndex)> all_tiles(std::index_sequence<kIndex...>) {
  return {&tap_tile<kIndex / kTilePixels + 1, kIndex % kTilePixels + 1>...};
}
constexpr auto kTiles = all_tiles(std::make_index_sequence<kTileChannels * kTilePixels>());

template <Vec (*function)(Vec)>
void apply(const TapStrides& s, float* y, int channels, int pixels) {
  for (int t = 0; t < channels; ++t) {
    for (int j = 0; j < pixels; ++j) {
      float* at = y + t * s.y_channel + j * s.y_pixel;
      store(at, function(load(at)));
    }
  }
}

}  // namespace

TapTile find_tap_tile(int channels, int pixels) {
  return kTiles[static_cast<size_t>((channels - 1) * kTilePixels + pixels - 1)];
}

void activate_tile(const TapStrides& s, float* y, int channels, int pixels, Activation activation) {
  switch (activation) {
    case Activation::none:
      return;
    case Activation::relu:
      return apply<relu>(s, y, channels, pixels);
    case Activation::tanh:
      return apply<tanh>(s, y, channels, pixels);
    case Activation::sigmoid:
      return apply<sigmoid>(s, y, channels, pixels);
    case Activation::silu:
      return apply<silu>(s, y, channels, pixels);
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
