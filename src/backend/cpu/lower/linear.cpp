// Linear layers and sums per channel: strides, and how the work is cut.
#include "backend/cpu/kernels/linear.h"

#include <algorithm>

#include "backend/cpu/lower/activation.h"
#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"

namespace brisk::backend::cpu {
namespace {

constexpr int64_t kUnits = 16;             ///< enough for eight threads
constexpr int64_t kChunkBytes = 32 << 10;  ///< of x in a chunk of a tile's inputs
constexpr int64_t kImageChunk = 32;        ///< of a weight gradient
constexpr int64_t kSumVectors = 512;       ///< of a unit of a channel sum, about

/// Parts of `tiles` that make at least kUnits units of `others`.
int64_t parts_of(int64_t tiles, int64_t others) { return std::clamp<int64_t>(ceil_divide(kUnits, others), 1, tiles); }

/// Whether samples in lanes would leave half of the lanes or more without work.
bool small_batch(const Call& call) { return 2 * call.samples <= call.lanes(); }

TurnFeatures turn(const Call& call, bool tiled, Lowering& lowering) {
  const graph::ValueType& x = call.input(0);
  const int64_t lanes = call.lanes(), tile = tile_pixels(call.lanes());
  TurnFeatures t;
  t.samples = call.samples, t.images_per_block = x.rows, t.images = call.blocks() * x.rows;
  t.features = x.shape[0];
  t.vectors = ceil_divide(t.features, lanes), t.tiles = ceil_divide(t.vectors, tile);
  t.tiled = tiled;
  t.pitch = (tiled ? tile : t.vectors) * lanes;
  t.at = lowering.workspace((tiled ? t.tiles : 1) * t.rows() * t.pitch * 4);
  lowering.phase(BRISK_PHASE(call, turn_features), t.tiles, t);
  return t;
}

void lower_dots(const Call& call, Lowering& lowering) {
  LinearDots p;
  p.turned = turn(call, false, lowering);
  p.outputs = call.output(0).shape[0];
  p.output_tiles = ceil_divide(p.outputs, kDotOutputs);
  p.output_parts = std::min(kUnits, p.output_tiles);
  p.bias = call.inputs() > 2;
  p.activation = activation_of(call);
  lowering.phase(BRISK_PHASE(call, linear_dots), p.output_parts, p);
}

void lower_spread(const Call& call, Lowering& lowering) {
  const graph::ValueType &dy = call.input(0), &w = call.input(1);
  LinearSpread p;
  p.samples = call.samples, p.outputs = w.shape[0], p.features = w.shape[1];
  p.vectors = p.features / call.lanes();
  p.tiles = ceil_divide(p.vectors, tile_pixels(call.lanes()));
  p.units_per_image = p.tiles + (p.features % call.lanes() > 0 ? 1 : 0);
  lowering.phase(BRISK_PHASE(call, linear_spread), dy.rows * p.units_per_image, p);
}

void lower_product(const Call& call, int64_t inputs, int64_t outputs, int64_t w_input, int64_t w_output, LinearTaps p,
                   Lowering& lowering) {
  const int64_t lanes = call.lanes();
  p.inputs = inputs, p.outputs = outputs;
  p.images = call.blocks() * call.input(0).rows;
  const int64_t pixels = tile_pixels(call.lanes());
  p.image_tiles = ceil_divide(p.images, pixels);
  p.output_tiles = ceil_divide(outputs, kTileChannels);
  p.output_parts = parts_of(p.output_tiles, p.image_tiles);
  p.chunks = ceil_divide(inputs, std::max<int64_t>(1, kChunkBytes / (std::min(pixels, p.images) * lanes * 4)));
  p.strides.x_column = lanes, p.strides.x_pixel = inputs * lanes;
  p.strides.w_column = w_input, p.strides.w_tile = w_output;
  p.strides.y_channel = lanes, p.strides.y_pixel = outputs * lanes;
  const int64_t units = p.image_tiles * p.output_parts;
  lowering.phase(BRISK_PHASE(call, linear_taps), units, p);
}

bool in_gradient_memory(const Call& call) {
  return call.graph.value(call.node.outputs[0]).place == graph::Place::gradient;
}

}  // namespace

void lower_linear(const Call& call, Lowering& lowering) {
  if (small_batch(call)) return lower_dots(call, lowering);
  const graph::ValueType& w = call.input(1);
  LinearTaps p;
  p.bias = call.inputs() > 2;
  p.activation = activation_of(call);
  lower_product(call, w.shape[1], w.shape[0], 1, w.shape[1], p, lowering);
}

void lower_linear_input_gradient(const Call& call, Lowering& lowering) {
  const graph::ValueType& w = call.input(1);
  if (small_batch(call) && w.shape[1] >= call.lanes()) return lower_spread(call, lowering);
  lower_product(call, w.shape[0], w.shape[1], w.shape[1], 1, {}, lowering);
}

void lower_linear_weight_gradient(const Call& call, Lowering& lowering) {
  LinearWeightGradient p;
  p.turned = turn(call, true, lowering);
  p.outputs = call.input(1).shape[0];
  p.output_tiles = ceil_divide(p.outputs, kTileChannels);
  p.output_parts = parts_of(p.output_tiles, p.turned.tiles);
  p.image_chunk = kImageChunk;
  p.accumulates = in_gradient_memory(call);
  lowering.phase(BRISK_PHASE(call, linear_weight_gradient), p.turned.tiles * p.output_parts, p);
}

void lower_channel_sum(const Call& call, Lowering& lowering) {
  const graph::ValueType& dy = call.input(0);
  ChannelSum p;
  p.samples = call.samples, p.images_per_block = dy.rows, p.images = call.blocks() * dy.rows;
  p.channels = dy.shape[0];
  p.inner = dy.shape.count() / p.channels;
  p.accumulates = in_gradient_memory(call);
  // Slices of the images where the channels alone make too few units.
  const int64_t slices = std::min(ceil_divide(kUnits, p.channels), ceil_divide(p.images * p.inner, kSumVectors));
  p.slices = std::clamp<int64_t>(slices, 1, p.images);
  const int64_t each = ceil_divide(kSumVectors, p.inner * ceil_divide(p.images, p.slices));
  p.channels_per_unit = std::clamp<int64_t>(each, 1, ceil_divide(p.channels * p.slices, kUnits));
  p.channel_units = ceil_divide(p.channels, p.channels_per_unit);
  if (p.slices > 1) p.partial_at = lowering.workspace(p.slices * p.channels * 4);
  lowering.phase(BRISK_PHASE(call, channel_sum), p.slices * p.channel_units, p);
  if (p.slices > 1) lowering.phase(BRISK_PHASE(call, add_channel_slices), 1, p);
}

void lower_bias_add(const Call& call, Lowering& lowering) {
  const graph::ValueType& x = call.input(0);
  const int64_t channels = x.shape[0];
  const BiasAdd p{channels, x.shape.count() / channels};
  lowering.phase(BRISK_PHASE(call, bias_add), call.blocks() * x.rows, p);
}

}  // namespace brisk::backend::cpu
