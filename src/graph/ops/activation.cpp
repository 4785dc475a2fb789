// Activation functions: each a function of one value, with an operation for its gradient.
#include <limits>

#include "brisk/ops/elementwise.h"
#include "graph/ops/elementwise_rules.h"

namespace brisk::graph {
namespace {

constexpr double kLargest = std::numeric_limits<float>::max();

// Not negative, so that the sign of the output is that of the input and backward needs the output alone.
void check_slope(const InferContext& c) { real_in(c, "slope", 0, kLargest); }
void check_alpha(const InferContext& c) { real_in(c, "alpha", 0, kLargest); }

std::vector<OpInfo> make_ops() {
  constexpr auto relu = unary([](Derivation& d, ValueId dy) { return d.emit("relu_gradient", {dy, d.output()}); });
  constexpr auto tanh = unary([](Derivation& d, ValueId dy) { return d.emit("tanh_gradient", {dy, d.output()}); });
  constexpr auto sigmoid = unary([](Derivation& d, ValueId dy) {
    return d.emit("sigmoid_gradient", {dy, d.output()});
  });
  constexpr auto leaky_relu = unary([](Derivation& d, ValueId dy) {
    return d.emit("leaky_relu_gradient", {dy, d.output()}, d.attributes());
  });
  constexpr auto elu = unary([](Derivation& d, ValueId dy) {
    return d.emit("elu_gradient", {dy, d.output()}, d.attributes());
  });
  constexpr auto gelu = unary([](Derivation& d, ValueId dy) { return d.emit("gelu_gradient", {dy, d.input(0)}); });
  constexpr auto gelu_tanh = unary([](Derivation& d, ValueId dy) {
    return d.emit("gelu_tanh_gradient", {dy, d.input(0)});
  });
  constexpr auto silu = unary([](Derivation& d, ValueId dy) { return d.emit("silu_gradient", {dy, d.input(0)}); });
  constexpr auto softplus = unary([](Derivation& d, ValueId dy) {
    return d.emit("mul", {dy, d.emit("sigmoid", {d.input(0)})});
  });
  const std::vector<AttributeInfo> alpha = {{"alpha", Kind::real}}, slope = {{"slope", Kind::real}};
  return {function("relu", relu, Reads::outputs),
          function("tanh", tanh, Reads::outputs),
          function("sigmoid", sigmoid, Reads::outputs),
          function("leaky_relu", leaky_relu, Reads::outputs, slope, checked<check_slope, infer_unary>),
          function("elu", elu, Reads::outputs, alpha, checked<check_alpha, infer_unary>),
          function("gelu", gelu, Reads::inputs),
          function("gelu_tanh", gelu_tanh, Reads::inputs),
          function("silu", silu, Reads::inputs),
          function("softplus", softplus, Reads::inputs),
          gradient("relu_gradient"),
          gradient("tanh_gradient"),
          gradient("sigmoid_gradient"),
          gradient("leaky_relu_gradient", slope, checked<check_slope, infer_gradient>),
          gradient("elu_gradient", alpha, checked<check_alpha, infer_gradient>),
          gradient("gelu_gradient"),
          gradient("gelu_tanh_gradient"),
          gradient("silu_gradient")};
}

void check_not_negative(const char* field, double value, Where where) {
  check_option(value >= 0 && value <= kLargest, field, value, "must be at least 0, and finite as an f32", where);
}

}  // namespace

std::span<const OpInfo> activation_ops() {
  static const std::vector<OpInfo> ops = make_ops();
  return ops;
}

}  // namespace brisk::graph

namespace brisk {

using graph::apply;

Var relu(Var x, Where where) { return apply("relu", {x}, {}, "relu", where); }
Var tanh(Var x, Where where) { return apply("tanh", {x}, {}, "tanh", where); }
Var sigmoid(Var x, Where where) { return apply("sigmoid", {x}, {}, "sigmoid", where); }
Var silu(Var x, Where where) { return apply("silu", {x}, {}, "silu", where); }
Var softplus(Var x, Where where) { return apply("softplus", {x}, {}, "softplus", where); }

Var gelu(Var x, Gelu form, Where where) {
  return apply(form == Gelu::tanh ? "gelu_tanh" : "gelu", {x}, {}, "gelu", where);
}

Var leaky_relu(Var x, double slope, Where where) {
  graph::check_not_negative("leaky_relu.slope", slope, where);
  return apply("leaky_relu", {x}, {{"slope", slope}}, "leaky_relu", where);
}

Var elu(Var x, double alpha, Where where) {
  graph::check_not_negative("elu.alpha", alpha, where);
  return apply("elu", {x}, {{"alpha", alpha}}, "elu", where);
}

}  // namespace brisk
