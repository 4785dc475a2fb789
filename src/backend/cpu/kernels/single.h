// Kernels for one sample, whose values lie row-major: with samples in lanes all lanes but one would be idle, and every
// value sixteen times as large. Vectors run along pixels or features.
#pragma once

#include <vector>

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/conv.h"
#include "backend/cpu/kernels/declare.h"
#include "backend/cpu/kernels/tap_tile.h"

namespace brisk::backend::cpu {

/// An image spread out so that the input of any tap, for all output pixels in order, is contiguous:
/// [channels][columns of taps][phases][rows][out_width], zeros in the padding. A phase holds the input rows that leave
/// one rest modulo the vertical stride, so that a step to the next output row is a step to the next row of a phase. A
/// unit: a channel.
struct SpreadImage {
  int64_t height = 0, width = 0;  ///< of the input
  int64_t out_width = 0;
  int64_t stride[2] = {1, 1}, padding[2] = {0, 0};
  int64_t columns = 1, dilation = 1;  ///< of the taps, horizontally
  std::vector<int64_t> phases;        ///< the rests that some tap has
  int64_t rows = 0;
  int64_t at = 0;  ///< workspace; kLanes floats of slack behind
  int64_t channel() const { return columns * static_cast<int64_t>(phases.size()) * rows * out_width; }
};

/// Rows of taps of one phase: `rows` of them, the first at offset x of the spread image and w of the weights.
struct PhaseTaps {
  int64_t x = 0, w = 0;
  int64_t rows = 0;
};

/// y[channel][pixel] = activation(sum over taps + bias). A unit: a tile of pixels for a part of the channel tiles.
struct SingleConv {
  TapStrides strides;
  std::vector<ChannelTile> tiles;
  std::vector<PhaseTaps> phases;
  int64_t columns = 1;  ///< of taps
  int64_t pixels = 0, pixel_tiles = 1, tile_parts = 1;
  int64_t at = -1;    ///< spread image in the workspace; -1: the input is one already
  bool bias = false;  ///< input 2
  Activation activation = Activation::none;
};

/// Outputs of a tile of dot products.
constexpr int64_t kSingleOutputs = 8;

/// y[o] = activation(w[o] x + bias[o]) for each of a few samples. A unit: a part of the tiles of outputs.
struct SingleLinear {
  int64_t samples = 1;
  int64_t features = 0, outputs = 0, output_parts = 1;
  bool bias = false;  ///< input 2
  Activation activation = Activation::none;
};

/// Per-channel work on [channels][inner]. A unit: a part of the channels.
struct SingleChannels {
  int64_t channels = 0, inner = 1, parts = 1;
  double epsilon = 0;
  bool residual = false;  ///< input 5
  Activation activation = Activation::none;
};

BRISK_DECLARE_PHASE(spread_image)
BRISK_DECLARE_PHASE(single_conv)
BRISK_DECLARE_PHASE(single_linear)
BRISK_DECLARE_PHASE(single_batch_norm_inference)
BRISK_DECLARE_PHASE(single_bias_add)
BRISK_DECLARE_PHASE(single_max_pool)      // Pooling of pool.h
BRISK_DECLARE_PHASE(single_average_pool)  // Pooling of pool.h

}  // namespace brisk::backend::cpu
