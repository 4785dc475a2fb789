// Convolution: which taps each pixel has, how the work is cut.
#include <algorithm>
#include <numeric>
#include <tuple>

#include "backend/cpu/kernels/conv.h"
#include "backend/cpu/lower/activation.h"
#include "backend/cpu/lower/depthwise.h"
#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"

namespace brisk::backend::cpu {
namespace {

constexpr int64_t kUnits = 32;                ///< enough for eight threads
constexpr int64_t kCacheBytes = 1 << 20;      ///< of operands that stay in the L2 cache, about: half of it
constexpr int64_t kMaximumSlices = 32;        ///< of a weight gradient
constexpr int64_t kPartialBytes = 1 << 20;    ///< of a weight gradient's slices, about
constexpr int64_t kUnpackedBytes = 12 << 10;  ///< of a tile that are read where they lie
constexpr int64_t kVisitBytes = 24 << 10;     ///< of the output gradient's tile in a visit, about: half of the L1 cache

/// One axis of a forward convolution.
struct Axis {
  int64_t in = 0, out = 0, kernel = 1, stride = 1, padding = 0, dilation = 1;
};

/// The convolution that a node belongs to; `in`, `out` as the forward node sees them.
struct Geometry {
  Axis axis[2];  ///< height, width
  int64_t channels = 0, out_channels = 0, groups = 1;
  int64_t images = 0;
  int64_t group_channels() const { return channels / groups; }
  int64_t group_out_channels() const { return out_channels / groups; }
  int64_t taps() const { return axis[0].kernel * axis[1].kernel; }
};

Geometry geometry(const Call& call, const graph::ValueType& in, const graph::ValueType& out, int64_t kernel_height,
                  int64_t kernel_width) {
  const graph::Attributes& a = call.node.attributes;
  Geometry g;
  g.channels = in.shape[0], g.out_channels = out.shape[0];
  g.groups = a.integer("groups");
  g.images = call.blocks() * in.rows;
  for (size_t i = 0; i < 2; ++i) {
    const int dim = static_cast<int>(i) + 1;
    g.axis[i] = {in.shape[dim],           out.shape[dim],           i == 0 ? kernel_height : kernel_width,
                 a.integers("stride")[i], a.integers("padding")[i], a.integers("dilation")[i]};
  }
  return g;
}

/// Pixels y_first, y_first + y_step, ... of an axis whose taps form one progression: pixel j at tap t reads position
/// x_first + j x_pixel + t x_tap of the other side, where it exists, times weight w_first + t w_tap.
struct Line {
  int64_t y_first = 0, y_step = 1, pixels = 0;
  int64_t x_first = 0, x_pixel = 1, x_tap = 1, bound = 0;
  int64_t taps = 0, w_first = 0, w_tap = 1;
  bool has(int64_t j, int64_t t) const {
    const int64_t x = x_first + j * x_pixel + t * x_tap;
    return x >= 0 && x < bound;
  }
};

std::vector<Line> forward_lines(const Axis& a) {
  return {{0, 1, a.out, -a.padding, a.stride, a.dilation, a.in, a.kernel, 0, 1}};
}

/// Input position i gets output o's gradient at tap k when i = o stride - padding + k dilation: the positions of a
/// class modulo the stride share their taps.
std::vector<Line> gradient_lines(const Axis& a) {
  const int64_t common = std::gcd(a.stride, a.dilation), step = a.stride / common;
  std::vector<Line> lines;
  for (int64_t c = 0; c < std::min(a.stride, a.in); ++c) {
    Line line{c, a.stride, ceil_divide(a.in - c, a.stride), 0, 1, -a.dilation / common, a.out, 0, 0, step};
    for (int64_t k = 0; k < std::min(step, a.kernel); ++k) {
      const int64_t distance = c + a.padding - k * a.dilation;
      if (distance % a.stride != 0) continue;
      line.w_first = k;
      line.taps = ceil_divide(a.kernel - k, step);
      line.x_first = distance / a.stride;
      break;
    }
    lines.push_back(line);
  }
  return lines;
}

/// Taps [first, last) that pixel j has.
struct TapRange {
  int64_t first = 0, last = 0;
};
TapRange taps_of(const Line& line, int64_t j) {
  TapRange range;
  while (range.first < line.taps && !line.has(j, range.first)) ++range.first;
  range.last = range.first;
  while (range.last < line.taps && line.has(j, range.last)) ++range.last;
  return range;
}

void add_rows(ConvTaps& p, const Line& line, int64_t y_row, int64_t x_row, int64_t w_row) {
  for (int64_t j = 0; j < line.pixels; ++j) {
    const TapRange taps = taps_of(line, j);
    const int64_t x = line.x_first + j * line.x_pixel + taps.first * line.x_tap;
    const int64_t w = line.w_first + taps.first * line.w_tap;
    const bool some = taps.last > taps.first;
    p.rows.push_back({(line.y_first + j * line.y_step) * y_row, some ? x * x_row : 0, some ? w * w_row : 0,
                      static_cast<int32_t>(taps.last - taps.first)});
  }
}

/// The parts of the tile of pixels [first, first + count): runs of taps that the same pixels have, those of all first.
std::vector<ColumnPart> column_parts(const Line& line, int64_t first, int64_t count, int64_t lanes, int64_t w_column) {
  std::vector<ColumnPart> parts;
  for (int64_t t = 0; t < line.taps; ++t) {
    int64_t begin = 0, end = count;
    while (begin < count && !line.has(first + begin, t)) ++begin;
    while (end > begin && !line.has(first + end - 1, t)) --end;
    if (begin == end) continue;
    if (!parts.empty() && parts.back().first == begin && parts.back().pixels == end - begin) {
      ++parts.back().columns;
      continue;
    }
    const int64_t x = line.x_first + (first + begin) * line.x_pixel + t * line.x_tap;
    parts.push_back({static_cast<int32_t>(begin), static_cast<int32_t>(end - begin), 1, x * lanes,
                     (line.w_first + t * line.w_tap) * w_column});
  }
  const auto whole = [count](const ColumnPart& part) { return part.pixels == count; };
  const auto found = std::find_if(parts.begin(), parts.end(), whole);
  if (found == parts.end()) {
    parts.insert(parts.begin(), {0, static_cast<int32_t>(count), 0, 0, 0});
  } else {
    std::rotate(parts.begin(), found, found + 1);
  }
  return parts;
}

void add_columns(ConvTaps& p, const Line& line, int64_t lanes, int64_t w_column) {
  const int64_t tiles = ceil_divide(line.pixels, tile_pixels(static_cast<int>(lanes)));
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t first = line.pixels * i / tiles, count = line.pixels * (i + 1) / tiles - first;
    const std::vector<ColumnPart> parts = column_parts(line, first, count, lanes, w_column);
    p.columns.push_back({(line.y_first + first * line.y_step) * lanes, static_cast<int32_t>(count),
                         static_cast<int32_t>(p.parts.size()), static_cast<int32_t>(parts.size())});
    p.parts.insert(p.parts.end(), parts.begin(), parts.end());
  }
}

/// Tiles of at most kTileChannels of the output channels, even in size, none across groups.
std::vector<ChannelTile> channel_tiles(int64_t groups, int64_t group_channels, int64_t x_group) {
  std::vector<ChannelTile> tiles;
  const int64_t each = ceil_divide(group_channels, kTileChannels);
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t i = 0; i < each; ++i) {
      const int64_t first = group_channels * i / each, last = group_channels * (i + 1) / each;
      tiles.push_back(
          {static_cast<int32_t>(g * group_channels + first), static_cast<int32_t>(last - first), g * x_group, 0});
    }
  }
  return tiles;
}

