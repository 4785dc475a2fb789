// What the elementwise families share: broadcasting as NumPy does over the per-sample shapes, and the entries of
// functions of one value and of their gradients.
#pragma once

#include "graph/ops/front.h"

namespace brisk::graph {

/// f32 inputs that fit together: their shapes align from the right; a missing or a single element repeats.
Types infer_broadcast(const InferContext& c);
/// The same with the result's type given by input i, which nothing may repeat.
Types infer_broadcast_to(const InferContext& c, int i, const char* role);
Types infer_unary(const InferContext& c);
/// (dy, value), both of one type.
Types infer_gradient(const InferContext& c);
/// A rule with a check of the attributes before it.
template <void (*kCheck)(const InferContext&), Types (*kInfer)(const InferContext&)>
Types checked(const InferContext& c) {
  kCheck(c);
  return kInfer(c);
}

/// Sums a gradient over everything that the operand repeated itself along, so that it has exactly the operand's type.
ValueId reduced(Derivation& d, ValueId gradient, ValueId operand);
ValueId scaled(Derivation& d, ValueId id, double factor);

/// The derivative of a function of one value; Rule: (Derivation&, dy) -> dx.
template <class Rule>
constexpr auto unary(Rule) {
  return [](Derivation& d) {
    if (d.wants(0)) d.set(0, Rule()(d, d.output_gradient()));
  };
}

using Derive = void (*)(Derivation&);
using Infer = Types (*)(const InferContext&);
OpInfo binary(std::string_view name, Derive derive, Reads reads);
OpInfo function(std::string_view name, Derive derive, Reads reads, std::vector<AttributeInfo> attributes = {},
                Infer infer = infer_unary);
OpInfo gradient(std::string_view name, std::vector<AttributeInfo> attributes = {}, Infer infer = infer_gradient);

}  // namespace brisk::graph
