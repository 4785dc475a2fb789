#include "graph/low_forms.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "core/text.h"
#include "graph/op_table.h"

namespace brisk::graph {
namespace {

constexpr uint32_t kAll = ~uint32_t{0};
constexpr uint32_t bits(int first) { return 1u << first; }
constexpr uint32_t bits(int first, int second) { return bits(first) | bits(second); }

const std::map<std::string_view, LowForm>& table() {
  constexpr LowForm kMatrix = {Format::low, bits(0, 1), bits(0)};
  constexpr LowForm kWeightGradient = {Format::low, bits(0, 1), 0};
  constexpr LowForm kFirst = {Format::follows, bits(0), bits(0)};
  constexpr LowForm kSum = {Format::follows, bits(0), 0};
  constexpr LowForm kNorm = {Format::follows, bits(0, 5), bits(0)};  // the sixth input is a residual
  constexpr LowForm kNormGradient = {Format::follows, bits(0, 1), bits(0)};
  constexpr LowForm kMove = {Format::follows, kAll, bits(0)};
  constexpr LowForm kF32 = {};
  static const std::map<std::string_view, LowForm> forms = {
      {"conv2d", kMatrix},
      {"conv2d_input_gradient", kMatrix},
      {"conv2d_weight_gradient", kWeightGradient},
      {"linear", kMatrix},
      {"linear_input_gradient", kMatrix},
      {"linear_weight_gradient", kWeightGradient},
      {"matmul", kMatrix},
      {"bias_add", kFirst},
      {"channel_sum", kSum},
      {"batch_sum", kSum},
      {"reduce_mean", kSum},
      {"reduce_sum", kSum},
      {"batch_norm", kNorm},
      {"batch_norm_inference", kNorm},
      {"batch_norm_gradient", kNormGradient},
      {"layer_norm", kFirst},
      {"layer_norm_gradient", kNormGradient},
      {"group_norm", kFirst},
      {"group_norm_gradient", kNormGradient},
      {"max_pool2d", kFirst},
      {"max_pool2d_gradient", kFirst},
      {"avg_pool2d", kFirst},
      {"avg_pool2d_gradient", kFirst},
      {"resize2d", kFirst},
      {"resize2d_gradient", kFirst},
      {"stochastic_depth", kFirst},
      {"concat", kMove},
      {"expand", kMove},
      {"pad", kMove},
      {"pad_slice", kMove},
      {"permute", kMove},
      {"reshape", kMove},
      {"slice", kMove},
      {"stop_gradient", kMove},
      // Elementwise, but their results leave the range of f16 or lose too much of it.
      {"exp", kF32},
      {"huber", kF32},
      {"huber_gradient", kF32},
      {"log", kF32},
      {"pow", kF32},
      {"reciprocal", kF32},
      {"softplus", kF32},
  };
  return forms;
}

/// Operations whose own rules know all types.
bool any_type(const Node& node) {
  return node.op->name == "load" || node.op->name == "store" || node.op->name == "cast";
}

[[noreturn]] void refuse(const Graph& graph, const Node& node, size_t i, const char* why) {
  throw Error(ErrorCode::shape, label(node), cat("input ", i, " is ", name(graph.type(node.inputs[i]).dtype), why),
              node.where);
}

}  // namespace

LowForm low_form(const Node& node) {
  const auto found = table().find(node.op->name);
  if (found != table().end()) return found->second;
  return node.op->elementwise ? LowForm{Format::follows, kAll, bits(0)} : LowForm{};
}

bool low_input(const Graph& graph, const Node& node, int i) {
  const LowForm form = low_form(node);
  const ValueType& type = graph.type(node.inputs[static_cast<size_t>(i)]);
  if ((form.inputs >> std::min(i, 31) & 1u) == 0 || !(type.dtype == DType::f32 || is_low(type.dtype))) return false;
  return form.format == Format::low || type.batched();
}

DType low_type(const Graph& graph, const Node& node) {
  if (any_type(node)) return DType::f32;
  DType low = DType::f32;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const DType dtype = graph.type(node.inputs[i]).dtype;
    if (!is_low(dtype)) continue;
    if (!low_input(graph, node, static_cast<int>(i))) refuse(graph, node, i, ": must be f32");
    if (low != DType::f32 && low != dtype) refuse(graph, node, i, ", another one is of another 16-bit type");
    low = dtype;
  }
  if (low == DType::f32) return low;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (low_input(graph, node, static_cast<int>(i)) && !is_low(graph.type(node.inputs[i]).dtype))
      refuse(graph, node, i, ", others have 16 bits");
  return low;
}

}  // namespace brisk::graph
