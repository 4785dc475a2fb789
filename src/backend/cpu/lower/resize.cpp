// Resizing: which pixels each output is made of, and turned round for the gradient.
#include "backend/cpu/kernels/resize.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/lower/dims.h"
#include "backend/cpu/lower/lower.h"

namespace brisk::backend::cpu {
namespace {

constexpr int64_t kUnits = 64;

void add(AxisWeights& axis, int64_t index, double weight) {
  if (weight == 0) return;
  axis.index.push_back(static_cast<int32_t>(index));
  axis.weight.push_back(static_cast<float>(weight));
}

/// PyTorch's rules: nearest computes in float; bilinear has centres at i + 0.5, unless corners are aligned.
AxisWeights weights(const graph::Attributes& a, size_t axis, int64_t in, int64_t out) {
  const double step = a.reals("step")[axis];
  const bool nearest = a.text("mode") == "nearest", aligned = a.flag("aligned");
  AxisWeights made;
  for (int64_t i = 0; i < out; ++i) {
    made.first.push_back(static_cast<int32_t>(made.index.size()));
    const auto at = static_cast<double>(i);
    if (nearest) {
      const float position = std::floor(static_cast<float>(i) * static_cast<float>(step));
      add(made, std::min(static_cast<int64_t>(position), in - 1), 1);
      continue;
    }
    const double position = aligned ? at * step : std::max(0.0, (at + 0.5) * step - 0.5);
    const int64_t below = std::min(static_cast<int64_t>(position), in - 1), above = std::min(below + 1, in - 1);
    const double share = above == below ? 0 : position - static_cast<double>(below);
    add(made, below, 1 - share);
    add(made, above, share);
  }
  made.first.push_back(static_cast<int32_t>(made.index.size()));
  return made;
}

/// What each of the `in` pixels gives, from what each output takes.
AxisWeights transposed(const AxisWeights& forward, int64_t in) {
  AxisWeights made;
  for (int64_t pixel = 0; pixel < in; ++pixel) {
    made.first.push_back(static_cast<int32_t>(made.index.size()));
    for (size_t i = 0; i + 1 < forward.first.size(); ++i) {
      for (auto k = static_cast<size_t>(forward.first[i]); k < static_cast<size_t>(forward.first[i + 1]); ++k) {
        if (forward.index[k] == pixel) add(made, static_cast<int64_t>(i), static_cast<double>(forward.weight[k]));
      }
    }
  }
  made.first.push_back(static_cast<int32_t>(made.index.size()));
  return made;
}

/// x: the forward node's input.
void lower(const Call& call, const graph::ValueType& x, const graph::ValueType& y, bool backward, Lowering& lowering) {
  const graph::Attributes& a = call.node.attributes;
  Resize p;
  p.planes = call.blocks() * x.rows * x.shape[0];
  p.planes_per_unit = ceil_divide(p.planes, kUnits);
  p.height = call.input(0).shape[1], p.width = call.input(0).shape[2];
  p.out_height = call.output(0).shape[1], p.out_width = call.output(0).shape[2];
  p.rows = weights(a, 0, x.shape[1], y.shape[1]);
  p.columns = weights(a, 1, x.shape[2], y.shape[2]);
  if (backward) {
    p.rows = transposed(p.rows, x.shape[1]);
    p.columns = transposed(p.columns, x.shape[2]);
  }
  const int64_t units = ceil_divide(p.planes, p.planes_per_unit);
  lowering.phase(BRISK_PHASE(call, resize), units, std::move(p));
}

}  // namespace

void lower_resize2d(const Call& call, Lowering& lowering) {
  lower(call, call.input(0), call.output(0), false, lowering);
}

void lower_resize2d_gradient(const Call& call, Lowering& lowering) {
  lower(call, call.output(0), call.input(0), true, lowering);
}

}  // namespace brisk::backend::cpu