/// Cuts images into bands of rows, then into parts of the tiles, until there are enough units. Weights that leave the
/// cache are read once a band; then its input stays there.
int64_t cut(ConvTaps& p, int64_t images, int64_t weight_bytes) {
  const auto rows = static_cast<int64_t>(p.rows.size()), tiles = static_cast<int64_t>(p.tiles.size());
  p.tiles_outside = weight_bytes > kCacheBytes;
  const int64_t bands = p.tiles_outside ? ceil_divide(p.x_image * 4, kCacheBytes) : ceil_divide(kUnits, images);
  p.bands = std::clamp<int64_t>(bands, 1, rows);
  p.tile_parts = std::clamp<int64_t>(ceil_divide(kUnits, images * p.bands), 1, tiles);
  return images * p.bands * p.tile_parts;
}

/// How one side of a convolution lies in memory, in floats.
struct Side {
  int64_t channels = 0, height = 0, width = 0;
  int64_t pixel = 0;  ///< floats of a pixel: lanes, or the group of a compact one
  int64_t row() const { return width * pixel; }
  int64_t plane() const { return height * row(); }
};

Side input_side(const Call& call, const Geometry& g) { return {g.channels, g.axis[0].in, g.axis[1].in, call.lanes()}; }
Side output_side(const Call& call, const Geometry& g) {
  return {g.out_channels, g.axis[0].out, g.axis[1].out, call.lanes()};
}

