// Batch normalization: training, inference, gradient, running statistics.
#include <algorithm>

#include "backend/cpu/kernels/norm.h"
#include "backend/cpu/lower/activation.h"
#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"

namespace brisk::backend::cpu {
namespace {

constexpr int64_t kUnitFloats = 8192;

ChannelSlices cut_channels(const Call& call, const graph::ValueType& type) {
  ChannelSlices c;
  c.samples = call.samples;
  c.rows = type.rows;
  c.lines = call.blocks() * type.rows;
  c.channels = type.shape[0];
  c.vectors = type.shape.count() / c.channels;
  const int64_t most = kUnitFloats / call.lanes();
  c.segments = ceil_divide(c.vectors, most);
  c.per_segment = ceil_divide(c.vectors, c.segments);
  c.segments = ceil_divide(c.vectors, c.per_segment);
  if (c.segments == 1) c.lines_per_slice = std::max<int64_t>(1, most / c.vectors);
  c.lines_per_slice = std::min(c.lines_per_slice, c.lines);
  c.slices = c.segments > 1 ? c.lines * c.segments : ceil_divide(c.lines, c.lines_per_slice);
  c.channels_per_unit = std::max<int64_t>(1, most / (c.lines_per_slice * c.per_segment));
  c.units_per_slice = ceil_divide(c.channels, c.channels_per_unit);
  return c;
}

BatchNorm make(const Call& call, const graph::ValueType& type) {
  BatchNorm norm;
  norm.cut = cut_channels(call, type);
  norm.count = static_cast<double>(call.samples * type.rows * norm.cut.vectors);
  norm.channels_per_combine = std::max<int64_t>(16, 4096 / norm.cut.slices);
  return norm;
}

void add_workspace(BatchNorm& norm, Lowering& lowering) {
  norm.partials_at = lowering.workspace(norm.cut.channels * norm.cut.slices * 2 * 8);
  norm.coefficients_at = lowering.workspace(norm.cut.channels * 2 * 4);
}

void add_phases(const BatchNorm& norm, PhaseFunction slices, PhaseFunction combine, PhaseFunction apply,
                Lowering& lowering) {
  const int64_t units = norm.cut.slices * norm.cut.units_per_slice;
  if (slices != nullptr) lowering.phase(slices, units, norm);
  lowering.phase(combine, ceil_divide(norm.cut.channels, norm.channels_per_combine), norm);
  lowering.phase(apply, units, norm);
}

void set_forward(const Call& call, BatchNorm& norm) {
  norm.epsilon = call.node.attributes.real("epsilon");
  norm.activation = activation_of(call);
  norm.residual = call.inputs() > 5;
}

}  // namespace

void lower_batch_norm(const Call& call, Lowering& lowering) {
  BatchNorm norm = make(call, call.input(0));
  set_forward(call, norm);
  add_workspace(norm, lowering);
  add_phases(norm, BRISK_PHASE(call, batch_norm_slices), BRISK_PHASE(call, batch_norm_combine),
             BRISK_PHASE(call, batch_norm_apply), lowering);
}

void lower_batch_norm_inference(const Call& call, Lowering& lowering) {
  BatchNorm norm = make(call, call.input(0));
  set_forward(call, norm);
  norm.channels_per_combine = 4096;
  norm.coefficients_at = lowering.workspace(norm.cut.channels * 4);
  add_phases(norm, nullptr, BRISK_PHASE(call, batch_norm_prepare), BRISK_PHASE(call, batch_norm_apply_given), lowering);
}

void lower_batch_norm_gradient(const Call& call, Lowering& lowering) {
  BatchNorm norm = make(call, call.input(0));
  norm.activation = activation_of(call);
  const auto is_gradient = [&](size_t output) {
    return call.graph.value(call.node.outputs[output]).place == graph::Place::gradient;
  };
  norm.adds_gamma = is_gradient(1);
  norm.adds_beta = is_gradient(2);
  add_workspace(norm, lowering);
  add_phases(norm, BRISK_PHASE(call, batch_norm_gradient_slices), BRISK_PHASE(call, batch_norm_gradient_combine),
             BRISK_PHASE(call, batch_norm_gradient_apply), lowering);
}

void lower_batch_norm_commit(const Call& call, Lowering& lowering) {
  BatchNorm norm;
  norm.cut.channels = call.output(0).elements();
  norm.momentum = static_cast<float>(call.node.attributes.real("momentum"));
  norm.staged = call.inputs() == 6;
  norm.chained = call.node.attributes.flag("chained");
  lowering.phase(BRISK_PHASE(call, batch_norm_commit), 1, norm);
}

}  // namespace brisk::backend::cpu
