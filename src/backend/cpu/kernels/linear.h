// Linear layers and per-channel sums. x: [images][features][lanes], an image being one row of one block of samples;
// weights: [out][in].
#pragma once

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/declare.h"
#include "backend/cpu/kernels/tap_tile.h"

namespace brisk::backend::cpu {

/// y[o] = activation(sum_i w[o, i] x[i] + bias[o]), or the input gradient: the same with other strides of w. Images are
/// the pixels of a tile. A unit: a tile of images, for a part of the outputs.
struct LinearTaps {
  TapStrides strides;
  int64_t images = 0, image_tiles = 1;
  int64_t outputs = 0, output_tiles = 1, output_parts = 1;
  int64_t inputs = 0, chunks = 1;  ///< of the inputs: a chunk of x stays in the L1 cache
  bool bias = false;               ///< input 2
  Activation activation = Activation::none;
};

/// Input 0 turned from [images][features][lanes] so that the features of a sample follow one another, zeros behind the
/// last: [samples][vectors of features], or the same for each tile of features. A unit: a tile of features.
struct TurnFeatures {
  int64_t samples = 0, images_per_block = 1, images = 0;
  int64_t features = 0, vectors = 1, tiles = 1;
  int64_t pitch = 0;   ///< floats from a sample to the next
  bool tiled = false;  ///< each tile on its own
  int64_t at = 0;      ///< workspace
  int64_t rows() const { return samples * images_per_block; }
};

/// dw[o, i] = sum over rows and samples of dy[o] x[i]: tiles of outputs x turned features are summed in registers.
/// A unit: a tile of features, for a part of the outputs.
struct LinearWeightGradient {
  TurnFeatures turned;
  int64_t outputs = 0, output_tiles = 1, output_parts = 1;
  int64_t image_chunk = 1;  ///< images whose turned features stay in the cache
  bool accumulates = false;
};

/// Outputs of a tile of dot products.
constexpr int64_t kDotOutputs = 4;

/// Forward for a batch of at most half the lanes: dot products along the features, so that no lane idles. A unit: a
/// part of the tiles of outputs.
struct LinearDots {
  TurnFeatures turned;
  int64_t outputs = 0, output_tiles = 1, output_parts = 1;
  bool bias = false;  ///< input 2
  Activation activation = Activation::none;
};

/// Input gradient for such a batch: rows of the weights times scalars of dy. A unit: a tile of features of an image;
/// the last of an image takes the features that fill no vector.
struct LinearSpread {
  int64_t samples = 0, outputs = 0, features = 0;
  int64_t vectors = 0, tiles = 1, units_per_image = 1;
};

/// Per-channel sum over rows, samples and inner elements of [images][channels][inner][lanes]. A unit: channels_per_unit
/// channels of one slice of the images.
struct ChannelSum {
  int64_t samples = 0, images_per_block = 1, images = 0;
  int64_t channels = 0, inner = 1;
  int64_t slices = 1, channels_per_unit = 1, channel_units = 1;
  int64_t partial_at = 0;  ///< workspace: [slices][channels]
  bool accumulates = false;
};

/// A unit: one image.
struct BiasAdd {
  int64_t channels = 0, inner = 1;
};

BRISK_DECLARE_PHASE(linear_taps)
BRISK_DECLARE_PHASE(turn_features)
BRISK_DECLARE_PHASE(linear_dots)
BRISK_DECLARE_PHASE(linear_spread)
BRISK_DECLARE_PHASE(linear_weight_gradient)
BRISK_DECLARE_PHASE(channel_sum)
BRISK_DECLARE_PHASE(add_channel_slices)  // one unit
BRISK_DECLARE_PHASE(bias_add)

}  // namespace brisk::backend::cpu