struct WeightStrides {
  int64_t tile = 0, channel = 0, tap = 0;
};

/// Sets where the tiles find their weights in canonical order.
void place_weights(const Geometry& g, int64_t to_group, WeightStrides weights, std::vector<ChannelTile>& tiles) {
  const int64_t group_weights = g.group_out_channels() * g.taps() * g.group_channels();
  for (ChannelTile& tile : tiles) {
    tile.w = tile.first / to_group * group_weights + tile.first % to_group * weights.tile;
  }
}

/// Packs the weights into the workspace, tile by tile, in a phase of its own; returns how they lie there.
WeightStrides pack_weights(const Call& call, const Geometry& g, WeightStrides weights, ConvTaps& p,
                           Lowering& lowering) {
  PackWeights pack;
  pack.tiles = p.tiles;
  pack.channels = p.strides.channels, pack.taps = g.taps();
  pack.channel_stride = weights.channel, pack.tap_stride = weights.tap, pack.tile_stride = weights.tile;
  for (const ChannelTile& tile : p.tiles) pack.packed = std::max<int64_t>(pack.packed, tile.count);
  const int64_t tile_floats = pack.channels * pack.taps * pack.packed;
  for (size_t i = 0; i < p.tiles.size(); ++i) p.tiles[i].w = static_cast<int64_t>(i) * tile_floats;
  const auto units = static_cast<int64_t>(p.tiles.size());
  p.packed_at = pack.packed_at = lowering.workspace(units * tile_floats * 4);
  const WeightStrides packed{1, pack.taps * pack.packed, pack.packed};
  lowering.phase(BRISK_PHASE(call, pack_weights), units, std::move(pack));
  return packed;
}

/// Samples side by side in a compact pixel, or 0 when the batch is too large or a row of pixels is not read in order.
int64_t compact_group(const Call& call, const Geometry& g) {
  if (g.axis[1].stride != 1 || 2 * call.samples > call.lanes()) return 0;
  int64_t group = 1;
  while (group < call.samples) group *= 2;
  return group;
}

CompactImages compact(const Call& call, int64_t input, int64_t group, const Side& side, int64_t images,
                      Lowering& lowering, int64_t lead, int64_t pitch, int64_t top, int64_t rows) {
  CompactImages c;
  c.input = input;
  c.samples = call.samples, c.group = group;
  c.planes = images * side.channels, c.height = side.height, c.width = side.width;
  c.top = top, c.rows = rows, c.lead = lead, c.pitch = pitch;
  c.at = lowering.workspace(c.planes * c.plane() * 4);
  return c;
}

