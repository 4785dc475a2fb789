// The inner kernel of convolutions and linear layers: a tile of output channels x pixels (vectors of samples) stays in
// registers while the taps that all these pixels have are added up. Taps are an affine grid of channels x rows x
// columns, so one kernel serves forward and input gradients, any stride, dilation and weight layout. Padding is never
// multiplied: pixels at an edge get the taps that they have in a call of their own, which goes on from what the tile
// holds.
#pragma once

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/declare.h"

namespace brisk::backend::cpu {

/// Most output channels of a tile.
constexpr int kTileChannels = 6;
/// Most pixels of a tile, by lanes: the accumulators and their operands fill the registers.
constexpr int tile_pixels(int lanes) { return lanes == 16 ? 4 : 2; }

/// Strides of a walk over taps, in floats.
struct TapStrides {
  int64_t channels = 1;  ///< taps: input channels x rows x columns
  int64_t x_channel = 0, x_row = 0, x_column = 0, x_pixel = 0;
  int64_t w_channel = 0, w_row = 0, w_column = 0, w_tile = 1;
  int64_t y_channel = 0, y_pixel = 0;
};

/// What a tile holds before the taps of a call are added.
enum class TileStart : uint8_t { zeros, bias, previous };

struct TapCall {
  const float* x = nullptr;     ///< pixel 0 of the tile at tap 0
  const float* w = nullptr;     ///< channel 0 of the tile at tap 0
  const float* bias = nullptr;  ///< of channel 0 of the tile
  float* y = nullptr;
  int64_t rows = 1, columns = 1;  ///< taps; 0: none
  TileStart start = TileStart::zeros;
  Activation activation = Activation::none;  ///< none or relu; the others by activate_tile
};
using TapTile = void (*)(const TapStrides& strides, const TapCall& call);

#define BRISK_DECLARE_TAP_TILE(isa)                                                                         \
  namespace isa {                                                                                           \
  /** The kernel of a tile of this size. */                                                                 \
  TapTile find_tap_tile(int channels, int pixels);                                                          \
  /** Applies an activation to a tile in memory. */                                                         \
  void activate_tile(const TapStrides& strides, float* y, int channels, int pixels, Activation activation); \
  }
BRISK_DECLARE_TAP_TILE(avx2)
BRISK_DECLARE_TAP_TILE(avx512)
#undef BRISK_DECLARE_TAP_TILE

}  // namespace brisk::backend::cpu
