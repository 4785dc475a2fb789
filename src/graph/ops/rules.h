// What the families share: checks of inputs and attributes whose messages name the role, and pieces of derivatives.
#pragma once

#include <array>

#include "core/text.h"
#include "graph/op_table.h"

namespace brisk::graph {

using Types = std::vector<ValueType>;
using Pair = std::array<int64_t, 2>;

inline ValueType batched(int64_t rows, Shape shape, DType dtype = DType::f32) { return {dtype, rows, shape}; }
inline ValueType plain(Shape shape, DType dtype = DType::f32) { return {dtype, 0, shape}; }
inline Shape shape_of(const std::vector<int64_t>& sizes) { return Shape(std::span<const int64_t>(sizes)); }

/// Input i, which must be batched (or not: plain) with that many dimensions (-1: any; batched: per sample) and dtype.
/// form: "[N, features]", for the message "<role> must be [N, features], got ...".
const ValueType& want_batched(const InferContext& c, int i, const char* role, const char* form, int rank = -1,
                              DType dtype = DType::f32);
const ValueType& want_plain(const InferContext& c, int i, const char* role, const char* form, int rank = -1,
                            DType dtype = DType::f32);
/// Input i, which must be of exactly that type.
const ValueType& want_type(const InferContext& c, int i, const char* role, const ValueType& type);
const ValueType& want_f32(const InferContext& c, int i, const char* role = "input");

/// Attributes: throw through c.fail with name, value and what is allowed.
int64_t integer_in(const InferContext& c, std::string_view name, int64_t low, int64_t high);
double real_in(const InferContext& c, std::string_view name, double low, double high);
Pair pair_of(const InferContext& c, std::string_view name, int64_t low);
/// An axis of one sample of `type`.
int axis_of(const InferContext& c, const ValueType& type);
/// The sizes in an attribute: `count` of them (-1: any), each at least 1.
Shape sizes_of(const InferContext& c, std::string_view name, int count = -1);
void check_activation(const InferContext& c);

/// Where a window moves over the last two of three per-sample dimensions.
struct Window {
  Pair kernel, stride, padding;
  Pair dilation = {1, 1};
};
/// {channels, Ho, Wo}; fails when the kernel does not fit input 0 or an attribute's {C, H, W}.
Shape window_output(const InferContext& c, const Window& window, const Shape& input, int64_t channels);

/// Gradient before the node's fused activation: dy, or <activation>_gradient(dy, y).
ValueId through_activation(Derivation& d);

/// Flops of nodes that only move bytes, and of those that do a few operations an element of input 0.
double no_flops(const Graph&, const Node&);
template <int kOperations>
double flops_per_input(const Graph& graph, const Node& node) {
  return kOperations * static_cast<double>(graph.type(node.inputs[0]).elements());
}

template <int kOperations>
double flops_per_output(const Graph& graph, const Node& node) {
  return kOperations * static_cast<double>(graph.type(node.outputs[0]).elements());
}

}  // namespace brisk::graph