/// Column tiles of vectors of compact pixels; padding is in the compact input, so that all pixels have all taps. `x` is
/// changed to the compact input.
void add_compact_columns(const Call& call, const Line& line, int64_t group, int64_t images, int64_t w_column, Side& x,
                         ConvTaps& p, Lowering& lowering) {
  const int64_t lanes = call.lanes(), together = lanes / group;
  const int64_t vectors = ceil_divide(line.pixels, together), tiles = ceil_divide(vectors, tile_pixels(call.lanes()));
  const int64_t last_tap = line.x_first + (line.taps - 1) * line.x_tap;
  const int64_t lead = std::max<int64_t>(0, -std::min(line.x_first, last_tap));
  const int64_t pitch = lead + std::max(line.x_first, last_tap) + vectors * together;
  const CompactImages c = compact(call, 0, group, x, images, lowering, lead, pitch, 0, x.height);
  lowering.phase(BRISK_PHASE(call, compact_images), c.planes, CompactOperands{c, {}});
  p.group = group, p.compact_at = c.at;
  x.width = pitch, x.pixel = group;
  for (int64_t i = 0; i < tiles; ++i) {
    const int64_t first = vectors * i / tiles, count = vectors * (i + 1) / tiles - first;
    const int64_t width = std::min(line.pixels - first * together, count * together);
    p.columns.push_back({first * together * lanes, static_cast<int32_t>(count), static_cast<int32_t>(i), 1,
                         static_cast<int32_t>(width)});
    p.parts.push_back({0, static_cast<int32_t>(count), static_cast<int32_t>(line.taps),
                       (line.x_first + lead) * group + first * lanes, line.w_first * w_column});
  }
}

void lower_taps(const Call& call, const Geometry& g, Side x, const Side& y, const std::vector<Line>& rows,
                const std::vector<Line>& columns, WeightStrides weights, ConvTaps p, Lowering& lowering) {
  const int64_t lanes = call.lanes();
  const int64_t group = compact_group(call, g), y_group = y.channels / g.groups;
  p.tiles = channel_tiles(g.groups, y_group, 0);
  p.strides.channels = x.channels / g.groups;
  place_weights(g, y_group, weights, p.tiles);
  // Weights that do not stay in the L1 cache are read in order; a small batch is not worth it.
  const bool pack = group == 0 && p.strides.channels * g.taps() * kTileChannels * 4 > kUnpackedBytes;
  if (pack) weights = pack_weights(call, g, weights, p, lowering);
  const int64_t w_column = weights.tap, w_row = g.axis[1].kernel * weights.tap;
  TapStrides& s = p.strides;
  s.y_channel = y.plane(), s.y_pixel = columns[0].y_step * lanes;
  s.x_pixel = columns[0].x_pixel * lanes;
  if (group == 0) {
    for (const Line& line : columns) add_columns(p, line, lanes, w_column);
  } else {
    s.y_channel = tile_pixels(call.lanes()) * lanes;
    add_compact_columns(call, columns[0], group, g.images, w_column, x, p, lowering);
  }
  for (const Line& line : rows) add_rows(p, line, y.row(), x.row(), w_row);
  s.x_channel = x.plane(), s.x_row = rows[0].x_tap * x.row(), s.x_column = columns[0].x_tap * x.pixel;
  s.w_tile = weights.tile, s.w_channel = weights.channel, s.w_row = rows[0].w_tap * w_row,
  s.w_column = columns[0].w_tap * w_column;
  for (ChannelTile& tile : p.tiles) tile.x = tile.first / y_group * s.channels * x.plane();
  p.x_image = x.channels * x.plane(), p.y_image = y.channels * y.plane(), p.y_plane = y.plane();
  const int64_t units = cut(p, g.images, g.out_channels * g.taps() * g.group_channels() * 4);
  lowering.phase(BRISK_PHASE(call, conv_taps), units, std::move(p));
}

/// Chooses visits, slices, parts and chunks; sets what depends on them.
void cut(const Call& call, const Geometry& g, bool by_tap, WeightGradient& p) {
  const int64_t vector = call.lanes() * 4, together = tile_pixels(call.lanes());
  const int64_t pixels = std::max<int64_t>(1, kVisitBytes / (kTileChannels * vector));
  p.visit_columns = std::min(p.out_width, pixels);
  p.visit_rows = std::clamp<int64_t>(pixels / p.visit_columns, 1, p.out_height);
  p.visit_images = std::clamp<int64_t>(pixels / (p.visit_columns * p.visit_rows), 1, p.images);
  p.column_visits = ceil_divide(p.out_width, p.visit_columns);
  p.row_visits = ceil_divide(p.out_height, p.visit_rows);
  p.image_visits = ceil_divide(p.images, p.visit_images);
  p.patch_height = (p.visit_rows - 1) * p.stride[0] + (g.axis[0].kernel - 1) * g.axis[0].dilation + 1;
  p.patch_width = (p.visit_columns - 1) * p.stride[1] + (g.axis[1].kernel - 1) * g.axis[1].dilation + 1;
  p.item_tiles = ceil_divide(by_tap ? p.channels : p.channels * p.taps, together);
  const int64_t near_channels = kCacheBytes / 2 / (p.visit_images * p.patch_height * p.patch_width * vector);
  p.chunks = by_tap ? ceil_divide(p.item_tiles, std::max<int64_t>(1, near_channels / together)) : 1;
  const int64_t visits = p.column_visits * p.row_visits * p.image_visits;
  const int64_t most = std::max<int64_t>(1, kPartialBytes / (g.out_channels * p.channels * p.taps * 4));
  p.slices = std::min({ceil_divide(kUnits, p.chunks), most, visits, kMaximumSlices});
  p.tile_parts = std::clamp<int64_t>(ceil_divide(kUnits, p.slices * p.chunks), 1, static_cast<int64_t>(p.tiles.size()));
}

