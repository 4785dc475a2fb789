// Pooling: which inputs a window holds, and which windows hold an input.
#include "backend/cpu/kernels/pool.h"

#include <algorithm>

#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"

namespace brisk::backend::cpu {
namespace {

constexpr int64_t kUnits = 64;

struct Axis {
  int64_t in = 0, out = 0, kernel = 1, stride = 1, padding = 0;
};

Axis axis(const Call& call, const graph::ValueType& in, const graph::ValueType& out, size_t i) {
  const graph::Attributes& a = call.node.attributes;
  const int dim = static_cast<int>(i) + 1;
  return {in.shape[dim], out.shape[dim], a.integers("kernel")[i], a.integers("stride")[i], a.integers("padding")[i]};
}

WindowRange range(int64_t first, int64_t last, int64_t size) {
  return {static_cast<int32_t>(std::clamp<int64_t>(first, 0, size)),
          static_cast<int32_t>(std::clamp<int64_t>(last, 0, size))};
}

std::vector<WindowRange> inputs_of_outputs(const Axis& a) {
  std::vector<WindowRange> ranges;
  for (int64_t o = 0; o < a.out; ++o) {
    const int64_t first = o * a.stride - a.padding;
    ranges.push_back(range(first, first + a.kernel, a.in));
  }
  return ranges;
}

/// Outputs o with o stride - padding <= i < o stride - padding + kernel.
std::vector<WindowRange> outputs_of_inputs(const Axis& a) {
  std::vector<WindowRange> ranges;
  for (int64_t i = 0; i < a.in; ++i) {
    const int64_t past = std::max<int64_t>(0, i + a.padding - a.kernel + 1);
    ranges.push_back(range(ceil_divide(past, a.stride), (i + a.padding) / a.stride + 1, a.out));
  }
  return ranges;
}

void lower_pooling(const Call& call, bool gradient, PhaseFunction function, Lowering& lowering) {
  const graph::ValueType &read = call.input(0), &written = call.output(0);
  const graph::ValueType &in = gradient ? written : read, &out = gradient ? read : written;
  const Axis height = axis(call, in, out, 0), width = axis(call, in, out, 1);
  Pooling p;
  p.planes = call.blocks() * in.rows * in.shape[0];
  p.planes_per_unit = ceil_divide(p.planes, kUnits);
  p.read_height = read.shape[1], p.read_width = read.shape[2];
  p.rows = gradient ? outputs_of_inputs(height) : inputs_of_outputs(height);
  p.columns = gradient ? outputs_of_inputs(width) : inputs_of_outputs(width);
  p.count = static_cast<float>(height.kernel * width.kernel);
  const int64_t units = ceil_divide(p.planes, p.planes_per_unit);
  lowering.phase(function, units, std::move(p));
}

}  // namespace

void lower_max_pool2d(const Call& call, Lowering& lowering) {
  lower_pooling(call, false, BRISK_PHASE(call, max_pool), lowering);
}

void lower_max_pool2d_gradient(const Call& call, Lowering& lowering) {
  lower_pooling(call, true, BRISK_PHASE(call, max_pool_gradient), lowering);
}

void lower_avg_pool2d(const Call& call, Lowering& lowering) {
  lower_pooling(call, false, BRISK_PHASE(call, average_pool), lowering);
}

void lower_avg_pool2d_gradient(const Call& call, Lowering& lowering) {
  lower_pooling(call, true, BRISK_PHASE(call, average_pool_gradient), lowering);
}

}  // namespace brisk::backend::cpu
