// Forward and input gradient.
#include "backend/cpu/kernels/conv.h"

#include "backend/cpu/kernels/range.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

/// Where the operands of a unit begin.
struct Place {
  const float* x;
  const float* w;
  const float* bias;
  float* y;
};

/// One tile of channels x pixels in one row.
BRISK_INLINE void run_tile(const ConvTaps& p, const Place& at, const RowTaps& row, const ColumnTile& column,
                           const ChannelTile& tile) {
  const bool whole = column.parts == 1 && p.activation == Activation::relu;
  float* y = at.y + tile.first * p.strides.y_channel + row.y + column.y;
  TapCall call;
  call.rows = row.rows;
  call.bias = at.bias ? at.bias + tile.first : nullptr;
  call.start = at.bias ? TileStart::bias : TileStart::zeros;
  call.activation = whole ? Activation::relu : Activation::none;
  for (int32_t i = 0; i < column.parts; ++i) {
    const ColumnPart& part = p.parts.data()[column.first_part + i];
    call.x = at.x + tile.x + row.x + part.x;
    call.w = at.w + tile.w + row.w + part.w;
    call.y = y + part.first * p.strides.y_pixel;
    call.columns = part.columns;
    find_tap_tile(tile.count, part.pixels)(p.strides, call);
    call.start = TileStart::previous;
  }
  if (!whole) activate_tile(p.strides, y, tile.count, column.pixels, p.activation);
}

}  // namespace

void conv_taps(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const ConvTaps*>(parameters);
  const auto rows = static_cast<int64_t>(p.rows.size());
  const auto tiles = static_cast<int64_t>(p.tiles.size());
  const float* weights =
      p.packed_at < 0 ? operands.input<float>(1) : reinterpret_cast<const float*>(operands.workspace + p.packed_at);
  for (int64_t unit = first; unit < last; ++unit) {
    const int64_t part = unit % p.tile_parts, band = unit / p.tile_parts % p.bands;
    const int64_t image = unit / p.tile_parts / p.bands;
    const Place at{operands.input<float>(0) + image * p.x_image, weights, p.bias ? operands.input<float>(2) : nullptr,
                   operands.output<float>(0) + image * p.y_image};
    const Range mine = piece(tiles, p.tile_parts, part), lines = piece(rows, p.bands, band);
    for (int64_t r = lines.first; r < lines.last; ++r) {
      for (const ColumnTile& column : p.columns) {
        for (int64_t t = mine.first; t < mine.last; ++t) {
          run_tile(p, at, p.rows.data()[r], column, p.tiles.data()[t]);
        }
      }
    }
  }
}

void pack_weights(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const PackWeights*>(parameters);
  auto* packed = reinterpret_cast<float*>(operands.workspace + p.packed_at);
  for (int64_t unit = first; unit < last; ++unit) {
    const ChannelTile& tile = p.tiles.data()[unit];
    const float* from = operands.input<float>(1) + tile.w;
    float* to = packed + unit * p.channels * p.taps * p.packed;
    for (int64_t k = 0; k < p.taps; ++k) {
      for (int64_t c = 0; c < p.channels; ++c) {
        const float* weight = from + k * p.tap_stride + c * p.channel_stride;
        float* at = to + (c * p.taps + k) * p.packed;
        for (int32_t t = 0; t < tile.count; ++t) at[t] = weight[t * p.tile_stride];
      }
    }
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
