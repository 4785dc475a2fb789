// One sample: the spread image of a convolution, and calls of kernels for values without a batch; several samples: each
// of them so.
#include "backend/cpu/kernels/single.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "backend/cpu/lower/activation.h"
#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"
#include "core/text.h"

namespace brisk::backend::cpu {
namespace {

using graph::Graph;
using graph::ValueId;

constexpr int64_t kUnits = 16;

/// Some nodes of a graph in a graph of their own, in which one sample's values have no batch.
class Unbatched {
 public:
  Unbatched(const Graph& graph, std::span<const int32_t> nodes) {
    for (const int32_t index : nodes) graph_.nodes.push_back(graph.nodes[static_cast<size_t>(index)]);
    for (graph::Node& node : graph_.nodes)
      for (auto* list : {&node.inputs, &node.outputs})
        for (ValueId& id : *list) id = copy(graph, id);
  }
  explicit Unbatched(const Call& call) {
    graph_.nodes.push_back(call.node);
    for (auto* list : {&graph_.nodes[0].inputs, &graph_.nodes[0].outputs})
      for (ValueId& id : *list) id = copy(call.graph, id);
  }
  const Graph& graph() const { return graph_; }
  std::vector<ValueId> moved(std::span<const ValueId> ids) const {
    std::vector<ValueId> out;
    for (const ValueId id : ids) out.push_back(moved_.at(id));
    return out;
  }

 private:
  ValueId copy(const Graph& graph, ValueId id) {
    const auto known = moved_.find(id);
    if (known != moved_.end()) return known->second;
    graph::Value value = graph.value(id);
    value.type.rows = 0;
    graph_.values.push_back(value);
    return moved_[id] = static_cast<ValueId>(graph_.values.size()) - 1;
  }
  Graph graph_;
  std::map<ValueId, ValueId> moved_;
};

template <void (*kLower)(const Call&, Lowering&)>
void lower_unbatched(const Call& call, Lowering& lowering) {
  const Unbatched alone(call);
  kLower({alone.graph(), alone.graph().nodes[0], 1, call.isa}, lowering);
}

/// One axis of a convolution.
struct Axis {
  int64_t in = 0, out = 0, kernel = 1, stride = 1, padding = 0, dilation = 1;
  /// The input lies as its spread form would.
  bool direct() const { return kernel == 1 && stride == 1 && padding == 0; }
};

Axis axis(const Call& call, size_t i) {
  const int dim = static_cast<int>(i) + 1;
  const graph::Attributes& a = call.node.attributes;
  return {call.input(0).shape[dim], call.output(0).shape[dim], call.input(1).shape[dim],
          a.integers("stride")[i],  a.integers("padding")[i],  a.integers("dilation")[i]};
}

/// Tiles of at most kTileChannels output channels, none across groups.
std::vector<ChannelTile> channel_tiles(int64_t groups, int64_t group_channels, int64_t x_group, int64_t filter) {
  std::vector<ChannelTile> tiles;
  const int64_t each = ceil_divide(group_channels, kTileChannels);
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t i = 0; i < each; ++i) {
      const int64_t first = g * group_channels + group_channels * i / each;
      const int64_t last = g * group_channels + group_channels * (i + 1) / each;
      tiles.push_back({static_cast<int32_t>(first), static_cast<int32_t>(last - first), g * x_group, first * filter});
    }
  return tiles;
}

/// Rests modulo the stride that the rows of taps have, and the taps of each: every `step`-th row of the kernel.
void add_phases(const Axis& height, int64_t out_width, int64_t w_row, SpreadImage& spread, SingleConv& p) {
  const int64_t step = height.stride / std::gcd(height.stride, height.dilation);
  spread.rows = ((height.out - 1) * height.stride + (height.kernel - 1) * height.dilation) / height.stride + 1;
  const int64_t phases = std::min(step, height.kernel);
  for (int64_t k = 0; k < phases; ++k) {
    const int64_t first = k * height.dilation;
    spread.phases.push_back(first % height.stride);
    p.phases.push_back(
        {(k * spread.rows + first / height.stride) * out_width, k * w_row, ceil_divide(height.kernel - k, step)});
  }
  p.strides.x_row = step * height.dilation / height.stride * out_width;
  p.strides.w_row = step * w_row;
}

/// A phase of one sample, for several.
struct EachSample {
  Phase phase;
  std::vector<int64_t> in, out;  ///< bytes of a sample of each operand; 0: the same for all samples
  int64_t workspace = 0;         ///< bytes of a sample
  int64_t pointers_at = 0;       ///< in scratch, behind what the phase needs: one sample's operands
};

int64_t sample_bytes(const Graph& graph, ValueId id) {
  const graph::ValueType& type = graph.type(id);
  return type.batched() ? type.elements() * size_of(type.dtype) : 0;
}

/// A unit: a unit of the phase, for one sample.
void run_each_sample(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const EachSample*>(parameters);
  auto** const out = reinterpret_cast<void**>(operands.scratch + p.pointers_at);
  auto** const in = const_cast<const void**>(out + p.out.size());
  for (int64_t unit = first; unit < last;) {
    const int64_t sample = unit / p.phase.units, begin = unit % p.phase.units;
    const int64_t end = std::min(p.phase.units, begin + last - unit);
    for (size_t i = 0; i < p.in.size(); ++i) in[i] = static_cast<const char*>(operands.in[i]) + sample * p.in[i];
    for (size_t i = 0; i < p.out.size(); ++i) {
      auto* const all = static_cast<char*>(operands.out[i]);
      out[i] = all == nullptr ? nullptr : all + sample * p.out[i];
    }
    Operands one = operands;
    one.in = in, one.out = out;
    one.workspace = operands.workspace + sample * p.workspace;
    p.phase.function(p.phase.parameters.get(), one, begin, end);
    unit += end - begin;
  }
}

SingleChannels channels_of(const Call& call) {
  SingleChannels p;
  p.channels = call.input(0).shape[0];
  p.inner = call.input(0).shape.count() / p.channels;
  p.parts = std::min(kUnits, p.channels);
  return p;
}

}  // namespace

