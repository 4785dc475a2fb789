#include "kernels/elementwise_values.h"

#include <algorithm>

namespace brisk::kernels {
namespace {

int operand(const ElementwiseStep& step, int i) { return i == 0 ? step.a : i == 1 ? step.b : step.c; }

/// Until which step each step's result must be kept; its own number: not beyond the step that follows.
std::array<int, kElementwiseSteps> last_kept(std::span<const ElementwiseOutput> outputs, int sources,
                                             std::span<const ElementwiseStep> steps) {
  const int count = static_cast<int>(steps.size());
  std::array<int, kElementwiseSteps> last{};
  for (int i = 0; i < count; ++i) last[static_cast<size_t>(i)] = i;
  for (int i = 0; i < count; ++i) {
    const ElementwiseStep& step = steps[static_cast<size_t>(i)];
    for (int k = 0; k < operands_of(step.operation); ++k) {
      const int made_by = operand(step, k) - sources;
      if (made_by >= 0 && made_by < i - 1) last[static_cast<size_t>(made_by)] = i;
    }
  }
  for (const ElementwiseOutput& output : outputs) {
    const int made_by = output.value - sources;
    if (made_by < count - 1) last[static_cast<size_t>(made_by)] = count;
  }
  return last;
}

}  // namespace

int operands_of(Elementwise operation) {
  using E = Elementwise;
  switch (operation) {
    case E::where:
    case E::minimum_gradient:
    case E::maximum_gradient:
      return 3;
    case E::add:
    case E::sub:
    case E::mul:
    case E::div:
    case E::minimum:
    case E::maximum:
    case E::compare:
    case E::relu_gradient:
    case E::leaky_relu_gradient:
    case E::elu_gradient:
    case E::gelu_gradient:
    case E::gelu_tanh_gradient:
    case E::silu_gradient:
    case E::tanh_gradient:
    case E::sigmoid_gradient:
    case E::abs_gradient:
    case E::clamp_gradient:
    case E::huber_gradient:
    case E::where_gradient:
      return 2;
    default:
      return 1;
  }
}

ElementwisePlaces place_values(std::span<const ElementwiseOutput> outputs, int sources,
                               std::span<const ElementwiseStep> steps) {
  const auto last = last_kept(outputs, sources, steps);
  const int count = static_cast<int>(steps.size());
  ElementwisePlaces places;
  std::array<int, kElementwiseKept> holder{};  // 1 + the step whose result a slot holds; 0: free
  const auto place_of = [&](int value, int reader) -> int8_t {
    if (value < sources) return static_cast<int8_t>(value);
    if (value - sources == reader - 1) return kRegistersPlace;
    return places.result[static_cast<size_t>(value - sources)];
  };
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    for (int k = 0; k < 3; ++k) {
      places.operand[at][static_cast<size_t>(k)] =
          k < operands_of(steps[at].operation) ? place_of(operand(steps[at], k), i) : kNoPlace;
    }
    for (int& step : holder) {
      if (step > 0 && last[static_cast<size_t>(step - 1)] <= i) step = 0;  // read before this step's result is written
    }
    places.result[at] = kNoPlace;
    if (last[at] == i) continue;
    auto* const slot = std::find(holder.begin(), holder.end(), 0);
    if (slot == holder.end()) {
      places.fits = false;
      return places;
    }
    *slot = i + 1;
    const auto number = static_cast<int32_t>(slot - holder.begin());
    places.result[at] = static_cast<int8_t>(kKeptPlace + number);
    places.slots = std::max(places.slots, number + 1);
  }
  for (size_t i = 0; i < outputs.size(); ++i) places.output[i] = place_of(outputs[i].value, count);
  return places;
}

bool elementwise_fits(std::span<const ElementwiseOutput> outputs, int sources, std::span<const ElementwiseStep> steps) {
  if (sources < 1 || sources > kElementwiseSources || steps.empty() || steps.size() > kElementwiseSteps ||
      outputs.empty() || outputs.size() > kElementwiseOutputs) {
    return false;
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    for (int k = 0; k < operands_of(steps[i].operation); ++k) {
      const int value = operand(steps[i], k);
      if (value < 0 || value >= sources + static_cast<int>(i)) return false;
    }
  }
  for (const ElementwiseOutput& output : outputs) {
    if (output.value < sources || output.value >= sources + static_cast<int>(steps.size())) return false;
  }
  return place_values(outputs, sources, steps).fits;
}

}  // namespace brisk::kernels
