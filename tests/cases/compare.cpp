// Rounding is allowed for, nothing else: NaN and infinities must be where the reference has them.
#include "cases/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "core/text.h"

namespace brisk::test {
namespace {

/// The sum of absolute values that went into each element: the same node over absolute inputs, before its activation.
std::vector<oracle::Array> magnitudes(NodeCase node_case) {
  for (Operand& operand : node_case.inputs) {
    if (operand.type.dtype != DType::f32) continue;
    for (double& value : operand.data) value = std::fabs(value);
  }
  for (std::vector<double>& before : node_case.before) {
    for (double& value : before) value = std::fabs(value);
  }
  if (node_case.attributes.has("activation")) node_case.attributes.set("activation", std::string("none"));
  return expected(node_case);
}

/// A float type: half of the distance of neighbours around 1, half the smallest positive number, the largest number.
struct Format {
  double half_step = 0, half_smallest = 0, largest = HUGE_VAL;
};
Format format_of(DType dtype) {
  if (dtype == DType::f16) return {0x1p-11, 0x1p-25, 65504};
  if (dtype == DType::bf16) return {0x1p-8, 0x1p-134, 0x1.FEp127};
  return {};
}

bool same(double got, double want, double allowed, const Format& format) {
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) && std::isnan(got);
  const auto rounded = static_cast<double>(static_cast<float>(want));
  if (std::isinf(rounded)) return got == rounded;
  // What is rounded to half a step beyond the largest number, or more, is infinite.
  const bool overflows = std::fabs(want) + allowed >= format.largest * (1 + format.half_step / 2);
  if (std::isinf(got)) return overflows && std::signbit(got) == std::signbit(want);
  return std::fabs(got - want) <= allowed + format.half_step * (std::fabs(want) + allowed) + format.half_smallest;
}

}  // namespace

std::vector<oracle::Array> error_scales(const NodeCase& node_case, const std::vector<oracle::Array>& want,
                                        const Tolerance& tolerance) {
  const bool absolute = tolerance.measure == Measure::magnitude || tolerance.measure == Measure::largest;
  const bool of_output = tolerance.measure == Measure::output || tolerance.measure == Measure::largest;
  std::vector<oracle::Array> scales = absolute ? magnitudes(node_case) : want;
  for (oracle::Array& scale : scales) {
    double largest = 0;
    for (double& value : scale.data) {
      value = std::fabs(value);
      if (std::isfinite(value)) largest = std::max(largest, value);
    }
    if (of_output) scale.data.assign(scale.data.size(), largest);
  }
  return scales;
}

std::string difference(const oracle::Array& a, const oracle::Array& b) {
  for (size_t k = 0; k < a.data.size(); ++k)
    if (std::memcmp(&a.data[k], &b.data[k], sizeof(double)) != 0 && !(std::isnan(a.data[k]) && std::isnan(b.data[k])))
      return cat("element ", k, " of ", a.shape, ": ", a.data[k], " and ", b.data[k]);
  return "";
}

std::string difference(const NodeCase& node_case, const Outcome& got, const Tolerance& tolerance,
                       const std::vector<DType>& stored) {
  oracle::Fault fault;
  const std::vector<oracle::Array> want = expected(node_case, &fault);
  const auto told = std::tuple(static_cast<int>(got.status), got.sample, got.value);
  const auto meant = std::tuple(static_cast<int>(fault.kind), fault.sample, fault.value);
  if (told != meant) {
    return cat("status ", std::get<0>(told), " of sample ", got.sample, ", value ", got.value, "; the reference has ",
               std::get<0>(meant), " of sample ", fault.sample, ", value ", fault.value);
  }
  const std::vector<oracle::Array> scales = error_scales(node_case, want, tolerance);
  for (size_t i = 0; i < want.size(); ++i) {
    const Format format = i < stored.size() ? format_of(stored[i]) : Format();
    for (size_t k = 0; k < want[i].data.size(); ++k) {
      const double allowed =
          tolerance.relative * scales[i].data[k] + (tolerance.relative == 0 ? 0 : tolerance.absolute);
      const double a = got.outputs[i].data[k], b = want[i].data[k];
      if (same(a, b, allowed, format)) continue;
      return cat("output ", i, " element ", k, " of ", want[i].shape, ": ", a, " instead of ", b, ", differs by ",
                 std::fabs(a - b), ", allowed ", allowed);
    }
  }
  return "";
}

}  // namespace brisk::test