std::string not_single(const Call& call) {
  if (call.samples > most_singles(call.isa)) return cat("is for at most ", most_singles(call.isa), " samples");
  for (const auto* list : {&call.node.inputs, &call.node.outputs})
    for (const ValueId id : *list)
      if (call.graph.type(id).rows > 1) return cat("is for one row a sample, here are ", call.graph.type(id).rows);
  return {};
}

void repeat(const Lowering& one, const Graph& graph, std::span<const ValueId> inputs, std::span<const ValueId> outputs,
            int64_t samples, Lowering& lowering) {
  const bool batched =
      std::any_of(outputs.begin(), outputs.end(), [&](ValueId id) { return graph.type(id).batched(); });
  if (samples == 1 || !batched) {
    lowering = one;
    return;
  }
  EachSample p;
  for (const ValueId id : inputs) p.in.push_back(sample_bytes(graph, id));
  for (const ValueId id : outputs) p.out.push_back(sample_bytes(graph, id));
  p.workspace = one.workspace_bytes;
  p.pointers_at = ceil_divide(one.scratch_bytes, 64) * 64;
  lowering.workspace(samples * one.workspace_bytes);
  lowering.scratch(p.pointers_at + static_cast<int64_t>((p.in.size() + p.out.size()) * sizeof(void*)));
  for (const Phase& phase : one.phases) {
    p.phase = phase;
    lowering.phase(run_each_sample, samples * phase.units, p);
  }
}

