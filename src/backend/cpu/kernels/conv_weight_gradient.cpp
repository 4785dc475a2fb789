// Weight gradient of a convolution: tiles of output channels x items (tap, input channel) are summed in registers over
// the pixels and samples of a visit, then over the lanes, and added to the slice's partial sums.
#include <array>
#include <utility>

#include "backend/cpu/kernels/conv.h"
#include "backend/cpu/kernels/range.h"
#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

constexpr int kItems = tile_pixels(kLanes);  ///< of a tile
constexpr int64_t kMaximumSlices = 32;       ///< that add_weight_slices can add

/// What one visit walks over.
struct Visit {
  int64_t images = 0, rows = 0, columns = 0;
  Mask mask = {};
  int64_t y_image = 0, y_row = 0, y_channel = 0;
  int64_t x_image = 0, x_row = 0, x_pixel = 0;
  int64_t partial_channel = 0;
};

using GradientTile = void (*)(const Visit& v, const float* dy, const float* x, const int64_t* offsets, float* partial);

/// The operands of the last block of samples need a mask, which costs a third of the speed: a variant of its own.
template <bool kMasked>
BRISK_INLINE Vec load_samples(const float* from, Mask mask) {
  return kMasked ? load_whole(from, mask) : load(from);
}

template <int kChannels, int kCount, bool kMasked>
BRISK_NOINLINE void gradient_tile(const Visit& v, const float* dy, const float* x, const int64_t* offsets,
                                  float* partial) {
  Vec sum[kChannels][kCount];
  BRISK_UNROLL for (int t = 0; t < kChannels; ++t) { BRISK_UNROLL for (int q = 0; q < kCount; ++q) sum[t][q] = zero(); }
  int64_t offset[kCount];
  BRISK_UNROLL for (int q = 0; q < kCount; ++q) offset[q] = offsets[q];
  const int64_t channel = v.y_channel, x_pixel = v.x_pixel;
  const bool joined = v.y_row == v.columns * kLanes && v.x_row == v.columns * x_pixel;
  const int64_t rows = joined ? 1 : v.rows, columns = joined ? v.rows * v.columns : v.columns;
  for (int64_t i = 0; i < v.images; ++i) {
    for (int64_t r = 0; r < rows; ++r) {
      const float* g = dy + i * v.y_image + r * v.y_row;
      const float* from = x + i * v.x_image + r * v.x_row;
      for (int64_t k = columns; k > 0; --k) {
        Vec in[kCount];
        BRISK_UNROLL for (int q = 0; q < kCount; ++q) in[q] = load_samples<kMasked>(from + offset[q], v.mask);
        const float* upper = g + 3 * channel;
        BRISK_UNROLL for (int t = 0; t < kChannels; ++t) {
          const Vec gradient = load_samples<kMasked>(t < 3 ? g + t * channel : upper + (t - 3) * channel, v.mask);
          BRISK_UNROLL for (int q = 0; q < kCount; ++q) sum[t][q] = fma(gradient, in[q], sum[t][q]);
        }
        g += kLanes;
        from += x_pixel;
      }
    }
  }
  BRISK_UNROLL for (int t = 0; t < kChannels; ++t) {
    Vec four[4] = {zero(), zero(), zero(), zero()};
    BRISK_UNROLL for (int q = 0; q < kCount; ++q) four[q] = sum[t][q];
    const Quad total = sum4(four[0], four[1], four[2], four[3]);
    float* to = partial + t * v.partial_channel;
    if constexpr (kCount == 4) {
      add4(to, total);
    } else {
      float part[4];
      store4(part, total);
      BRISK_UNROLL for (int q = 0; q < kCount; ++q) to[q] += part[q];
    }
  }
}

template <bool kMasked, size_t... kIndex>
constexpr std::array<GradientTile, sizeof...(kIndex)> all_tiles(std::index_sequence<kIndex...>) {
  return {&gradient_tile<kIndex / kItems + 1, kIndex % kItems + 1, kMasked>...};
}
constexpr auto kTiles = all_tiles<false>(std::make_index_sequence<kTileChannels * kItems>());
constexpr auto kMaskedTiles = all_tiles<true>(std::make_index_sequence<kTileChannels * kItems>());

struct VisitPlace {
  Range images, rows, columns;
};

VisitPlace place_of(const WeightGradient& p, int64_t visit) {
  const int64_t column = visit % p.column_visits, row = visit / p.column_visits % p.row_visits;
  const int64_t image = visit / p.column_visits / p.row_visits;
  return {stretch(p.images, p.visit_images, image), stretch(p.out_height, p.visit_rows, row),
          stretch(p.out_width, p.visit_columns, column)};
}

