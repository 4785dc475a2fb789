// What the families' functions of Vars share: options that name themselves when refused, axes as users count them.
#pragma once

#include <numeric>

#include "brisk/ops/size2.h"
#include "graph/ops/rules.h"
#include "graph/trace.h"

namespace brisk::graph {

/// Throws Error [option] "<field> = <value>: <allowed>" at the user's line.
template <class T>
void check_option(bool right, std::string_view field, const T& value, std::string_view allowed, Where where) {
  if (!right) throw Error(ErrorCode::option, cat(field, " = ", value), std::string(allowed), where);
}
/// An integer in [low, 2^31); meaning: what it is, with an example, for the message.
void check_integer(std::string_view field, int64_t value, int64_t low, std::string_view meaning, Where where);
void check_size(std::string_view field, Size2 value, int64_t low, std::string_view meaning, Where where);

/// A number that is finite as an f32.
void check_number(std::string_view field, double value, Where where = {});

inline std::vector<int64_t> both(Size2 size) { return {size.height, size.width}; }
inline std::vector<int64_t> list(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// A rule on the input of a node that is not made yet: `check` sees it as input 0 of an operation with that name.
void check_input(const Var& x, std::string_view op, const std::string& name, Where where,
                 void (*check)(const InferContext&));

/// A dimension as the user counts it (N is 0, negative from the end) as one of a sample's. Throws Error [shape] for N
/// and for those that x has not; field: what the user calls it, "softmax.axis".
int64_t sample_axis(const Var& x, std::string_view field, int64_t axis, Where where);

/// [N, ...] -> [N]: the sum or the mean of each sample's elements; op: "reduce_sum" or "reduce_mean".
inline Var reduce_rows(Layer& layer, const char* op, Var x) {
  std::vector<int64_t> axes(static_cast<size_t>(Access::type(x).shape.rank()));
  if (axes.empty()) return x;
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return layer.apply(op, {x}, {{"axes", axes}, {"keep", false}});
}

/// Zeros of x's type, whatever x holds: nothing is less than itself.
inline Var zeros_like(Layer& layer, Var x) {
  return layer.apply("compare", {x, x}, {{"relation", std::string("less")}});
}

}  // namespace brisk::graph
