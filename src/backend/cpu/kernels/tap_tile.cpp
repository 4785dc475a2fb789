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

template <int kChannels, int kPixels>
BRISK_NOINLINE void tap_tile(const TapStrides& s, const TapCall& call) {
  Vec sum[kChannels][kPixels];
  start_tile(sum, s, call);
  // The longest run of taps innermost.
  int64_t channels = s.channels, rows = call.rows, columns = call.columns;
  int64_t x_column = s.x_column, w_column = s.w_column;
  if (columns == 1) {
    columns = rows, x_column = s.x_row, w_column = s.w_row;
    rows = 1;
  }
  if (columns == 1) {
    columns = channels, x_column = s.x_channel, w_column = s.w_channel;
    channels = 1;
  }
  const float* x_plane = call.x;
  const float* w_plane = call.w;
  const int64_t pixel = s.x_pixel, tile = s.w_tile;
  for (int64_t c = 0; c < channels; ++c) {
    const float* x_line = x_plane;
    const float* w_line = w_plane;
    for (int64_t r = 0; r < rows; ++r) {
      const float* x = x_line;
      const float* w = w_line;
      for (int64_t k = columns; k > 0; --k) {
        Vec in[kPixels];
        BRISK_UNROLL for (int j = 0; j < kPixels; ++j) in[j] = load(x + j * pixel);
        const float* upper = w + 3 * tile;
        BRISK_UNROLL for (int t = 0; t < kChannels; ++t) {
          const Vec weight = set1(t < 3 ? w[t * tile] : upper[(t - 3) * tile]);
          BRISK_UNROLL for (int j = 0; j < kPixels; ++j) sum[t][j] = fma(weight, in[j], sum[t][j]);
        }
        x += x_column;
        w += w_column;
      }
      x_line += s.x_row;
      w_line += s.w_row;
    }
    x_plane += s.x_channel;
    w_plane += s.w_channel;
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