/// Copies one row of the input, columns [first, first + count), zeros where the image has none.
void copy_row(const float* row, int64_t width, int64_t first, int64_t count, float* to) {
  for (int64_t w = first; w < first + count; ++w, to += kLanes) {
    store(to, w >= 0 && w < width ? load(row + w * kLanes) : zero());
  }
}

/// The visit's input with its padding, [images][channels][patch_height][patch_width].
void copy_patch(const WeightGradient& p, const VisitPlace& at, const float* x, float* patch) {
  const int64_t top = at.rows.first * p.stride[0] - p.padding[0], left = at.columns.first * p.stride[1] - p.padding[1];
  const int64_t row_floats = p.patch_width * kLanes;
  for (int64_t i = at.images.first; i < at.images.last; ++i) {
    for (int64_t c = 0; c < p.channels; ++c) {
      const float* plane = x + i * p.x_image + c * p.x_channel;
      for (int64_t h = top; h < top + p.patch_height; ++h, patch += row_floats) {
        const bool inside = h >= 0 && h < p.height;
        copy_row(inside ? plane + h * p.width * kLanes : plane, inside ? p.width : 0, left, p.patch_width, patch);
      }
    }
  }
}

/// Operands of a visit; masked: all its images are of the last block, whose last lanes hold no samples.
struct Sources {
  const float* x;
  const float* dy;
  float* patch;
  bool masked;
};

BRISK_INLINE GradientTile find_tile(int64_t channels, int64_t items, bool masked) {
  const auto index = static_cast<size_t>((channels - 1) * kItems + items - 1);
  return masked ? kMaskedTiles[index] : kTiles[index];
}

BRISK_INLINE Range common(Range a, int64_t first, int64_t last) {
  return {a.first > first ? a.first : first, a.last < last ? a.last : last};
}

/// One output tile of a visit: channel by channel tile, tap by tap, over the pixels that the tap has.
void run_channels(const WeightGradient& p, const Sources& from, const VisitPlace& at, Visit v, const ChannelTile& tile,
                  Range item_tiles, float* partial) {
  const float* x = from.x + tile.x + at.images.first * p.x_image;
  const float* dy = from.dy + tile.first * p.y_channel + at.images.first * p.y_image;
  for (int64_t i = item_tiles.first; i < item_tiles.last; ++i) {
    const Range channels = piece(p.channels, p.item_tiles, i);
    const GradientTile function = find_tile(tile.count, channels.size(), from.masked);
    for (int64_t k = 0; k < p.taps; ++k) {
      const TapPixels& tap = p.pixels.data()[k];
      const Range rows = common(at.rows, tap.first_row, tap.last_row);
      const Range columns = common(at.columns, tap.first_column, tap.last_column);
      if (rows.size() <= 0 || columns.size() <= 0) continue;
      v.rows = rows.size(), v.columns = columns.size();
      const int64_t place = tap.x + channels.first * p.x_channel + rows.first * p.x_row + columns.first * p.x_pixel;
      function(v, dy + (rows.first * p.y_row + columns.first * kLanes), x + place, p.offsets.data(),
               partial + tile.first * v.partial_channel + k * p.channels + channels.first);
    }
  }
}

/// One output tile of a visit: the items in their order.
void run_items(const WeightGradient& p, const Sources& from, const VisitPlace& at, Visit v, const ChannelTile& tile,
               Range item_tiles, float* partial) {
  v.rows = at.rows.size(), v.columns = at.columns.size();
  const float* x = from.patch;
  if (p.padded) {
    v.x_row = p.stride[0] * p.patch_width * kLanes;
    v.x_image = p.channels * p.patch_height * p.patch_width * kLanes;
  } else {
    x = from.x + tile.x + at.images.first * p.x_image + at.rows.first * p.x_row + at.columns.first * p.x_pixel;
  }
  const float* dy = from.dy + tile.first * p.y_channel + at.images.first * p.y_image + at.rows.first * p.y_row +
                    at.columns.first * kLanes;
  for (int64_t i = item_tiles.first; i < item_tiles.last; ++i) {
    const Range items = piece(v.partial_channel, p.item_tiles, i);
    find_tile(tile.count, items.size(), from.masked)(v, dy, x, p.offsets.data() + items.first,
                                                     partial + tile.first * v.partial_channel + items.first);
  }
}

