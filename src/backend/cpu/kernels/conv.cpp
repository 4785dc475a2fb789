// Forward and input gradient.
#include "backend/cpu/kernels/conv.h"

#include <type_traits>

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

/// One tile of channels x pixels in one row, to `y`, channels p.strides.y_channel apart.
BRISK_INLINE void run_tile(const ConvTaps& p, const Place& at, const RowTaps& row, const ColumnTile& column,
                           const ChannelTile& tile, float* y) {
  const bool whole = column.parts == 1 && p.activation == Activation::relu;
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

/// Calls body with the group as a constant.
template <class Body>
BRISK_INLINE void with_group(int64_t group, const Body& body) {
  if (group == 1) return body(std::integral_constant<int, 1>());
  if (group == 2) return body(std::integral_constant<int, 2>());
  if constexpr (kLanes > 8) {
    if (group == 8) return body(std::integral_constant<int, 8>());
  }
  body(std::integral_constant<int, 4>());
}

/// Compact pixels to vectors of samples.
void expand(const float* compact, int64_t group, int64_t pixels, float* y) {
  with_group(group, [&](auto count) {
    for (int64_t i = 0; i < pixels; ++i) store(y + i * kLanes, repeat<count()>(compact + i * count()));
  });
}

/// `count` vectors of samples, or zeros where `from` is null, to compact pixels; returns where they end.
float* make_compact(const float* from, int64_t count, Mask samples, int64_t group, float* to) {
  with_group(group, [&](auto width) {
    for (int64_t i = 0; i < count; ++i) {
      store_low<width()>(to + i * width(), from ? load_whole(from + i * kLanes, samples) : zero());
    }
  });
  return to + count * group;
}

/// The same for compact pixels: the tile is computed apart, then its pixels are spread.
BRISK_INLINE void run_compact_tile(const ConvTaps& p, const Place& at, const RowTaps& row, const ColumnTile& column,
                                   const ChannelTile& tile, float* y) {
  alignas(64) float compact[kTileChannels * tile_pixels(kLanes) * kLanes];
  run_tile(p, at, row, column, tile, compact);
  for (int32_t t = 0; t < tile.count; ++t) {
    expand(compact + t * p.strides.y_channel, p.group, column.width, y + t * p.y_plane);
  }
}

/// Rows of output pixels, tile by tile of pixels, for some channel tiles.
void run_rows(const ConvTaps& p, const Place& at, Range rows, Range tiles) {
  for (int64_t r = rows.first; r < rows.last; ++r) {
    for (const ColumnTile& column : p.columns) {
      for (int64_t t = tiles.first; t < tiles.last; ++t) {
        const RowTaps& row = p.rows.data()[r];
        const ChannelTile& tile = p.tiles.data()[t];
        float* y = at.y + tile.first * p.y_plane + row.y + column.y;
        if (p.group == 0) {
          run_tile(p, at, row, column, tile, y);
        } else {
          run_compact_tile(p, at, row, column, tile, y);
        }
      }
    }
  }
}

void compact_plane(const CompactImages& p, const Operands& operands, int64_t plane) {
  const Mask samples = first_lanes(p.samples);
  const float* from = static_cast<const float*>(operands.in[p.input]) + plane * p.height * p.width * kLanes;
  float* to = reinterpret_cast<float*>(operands.workspace + p.at) + plane * p.plane();
  for (int64_t h = -p.top; h < p.rows - p.top; ++h) {
    // Rows may also end within the image: a stride leaves a rest.
    const bool inside = h >= 0 && h < p.height;
    const int64_t width = !inside ? 0 : p.width < p.pitch - p.lead ? p.width : p.pitch - p.lead;
    to = make_compact(nullptr, p.lead, samples, p.group, to);
    to = make_compact(from + (inside ? h * p.width * kLanes : 0), width, samples, p.group, to);
    to = make_compact(nullptr, p.pitch - p.lead - width, samples, p.group, to);
  }
}

}  // namespace

void conv_taps(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const ConvTaps*>(parameters);
  const auto rows = static_cast<int64_t>(p.rows.size());
  const auto tiles = static_cast<int64_t>(p.tiles.size());
  const float* x =
      p.group == 0 ? operands.input<float>(0) : reinterpret_cast<const float*>(operands.workspace + p.compact_at);
  const float* weights =
      p.packed_at < 0 ? operands.input<float>(1) : reinterpret_cast<const float*>(operands.workspace + p.packed_at);
  for (int64_t unit = first; unit < last; ++unit) {
    const int64_t part = unit % p.tile_parts, band = unit / p.tile_parts % p.bands;
    const int64_t image = unit / p.tile_parts / p.bands;
    const Place at{x + image * p.x_image, weights, p.bias ? operands.input<float>(2) : nullptr,
                   operands.output<float>(0) + image * p.y_image};
    const Range mine = piece(tiles, p.tile_parts, part), lines = piece(rows, p.bands, band);
    if (p.tiles_outside) {
      for (int64_t t = mine.first; t < mine.last; ++t) run_rows(p, at, lines, {t, t + 1});
    } else {
      run_rows(p, at, lines, mine);
    }
  }
}

void compact_images(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const CompactOperands*>(parameters);
  for (int64_t unit = first; unit < last; ++unit) {
    if (unit < p.first.planes) {
      compact_plane(p.first, operands, unit);
    } else {
      compact_plane(p.second, operands, unit - p.first.planes);
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
