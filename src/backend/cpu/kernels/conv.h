// Convolutions over images whose pixels are vectors of samples. x: [images][channels][height][width][lanes]; weights in
// canonical order O,H,W,I. conv_taps makes outputs from inputs (forward) or input gradients from output gradients: both
// are sums over the taps that a pixel has, written down by the lowering as rows, column tiles and channel tiles.
// Weight gradients are sums over pixels and samples: slices of the batch are summed apart, then added in a fixed tree.
// A batch of at most half the lanes is made compact first: its pixels lie side by side in a vector, [pixels][group], so
// that no lane idles; that needs a horizontal stride of 1.
#pragma once

#include <vector>

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/declare.h"
#include "backend/cpu/kernels/tap_tile.h"

namespace brisk::backend::cpu {

/// Output channels that are computed together: [first, first + count), all of one group.
struct ChannelTile {
  int32_t first = 0, count = 0;
  int64_t x = 0;  ///< floats from an image's start to its group's first input channel
  int64_t w = 0;  ///< floats from the weights' start to channel `first`
};

/// One row of output pixels: `rows` rows of taps, the first at offset x of the input plane and w of the weights.
struct RowTaps {
  int64_t y = 0, x = 0, w = 0;
  int32_t rows = 0;
};

/// Pixels of a tile that share a run of columns of taps. The first part of each tile has all its pixels.
struct ColumnPart {
  int32_t first = 0, pixels = 0, columns = 0;
  int64_t x = 0, w = 0;
};

struct ColumnTile {
  int64_t y = 0;
  int32_t pixels = 0;  ///< vectors: pixels, or compact pixels side by side
  int32_t first_part = 0, parts = 0;
  int32_t width = 0;  ///< pixels, where they are compact
};

/// A unit: a band of rows of one image, for a part of the channel tiles.
struct ConvTaps {
  TapStrides strides;
  int64_t x_image = 0, y_image = 0, y_plane = 0;
  int64_t group = 0;        ///< of compact pixels; 0: pixels are vectors of samples
  int64_t compact_at = -1;  ///< compact input in the workspace
  std::vector<ChannelTile> tiles;
  std::vector<RowTaps> rows;
  std::vector<ColumnTile> columns;
  std::vector<ColumnPart> parts;
  int64_t bands = 1, tile_parts = 1;
  bool tiles_outside = false;  ///< each channel tile goes over all its pixels: for weights that leave the L2 cache
  int64_t packed_at = -1;      ///< weights lie in the workspace; -1: input 1
  bool bias = false;           ///< input 2
  Activation activation = Activation::none;
};

/// Images of a small batch as [image][channel][rows][pitch][group], with zeros around them and in the group's unused
/// samples. A unit: a channel of an image.
struct CompactImages {
  int64_t input = 0;  ///< operand
  int64_t samples = 0, group = 0;
  int64_t planes = 0, height = 0, width = 0;
  int64_t top = 0, rows = 0;    ///< zero rows above, all rows
  int64_t lead = 0, pitch = 0;  ///< zero pixels at the left, all pixels of a row
  int64_t at = 0;               ///< workspace
  int64_t plane() const { return rows * pitch * group; }
};

/// One operand, or both: a unit is a plane of the first or, past its planes, of the second.
struct CompactOperands {
  CompactImages first, second;
};

/// Weights of each tile as [input channels][taps][packed], so that a walk reads them in order. A unit: a tile.
struct PackWeights {
  std::vector<ChannelTile> tiles;  ///< w: where input 1 holds the tile's first weight
  int64_t channels = 0, taps = 0;
  int64_t channel_stride = 0, tap_stride = 0, tile_stride = 0;  ///< of input 1
  int64_t packed = 0;                                           ///< floats of a tap, >= count
  int64_t packed_at = 0;
};

/// Where a tap has input: output pixels, and the offset at which output pixel (0, 0) would read it.
struct TapPixels {
  int64_t x = 0;
  int64_t first_row = 0, last_row = 0, first_column = 0, last_column = 0;
};

/// The sum over pixels and samples of y's gradient x input, for each tap and each pair of channels. The pixels are cut
/// into visits whose operands stay near while all items (tap, input channel) of a chunk are summed; a unit takes the
/// visits of one slice, a part of the output channels and a chunk of the items of their group. Items are taken a few
/// input channels at a time for one tap (`pixels`), over the output pixels where it has input; where there are too few
/// channels, in their order, from a copy with padding.
struct WeightGradient {
  int64_t samples = 0, images_per_block = 1, images = 0;
  int64_t height = 0, width = 0, out_height = 0, out_width = 0;
  int64_t stride[2] = {1, 1}, padding[2] = {0, 0};
  int64_t channels = 0, taps = 0;                              ///< input channels of a group; taps of a kernel
  int64_t x_image = 0, x_channel = 0, x_row = 0, x_pixel = 0;  ///< steps of an output row and pixel
  int64_t y_image = 0, y_channel = 0, y_row = 0;
  int64_t compact_x_at = -1, compact_y_at = -1;  ///< both compact in the workspace, pixels counted in vectors
  std::vector<ChannelTile> tiles;
  int64_t visit_images = 1, visit_rows = 1, visit_columns = 1;
  int64_t image_visits = 1, row_visits = 1, column_visits = 1;
  int64_t slices = 1, tile_parts = 1, chunks = 1;
  int64_t item_tiles = 1;         ///< of a group: tiles of channels with `pixels`, of items without
  std::vector<TapPixels> pixels;  ///< one a tap, or empty
  /// From an image's first pixel of a visit to channel i with `pixels`, to item i without.
  std::vector<int64_t> offsets;
  bool padded = false;  ///< a visit's input is copied into scratch with its padding
  int64_t patch_height = 0, patch_width = 0;
  int64_t partial_at = 0;  ///< workspace: [slices][output channels][taps][channels]
  bool accumulates = false;
};

BRISK_DECLARE_PHASE(pack_weights)
BRISK_DECLARE_PHASE(compact_images)
BRISK_DECLARE_PHASE(conv_taps)
BRISK_DECLARE_PHASE(conv_weight_gradient)
BRISK_DECLARE_PHASE(add_weight_slices)  // a unit: an output channel

}  // namespace brisk::backend::cpu