/// Output positions [first, last) whose tap `k` has input.
std::pair<int64_t, int64_t> positions_of(const Axis& a, int64_t k) {
  const int64_t distance = a.padding - k * a.dilation;  // position i reads i stride - distance
  const int64_t last = a.in - 1 + distance < 0 ? 0 : (a.in - 1 + distance) / a.stride + 1;
  return {distance > 0 ? ceil_divide(distance, a.stride) : 0, std::min(a.out, last)};
}

/// Lists the pixels of each tap; x: the input, with its padding where it is compact.
void set_pixels(const Call& call, const Geometry& g, const Side& x, WeightGradient& p) {
  const Axis &height = g.axis[0], &width = g.axis[1];
  const bool compact = p.compact_x_at >= 0;
  for (int64_t h = 0; h < height.kernel; ++h) {
    for (int64_t w = 0; w < width.kernel; ++w) {
      TapPixels tap{h * height.dilation * x.row() + w * width.dilation * x.pixel, 0, p.out_height, 0, p.out_width};
      if (!compact) {
        tap.x -= height.padding * x.row() + width.padding * x.pixel;
        std::tie(tap.first_row, tap.last_row) = positions_of(height, h);
        std::tie(tap.first_column, tap.last_column) = positions_of(width, w);
      }
      p.pixels.push_back(tap);
    }
  }
  for (int64_t c = 0; c < tile_pixels(call.lanes()); ++c) p.offsets.push_back(c * x.plane());
}

/// Offsets of the items, in planes of `plane` floats with rows of `row` floats and pixels of `pixel`.
void set_offsets(const Geometry& g, int64_t plane, int64_t row, int64_t pixel, WeightGradient& p) {
  for (int64_t h = 0; h < g.axis[0].kernel; ++h) {
    for (int64_t w = 0; w < g.axis[1].kernel; ++w) {
      for (int64_t c = 0; c < p.channels; ++c) {
        p.offsets.push_back(c * plane + h * g.axis[0].dilation * row + w * g.axis[1].dilation * pixel);
      }
    }
  }
}

/// Makes both operands compact, the input with its padding, the gradient's rows filled up to whole vectors.
void compact_operands(const Call& call, const Geometry& g, int64_t group, Side& x, Side& y, WeightGradient& p,
                      Lowering& lowering) {
  const int64_t together = call.lanes() / group, vectors = ceil_divide(y.width, together);
  const Axis &height = g.axis[0], &width = g.axis[1];
  const int64_t pitch = vectors * together + (width.kernel - 1) * width.dilation;
  const int64_t rows = (height.out - 1) * height.stride + (height.kernel - 1) * height.dilation + 1;
  const CompactImages input =
      compact(call, 0, group, x, g.images, lowering, width.padding, pitch, height.padding, rows);
  const CompactImages gradient = compact(call, 1, group, y, g.images, lowering, 0, vectors * together, 0, y.height);
  lowering.phase(BRISK_PHASE(call, compact_images), input.planes + gradient.planes, CompactOperands{input, gradient});
  p.compact_x_at = input.at, p.compact_y_at = gradient.at;
  x.height = rows, x.width = pitch, x.pixel = group;
  y.width = vectors * together, y.pixel = group;
  p.out_width = vectors;
}

}  // namespace