void lower_single_conv2d(const Call& call, Lowering& lowering) {
  const graph::ValueType &x = call.input(0), &w = call.input(1), &y = call.output(0);
  const Axis height = axis(call, 0), width = axis(call, 1);
  const int64_t groups = call.node.attributes.integer("groups");
  const int64_t channels = x.shape[0] / groups, filter = w.shape.count() / w.shape[0];
  SpreadImage spread;
  spread.height = height.in, spread.width = width.in, spread.out_width = width.out;
  spread.stride[0] = height.stride, spread.stride[1] = width.stride;
  spread.padding[0] = height.padding, spread.padding[1] = width.padding;
  spread.columns = width.kernel, spread.dilation = width.dilation;
  SingleConv p;
  p.bias = call.inputs() > 2;
  p.activation = activation_of(call);
  p.columns = width.kernel;
  p.pixels = height.out * width.out;
  add_phases(height, width.out, width.kernel * channels, spread, p);
  TapStrides& s = p.strides;
  s.channels = channels;
  s.x_channel = spread.channel(), s.x_pixel = call.lanes();
  s.x_column = static_cast<int64_t>(spread.phases.size()) * spread.rows * width.out;
  s.w_channel = 1, s.w_column = channels, s.w_tile = filter;
  s.y_channel = p.pixels, s.y_pixel = call.lanes();
  p.tiles = channel_tiles(groups, y.shape[0] / groups, channels * s.x_channel, filter);
  if (!height.direct() || !width.direct() || p.pixels % call.lanes() != 0) {
    p.at = spread.at = lowering.workspace((x.shape[0] * spread.channel() + call.lanes()) * 4);
    lowering.phase(BRISK_PHASE(call, spread_image), x.shape[0], std::move(spread));
  }
  const int64_t vectors = ceil_divide(p.pixels, call.lanes());
  p.pixel_tiles = ceil_divide(vectors, tile_pixels(call.lanes()));
  p.tile_parts = std::clamp<int64_t>(ceil_divide(kUnits, p.pixel_tiles), 1, static_cast<int64_t>(p.tiles.size()));
  const int64_t units = p.pixel_tiles * p.tile_parts;
  lowering.phase(BRISK_PHASE(call, single_conv), units, std::move(p));
}

void lower_single_linear(const Call& call, Lowering& lowering) {
  SingleLinear p;
  p.samples = call.samples;
  p.outputs = call.input(1).shape[0], p.features = call.input(1).shape[1];
  p.output_parts = std::min(kUnits, ceil_divide(p.outputs, kSingleOutputs));
  p.bias = call.inputs() > 2;
  p.activation = activation_of(call);
  lowering.phase(BRISK_PHASE(call, single_linear), p.output_parts, p);
}

void lower_single_batch_norm_inference(const Call& call, Lowering& lowering) {
  SingleChannels p = channels_of(call);
  p.epsilon = call.node.attributes.real("epsilon");
  p.residual = call.inputs() > 5;
  p.activation = activation_of(call);
  lowering.phase(BRISK_PHASE(call, single_batch_norm_inference), p.parts, p);
}

void lower_single_bias_add(const Call& call, Lowering& lowering) {
  const SingleChannels p = channels_of(call);
  lowering.phase(BRISK_PHASE(call, single_bias_add), p.parts, p);
}

void lower_single_load(const Call& call, Lowering& lowering) { lower_unbatched<lower_load>(call, lowering); }
void lower_single_store(const Call& call, Lowering& lowering) { lower_unbatched<lower_store>(call, lowering); }
void lower_single_elementwise(const Call& call, Lowering& lowering) {
  lower_unbatched<lower_elementwise>(call, lowering);
}
void lower_single_reduce(const Call& call, Lowering& lowering) { lower_unbatched<lower_reduce>(call, lowering); }
void lower_single_expand(const Call& call, Lowering& lowering) { lower_unbatched<lower_expand>(call, lowering); }
void lower_single_reshape(const Call& call, Lowering& lowering) { lower_unbatched<lower_reshape>(call, lowering); }
void lower_single_concat(const Call& call, Lowering& lowering) { lower_unbatched<lower_concat>(call, lowering); }
void lower_single_slice(const Call& call, Lowering& lowering) { lower_unbatched<lower_slice>(call, lowering); }
void lower_single_softmax(const Call& call, Lowering& lowering) { lower_unbatched<lower_softmax>(call, lowering); }

void lower_single_cast(const Call& call, Lowering& lowering) { lower_unbatched<lower_cast>(call, lowering); }

void lower_single_group(const Graph& graph, std::span<const int32_t> nodes, int64_t samples, Isa isa,
                        std::span<const ValueId> inputs, std::span<const ValueId> outputs, Lowering& lowering) {
  const Unbatched alone(graph, nodes);
  std::vector<int32_t> order(nodes.size());
  std::iota(order.begin(), order.end(), 0);
  Lowering one;
  lower_group(alone.graph(), order, 1, isa, alone.moved(inputs), alone.moved(outputs), one);
  repeat(one, graph, inputs, outputs, samples, lowering);
}

}  // namespace brisk::backend::cpu
