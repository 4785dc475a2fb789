// Random values, and samples dropped as a whole.
#include <algorithm>
#include <cmath>

#include "backend/cpu/kernels/draw.h"
#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"
#include "core/philox.h"

namespace brisk::backend::cpu {
namespace {

constexpr int64_t kUnitFloats = 8192;

uint64_t key_of(const Call& call) { return static_cast<uint64_t>(call.node.attributes.integer("stream")); }

void draw(const Call& call, PhaseFunction kernel, Draw d, Lowering& lowering) {
  d.key = key_of(call);
  d.elements = call.output(0).elements();
  d.per_unit = kUnitFloats / call.lanes();
  d.units_per_block = ceil_divide(d.elements, d.per_unit);
  lowering.phase(kernel, call.blocks() * d.units_per_block, d);
}

float real(const Call& call, std::string_view name) { return static_cast<float>(call.node.attributes.real(name)); }

}  // namespace

void lower_random_normal(const Call& call, Lowering& lowering) {
  Draw d;
  d.factor = real(call, "deviation");
  d.offset = real(call, "mean");
  draw(call, BRISK_PHASE(call, draw_normal), d, lowering);
}

void lower_random_uniform(const Call& call, Lowering& lowering) {
  Draw d;
  d.offset = real(call, "low");
  d.factor = static_cast<float>(call.node.attributes.real("high") - call.node.attributes.real("low"));
  d.most = std::nextafter(real(call, "high"), real(call, "low"));
  draw(call, BRISK_PHASE(call, draw_uniform), d, lowering);
}

void lower_stochastic_depth(const Call& call, Lowering& lowering) {
  const graph::ValueType& type = call.output(0);
  const double rate = call.node.attributes.real("rate");
  SampleDrop d;
  d.rows = type.rows;
  d.elements = type.shape.count();
  d.per_unit = kUnitFloats / call.lanes();
  d.units_per_row = ceil_divide(d.elements, d.per_unit);
  d.key = key_of(call);
  d.threshold = static_cast<uint32_t>(bernoulli_threshold(rate));
  d.factor = static_cast<float>(1 / (1 - rate));
  lowering.phase(BRISK_PHASE(call, drop_samples), call.blocks() * d.rows * d.units_per_row, d);
}

}  // namespace brisk::backend::cpu