void lower_conv2d(const Call& call, Lowering& lowering) {
  const graph::ValueType &x = call.input(0), &w = call.input(1), &y = call.output(0);
  if (is_depthwise(call, w.shape, x.shape[0])) return lower_depthwise(call, lowering);
  const Geometry g = geometry(call, x, y, w.shape[1], w.shape[2]);
  ConvTaps p;
  p.bias = call.inputs() > 2;
  p.activation = activation_of(call);
  const int64_t filter = g.taps() * g.group_channels();
  lower_taps(call, g, input_side(call, g), output_side(call, g), forward_lines(g.axis[0]), forward_lines(g.axis[1]),
             {filter, 1, g.group_channels()}, std::move(p), lowering);
}

void lower_conv2d_input_gradient(const Call& call, Lowering& lowering) {
  const graph::ValueType &dy = call.input(0), &w = call.input(1), &dx = call.output(0);
  if (is_depthwise(call, w.shape, dx.shape[0])) return lower_depthwise_input_gradient(call, lowering);
  const Geometry g = geometry(call, dx, dy, w.shape[1], w.shape[2]);
  const int64_t filter = g.taps() * g.group_channels();
  lower_taps(call, g, output_side(call, g), input_side(call, g), gradient_lines(g.axis[0]), gradient_lines(g.axis[1]),
             {1, filter, g.group_channels()}, {}, lowering);
}

void lower_conv2d_weight_gradient(const Call& call, Lowering& lowering) {
  const graph::ValueType &x = call.input(0), &dy = call.input(1);
  if (is_depthwise(call, call.output(0).shape, x.shape[0])) return lower_depthwise_weight_gradient(call, lowering);
  const std::vector<int64_t>& kernel = call.node.attributes.integers("kernel");
  const Geometry g = geometry(call, x, dy, kernel[0], kernel[1]);
  const int64_t lanes = call.lanes(), group = compact_group(call, g);
  WeightGradient p;
  p.samples = call.samples, p.images_per_block = x.rows, p.images = g.images;
  p.height = g.axis[0].in, p.width = g.axis[1].in, p.out_height = g.axis[0].out, p.out_width = g.axis[1].out;
  for (size_t i = 0; i < 2; ++i) p.stride[i] = g.axis[i].stride, p.padding[i] = g.axis[i].padding;
  p.channels = g.group_channels(), p.taps = g.taps();
  Side from = input_side(call, g), gradient = output_side(call, g);
  if (group > 0) compact_operands(call, g, group, from, gradient, p, lowering);
  p.x_channel = from.plane(), p.x_image = g.channels * p.x_channel;
  p.x_row = p.stride[0] * from.row(), p.x_pixel = p.stride[1] * lanes;
  p.y_channel = gradient.plane(), p.y_image = g.out_channels * p.y_channel, p.y_row = gradient.row();
  p.tiles = channel_tiles(g.groups, g.group_out_channels(), g.group_channels() * p.x_channel);
  p.accumulates = call.graph.value(call.node.outputs[0]).place == graph::Place::gradient;
  const bool by_tap = p.channels >= tile_pixels(call.lanes());
  cut(call, g, by_tap, p);
  p.padded = group == 0 && !by_tap && p.padding[0] + p.padding[1] > 0;
  if (by_tap) {
    set_pixels(call, g, from, p);
  } else if (p.padded) {
    const int64_t row = p.patch_width * lanes;
    set_offsets(g, p.patch_height * row, row, lanes, p);
    lowering.scratch(p.visit_images * p.channels * p.patch_height * row * 4);
  } else {
    set_offsets(g, p.x_channel, from.row(), from.pixel, p);
  }
  p.partial_at = lowering.workspace(p.slices * g.out_channels * p.channels * p.taps * 4);
  const int64_t units = p.slices * p.tile_parts * p.chunks;
  lowering.phase(BRISK_PHASE(call, conv_weight_gradient), units, p);
  lowering.phase(BRISK_PHASE(call, add_weight_slices), g.out_channels, std::move(p));
}

}  // namespace brisk::backend::cpu
