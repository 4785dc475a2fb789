// Pooling: which inputs a window holds, and which windows hold an input.
#include "backend/cpu/kernels/pool.h"

#include <algorithm>

#include "backend/cpu/kernels/single.h"
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

/// All windows are 2 and whole.
bool twos(const Axis& a) { return a.kernel == 2 && a.padding == 0; }

/// The windows cover each element once.
bool tiles(const Axis& a) { return a.padding == 0 && a.stride == a.kernel && a.out * a.kernel == a.in; }

/// `backward`: ranges are those of the inputs, for a kernel that gathers an input's gradient.
void lower_pooling(const Call& call, const Axis& height, const Axis& width, bool backward, PhaseFunction function,
                   Lowering& lowering) {
  Pooling p;
  p.planes = call.blocks() * call.input(0).rows * call.input(0).shape[0];
  p.planes_per_unit = ceil_divide(p.planes, kUnits);
  p.height = backward ? height.out : height.in, p.width = backward ? width.out : width.in;
  p.rows = backward ? outputs_of_inputs(height) : inputs_of_outputs(height);
  p.columns = backward ? outputs_of_inputs(width) : inputs_of_outputs(width);
  p.count = static_cast<float>(height.kernel * width.kernel);
  p.twos = twos(height) && twos(width);
  const int64_t units = ceil_divide(p.planes, p.planes_per_unit);
  lowering.phase(function, units, std::move(p));
}

void lower_forward(const Call& call, PhaseFunction function, Lowering& lowering) {
  const graph::ValueType &x = call.input(0), &y = call.output(0);
  lower_pooling(call, axis(call, x, y, 0), axis(call, x, y, 1), false, function, lowering);
}

void lower_backward(const Call& call, PhaseFunction gather, PhaseFunction scatter_twos, Lowering& lowering) {
  const graph::ValueType &dy = call.input(0), &dx = call.output(0);
  const Axis height = axis(call, dx, dy, 0), width = axis(call, dx, dy, 1);
  const bool scatters = scatter_twos && twos(height) && twos(width) && tiles(height) && tiles(width);
  lower_pooling(call, height, width, !scatters, scatters ? scatter_twos : gather, lowering);
}

}  // namespace

void lower_max_pool2d(const Call& call, Lowering& lowering) {
  lower_forward(call, BRISK_PHASE(call, max_pool), lowering);
}

void lower_max_pool2d_gradient(const Call& call, Lowering& lowering) {
  lower_backward(call, BRISK_PHASE(call, max_pool_gradient), BRISK_PHASE(call, max_pool_scatter), lowering);
}

void lower_single_max_pool2d(const Call& call, Lowering& lowering) {
  lower_forward(call, BRISK_PHASE(call, single_max_pool), lowering);
}

void lower_single_avg_pool2d(const Call& call, Lowering& lowering) {
  lower_forward(call, BRISK_PHASE(call, single_average_pool), lowering);
}

void lower_avg_pool2d(const Call& call, Lowering& lowering) {
  lower_forward(call, BRISK_PHASE(call, average_pool), lowering);
}

void lower_avg_pool2d_gradient(const Call& call, Lowering& lowering) {
  lower_backward(call, BRISK_PHASE(call, average_pool_gradient), nullptr, lowering);
}

}  // namespace brisk::backend::cpu