/// The chunk's items for the tiles [tiles.first, tiles.last), over one visit.
void run_visit(const WeightGradient& p, const Operands& operands, const VisitPlace& at, bool masked, Range tiles,
               Range item_tiles, float* partial) {
  const bool compact = p.compact_x_at >= 0;
  const Sources from{
      compact ? reinterpret_cast<const float*>(operands.workspace + p.compact_x_at) : operands.input<float>(0),
      compact ? reinterpret_cast<const float*>(operands.workspace + p.compact_y_at) : operands.input<float>(1),
      reinterpret_cast<float*>(operands.scratch), masked};
  Visit v;
  v.images = at.images.size();
  v.mask = first_lanes(p.samples % kLanes);
  v.y_image = p.y_image, v.y_row = p.y_row, v.y_channel = p.y_channel;
  v.x_image = p.x_image, v.x_row = p.x_row, v.x_pixel = p.x_pixel;
  v.partial_channel = p.channels * p.taps;
  int64_t copied = -1;
  for (int64_t t = tiles.first; t < tiles.last; ++t) {
    const ChannelTile& tile = p.tiles.data()[t];
    if (p.padded && copied != tile.x) {
      copy_patch(p, at, from.x + tile.x, from.patch);
      copied = tile.x;
    }
    if (p.pixels.empty()) {
      run_items(p, from, at, v, tile, item_tiles, partial);
    } else {
      run_channels(p, from, at, v, tile, item_tiles, partial);
    }
  }
}

/// Zeros the sums of a unit.
void clear(const WeightGradient& p, Range tiles, Range item_tiles, float* partial) {
  const bool by_tap = !p.pixels.empty();
  const int64_t count = p.channels * p.taps, row = by_tap ? p.channels : count;
  const int64_t first = piece(row, p.item_tiles, item_tiles.first).first;
  const int64_t last = piece(row, p.item_tiles, item_tiles.last - 1).last;
  for (int64_t t = tiles.first; t < tiles.last; ++t) {
    const ChannelTile& tile = p.tiles.data()[t];
    for (float* to = partial + tile.first * count; to < partial + (tile.first + tile.count) * count; to += row) {
      for (int64_t i = first; i < last; ++i) to[i] = 0;
    }
  }
}

/// The sum of `count` vectors, `stride` floats apart, in a fixed binary tree.
BRISK_INLINE Vec tree_sum(const float* from, int64_t stride, int64_t count, Mask mask) {
  Vec part[kMaximumSlices];
  for (int64_t s = 0; s < count; ++s) part[s] = load(from + s * stride, mask);
  for (int64_t apart = 1; apart < count; apart *= 2) {
    for (int64_t s = 0; s + apart < count; s += 2 * apart) part[s] += part[s + apart];
  }
  return part[0];
}

}  // namespace

void conv_weight_gradient(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const WeightGradient*>(parameters);
  const auto out_channels = p.tiles.back().first + p.tiles.back().count;
  const int64_t visits = p.image_visits * p.row_visits * p.column_visits;
  const int64_t full_images = p.compact_x_at >= 0 ? p.images : p.samples / kLanes * p.images_per_block;
  for (int64_t unit = first; unit < last; ++unit) {
    const int64_t chunk = unit % p.chunks, part = unit / p.chunks % p.tile_parts;
    const int64_t slice = unit / p.chunks / p.tile_parts;
    const Range items = piece(p.item_tiles, p.chunks, chunk);
    const Range tiles = piece(static_cast<int64_t>(p.tiles.size()), p.tile_parts, part);
    float* partial =
        reinterpret_cast<float*>(operands.workspace + p.partial_at) + slice * out_channels * p.channels * p.taps;
    clear(p, tiles, items, partial);
    const Range mine = piece(visits, p.slices, slice);
    for (int64_t v = mine.first; v < mine.last; ++v) {
      VisitPlace full = place_of(p, v), masked = full;
      full.images.last = full.images.last < full_images ? full.images.last : full_images;
      masked.images.first = masked.images.first > full_images ? masked.images.first : full_images;
      if (full.images.size() > 0) run_visit(p, operands, full, false, tiles, items, partial);
      if (masked.images.size() > 0) run_visit(p, operands, masked, true, tiles, items, partial);
    }
  }
}

void add_weight_slices(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const WeightGradient*>(parameters);
  const auto out_channels = p.tiles.back().first + p.tiles.back().count;
  const int64_t count = p.channels * p.taps;
  const bool add = p.accumulates && operands.run->accumulate;
  const auto* partial = reinterpret_cast<const float*>(operands.workspace + p.partial_at);
  for (int64_t o = first; o < last; ++o) {
    float* to = operands.output<float>(0) + o * count;
    for (int64_t e = 0; e < count; e += kLanes) {
      const Mask mask = first_lanes(count - e);
      const Vec gradient = tree_sum(partial + o * count + e, out_channels * count, p.slices, mask);
      store(to + e, add ? load(to + e, mask) + gradient : gradient, mask);
    }
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
