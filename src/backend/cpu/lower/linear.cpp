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
  const graph::ValueType& w = call.input(1);
  LinearTaps p;
  p.bias = call.inputs() > 2;
  p.activation = activation_of(call);
  lower_product(call, w.shape[1], w.shape[0], 1, w.shape[1], p, lowering);
}

void lower_linear_input_gradient(const Call& call, Lowering& lowering) {
  const graph::ValueType& w = call.input(1);
  lower_product(call, w.shape[0], w.shape[1], w.shape[1], 1, {}, lowering);
}

void lower_linear_weight_gradient(const Call& call, Lowering& lowering) {
  const graph::ValueType &x = call.input(0), &dy = call.input(1);
  const int64_t lanes = call.lanes(), vectors = tile_pixels(call.lanes());
  LinearWeightGradient p;
  p.samples = call.samples, p.images_per_block = x.rows, p.images = call.blocks() * x.rows;
  p.outputs = dy.shape[0], p.features = x.shape[0];
  p.vectors = ceil_divide(p.features, lanes);
  p.feature_tiles = ceil_divide(p.vectors, vectors);
  p.output_tiles = ceil_divide(p.outputs, kTileChannels);
  p.output_parts = parts_of(p.output_tiles, p.feature_tiles);
  p.image_chunk = kImageChunk;
  p.accumulates = in_gradient_memory(call);
  p.turned_at = lowering.workspace(p.feature_tiles * p.samples * x.rows * vectors * lanes * 4);
  lowering.phase(BRISK_PHASE(call, turn_features), p.feature_tiles, p);
  lowering.phase(BRISK_PHASE(call, linear_weight_gradient), p.feature_tiles * p.output_parts, p);
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
