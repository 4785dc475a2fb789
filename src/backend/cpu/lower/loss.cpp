// Losses over class labels, and accuracy.
#include <algorithm>

#include "backend/cpu/kernels/loss.h"
#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"

namespace brisk::backend::cpu {
namespace {

constexpr int64_t kUnitFloats = 4096;

Classification shape_of(const Call& call, const graph::ValueType& by_class) {
  Classification c;
  c.samples = call.samples;
  c.rows = by_class.rows;
  c.classes = by_class.shape[0];
  c.ignored = call.node.attributes.integer("ignore_index");
  c.per_unit = std::max<int64_t>(1, kUnitFloats / (c.classes * call.lanes()));
  return c;
}

Classification loss_of(const Call& call, const graph::ValueType& by_class) {
  Classification c = shape_of(call, by_class);
  const std::vector<double>& weights = call.node.attributes.reals("class_weights");
  const double smoothing = call.node.attributes.real("label_smoothing");
  c.weighted = !weights.empty();
  c.class_weights.assign(static_cast<size_t>(c.classes), 1.0f);
  double sum = static_cast<double>(c.classes);
  if (c.weighted) {
    std::transform(weights.begin(), weights.end(), c.class_weights.begin(),
                   [](double w) { return static_cast<float>(w); });
    sum = 0;
    for (const double w : weights) sum += w;
  }
  c.chosen = static_cast<float>(1 - smoothing);
  c.spread = static_cast<float>(smoothing / static_cast<double>(c.classes));
  c.weight_sum = static_cast<float>(sum);
  return c;
}

void add_phase(const Call& call, Classification c, PhaseFunction kernel, Lowering& lowering) {
  const int64_t units = ceil_divide(call.blocks() * c.rows, c.per_unit);
  lowering.phase(kernel, units, std::move(c));
}

/// Labels are looked at in one place, in order: within the only unit, or in a phase of their own.
void add_checked_phase(const Call& call, Classification c, PhaseFunction kernel, Lowering& lowering) {
  c.checks = call.blocks() * c.rows <= c.per_unit;
  if (!c.checks) lowering.phase(BRISK_PHASE(call, check_labels), 1, c);
  add_phase(call, std::move(c), kernel, lowering);
}

}  // namespace

void lower_nll(const Call& call, Lowering& lowering) {
  add_checked_phase(call, loss_of(call, call.input(0)), BRISK_PHASE(call, nll), lowering);
}

void lower_nll_gradient(const Call& call, Lowering& lowering) {
  add_phase(call, loss_of(call, call.output(0)), BRISK_PHASE(call, nll_gradient), lowering);
}

void lower_softmax_cross_entropy(const Call& call, Lowering& lowering) {
  add_checked_phase(call, loss_of(call, call.input(0)), BRISK_PHASE(call, cross_entropy), lowering);
}

void lower_softmax_cross_entropy_gradient(const Call& call, Lowering& lowering) {
  add_phase(call, loss_of(call, call.output(0)), BRISK_PHASE(call, cross_entropy_gradient), lowering);
}

void lower_accuracy(const Call& call, Lowering& lowering) {
  add_phase(call, shape_of(call, call.input(0)), BRISK_PHASE(call, accuracy), lowering);
}

}  // namespace brisk::backend::cpu
