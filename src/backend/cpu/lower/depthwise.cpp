// Depthwise convolutions: which calls the kernels take, how weight gradients are cut.
#include "backend/cpu/kernels/depthwise.h"

#include <algorithm>

#include "backend/cpu/lower/activation.h"
#include "backend/cpu/lower/depthwise.h"
#include "backend/cpu/lower/dims.h"

namespace brisk::backend::cpu {
namespace {

constexpr int64_t kUnits = 64;  ///< of a weight gradient, where there are so many images

/// x, y: input and output of the forward convolution.
Depthwise describe(const Call& call, const graph::ValueType& x, const graph::ValueType& y, int64_t kernel) {
  const graph::Attributes& a = call.node.attributes;
  Depthwise p;
  p.kernel = kernel, p.stride = a.integers("stride")[0];
  for (size_t i = 0; i < 2; ++i) p.padding[i] = a.integers("padding")[i];
  p.samples = call.samples, p.images_per_block = x.rows;
  p.images = call.blocks() * x.rows, p.channels = x.shape[0];
  p.height = x.shape[1], p.width = x.shape[2], p.out_height = y.shape[1], p.out_width = y.shape[2];
  return p;
}

}  // namespace

bool is_depthwise(const Call& call, const Shape& weight, int64_t channels) {
  const graph::Attributes& a = call.node.attributes;
  const auto both = [](const std::vector<int64_t>& pair, int64_t value) {
    return pair[0] == value && pair[1] == value;
  };
  return a.integer("groups") == channels && weight[0] == channels && weight[1] == weight[2] &&
         both(a.integers("dilation"), 1) && both(a.integers("stride"), a.integers("stride")[0]) &&
         depthwise_has(weight[1], a.integers("stride")[0]);
}

void lower_depthwise(const Call& call, Lowering& lowering) {
  Depthwise p = describe(call, call.input(0), call.output(0), call.input(1).shape[1]);
  p.bias = call.inputs() > 2;
  p.activation = activation_of(call);
  lowering.phase(BRISK_PHASE(call, depthwise), p.images * p.channels, p);
}

void lower_depthwise_input_gradient(const Call& call, Lowering& lowering) {
  const Depthwise p = describe(call, call.output(0), call.input(0), call.input(1).shape[1]);
  lowering.phase(BRISK_PHASE(call, depthwise_input_gradient), p.images * p.channels, p);
}

void lower_depthwise_weight_gradient(const Call& call, Lowering& lowering) {
  Depthwise p = describe(call, call.input(0), call.input(1), call.output(0).shape[1]);
  p.slices = std::clamp<int64_t>(ceil_divide(kUnits, p.channels), 1, p.images);
  p.accumulates = call.graph.value(call.node.outputs[0]).place == graph::Place::gradient;
  p.partial_at = lowering.workspace(p.slices * p.channels * p.kernel * p.kernel * 4);
  lowering.phase(BRISK_PHASE(call, depthwise_weight_gradient), p.slices * p.channels, p);
  lowering.phase(BRISK_PHASE(call, depthwise_add_weight_slices), p.channels, p);
}

}  // namespace brisk::backend::cpu
