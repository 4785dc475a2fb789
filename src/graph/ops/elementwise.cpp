// Arithmetic that broadcasts, and functions of one value.
#include "brisk/ops/elementwise.h"

#include <cmath>

#include "graph/ops/elementwise_rules.h"

namespace brisk::graph {
namespace {

void check_delta(const InferContext& c) {
  const double delta = c.attributes().real("delta");
  if (!(delta > 0)) c.fail(cat("delta = ", delta, ": must be greater than 0"));
}

void check_range(const InferContext& c) {
  const double low = c.attributes().real("low"), high = c.attributes().real("high");
  if (!(low <= high)) c.fail(cat("low = ", low, ", high = ", high, ": low must not be above high"));
}

// (dy, a, b): a and b broadcast to dy.
Types infer_choice_gradient(const InferContext& c) { return infer_broadcast_to(c, 0, "gradient"); }

void derive_add(Derivation& d) {
  for (int i = 0; i < 2; ++i) {
    if (d.wants(i)) d.set(i, reduced(d, d.output_gradient(), d.input(i)));
  }
}

void derive_sub(Derivation& d) {
  if (d.wants(0)) d.set(0, reduced(d, d.output_gradient(), d.input(0)));
  if (d.wants(1)) d.set(1, scaled(d, reduced(d, d.output_gradient(), d.input(1)), -1));
}

void derive_mul(Derivation& d) {
  for (int i = 0; i < 2; ++i) {
    if (d.wants(i)) d.set(i, reduced(d, d.emit("mul", {d.output_gradient(), d.input(1 - i)}), d.input(i)));
  }
}

// y = a / b: da = dy / b, db = -dy y / b.
void derive_div(Derivation& d) {
  const ValueId b = d.input(1), dy = d.output_gradient();
  if (d.wants(0)) d.set(0, reduced(d, d.emit("div", {dy, b}), d.input(0)));
  if (d.wants(1)) {
    const ValueId product = d.emit("mul", {dy, d.output()});
    d.set(1, scaled(d, reduced(d, d.emit("div", {product, b}), b), -1));
  }
}

// minimum, maximum: the gradient goes to the operand that was taken, half to each of two equal ones.
template <bool kMaximum>
void derive_choice(Derivation& d) {
  const char* const op = kMaximum ? "maximum_gradient" : "minimum_gradient";
  for (int i = 0; i < 2; ++i) {
    if (d.wants(i)) d.set(i, reduced(d, d.emit(op, {d.output_gradient(), d.input(i), d.input(1 - i)}), d.input(i)));
  }
}

// dx = dy p x^(p-1), without a power for p = 2 and without x for p = 0 (PyTorch's rule: 0 also where x^-1 is infinite).
ValueId derive_pow(Derivation& d, ValueId dy) {
  const double exponent = d.attributes().real("exponent");
  if (exponent == 0) return scaled(d, dy, 0);
  const ValueId power = exponent == 2 ? d.input(0) : d.emit("pow", {d.input(0)}, {{"exponent", exponent - 1}});
  return d.emit("mul", {dy, scaled(d, power, exponent)});
}

OpInfo choice_gradient(std::string_view name) {
  return {.name = name, .minimum_inputs = 3, .maximum_inputs = 3, .infer = infer_choice_gradient, .elementwise = true};
}

std::vector<OpInfo> make_ops() {
  constexpr auto exp = unary([](Derivation& d, ValueId dy) { return d.emit("mul", {dy, d.output()}); });
  constexpr auto log = unary([](Derivation& d, ValueId dy) { return d.emit("div", {dy, d.input(0)}); });
  constexpr auto reciprocal = unary([](Derivation& d, ValueId dy) {
    return scaled(d, d.emit("div", {d.emit("mul", {dy, d.output()}), d.input(0)}), -1);
  });
  constexpr auto scale = unary([](Derivation& d, ValueId dy) { return scaled(d, dy, d.attributes().real("factor")); });
  constexpr auto same = unary([](Derivation&, ValueId dy) { return dy; });
  constexpr auto huber = unary([](Derivation& d, ValueId dy) {
    return d.emit("huber_gradient", {dy, d.input(0)}, d.attributes());
  });
  constexpr auto sqrt = unary([](Derivation& d, ValueId dy) {
    return scaled(d, d.emit("div", {dy, d.output()}), 0.5);
  });
  constexpr auto abs = unary([](Derivation& d, ValueId dy) { return d.emit("abs_gradient", {dy, d.input(0)}); });
  constexpr auto pow = unary([](Derivation& d, ValueId dy) { return derive_pow(d, dy); });
  constexpr auto clamp = unary([](Derivation& d, ValueId dy) {
    return d.emit("clamp_gradient", {dy, d.input(0)}, d.attributes());
  });

  const std::vector<AttributeInfo> delta = {{"delta", Kind::real}};
  const std::vector<AttributeInfo> range = {{"high", Kind::real}, {"low", Kind::real}};
  OpInfo identity = function("identity", same, Reads::nothing);
  identity.flops = no_flops;
  return {binary("add", derive_add, Reads::nothing),
          binary("sub", derive_sub, Reads::nothing),
          binary("mul", derive_mul, Reads::inputs),
          binary("div", derive_div, Reads::both),
          binary("minimum", derive_choice<false>, Reads::inputs),
          binary("maximum", derive_choice<true>, Reads::inputs),
          function("exp", exp, Reads::outputs),
          function("log", log, Reads::inputs),
          function("sqrt", sqrt, Reads::outputs),
          function("abs", abs, Reads::inputs),
          function("pow", pow, Reads::inputs, {{"exponent", Kind::real}}),
          function("clamp", clamp, Reads::inputs, range, checked<check_range, infer_unary>),
          function("reciprocal", reciprocal, Reads::both, {{"numerator", Kind::real}}),
          function("scale", scale, Reads::nothing, {{"factor", Kind::real}}),
          function("add_scalar", same, Reads::nothing, {{"value", Kind::real}}),
          identity,
          function("huber", huber, Reads::inputs, delta, checked<check_delta, infer_unary>),
          choice_gradient("minimum_gradient"),
          choice_gradient("maximum_gradient"),
          gradient("abs_gradient"),
          gradient("clamp_gradient", range, checked<check_range, infer_gradient>),
          gradient("huber_gradient", delta, checked<check_delta, infer_gradient>)};
}

}  // namespace

std::span<const OpInfo> elementwise_ops() {
  static const std::vector<OpInfo> ops = make_ops();
  return ops;
}

}  // namespace brisk::graph

namespace brisk {

using graph::apply;
using graph::check_number;

Var exp(Var x, Where where) { return apply("exp", {x}, {}, "exp", where); }
Var log(Var x, Where where) { return apply("log", {x}, {}, "log", where); }
Var sqrt(Var x, Where where) { return apply("sqrt", {x}, {}, "sqrt", where); }
Var abs(Var x, Where where) { return apply("abs", {x}, {}, "abs", where); }

Var pow(Var x, double exponent, Where where) {
  check_number("pow.exponent", exponent, where);
  return apply("pow", {x}, {{"exponent", exponent}}, "pow", where);
}

Var clamp(Var x, double low, double high, Where where) {
  graph::check_option(low <= high, "clamp.low", low, cat("must not be above clamp.high = ", high), where);
  return apply("clamp", {x}, {{"high", high}, {"low", low}}, "clamp", where);
}

Var minimum(Var a, Var b, Where where) { return apply("minimum", {a, b}, {}, "minimum", where); }
Var maximum(Var a, Var b, Where where) { return apply("maximum", {a, b}, {}, "maximum", where); }

Var operator+(Var a, Var b) { return apply("add", {a, b}, {}, "add", {}); }
Var operator-(Var a, Var b) { return apply("sub", {a, b}, {}, "sub", {}); }
Var operator*(Var a, Var b) { return apply("mul", {a, b}, {}, "mul", {}); }
Var operator/(Var a, Var b) { return apply("div", {a, b}, {}, "div", {}); }
Var operator-(Var x) { return x * -1.0; }

Var operator+(Var x, double value) {
  check_number("Var + value: value", value);
  return apply("add_scalar", {x}, {{"value", value}}, "add", {});
}

Var operator*(Var x, double value) {
  check_number("Var * value: value", value);
  return apply("scale", {x}, {{"factor", value}}, "scale", {});
}

Var operator/(Var x, double value) {
  check_number("Var / value: value", value);
  graph::check_option(std::isfinite(static_cast<float>(1 / value)), "Var / value: value", value,
                      "must not be 0, nor so small that 1 / value is infinite as an f32", {});
  return x * (1 / value);
}

Var operator/(double value, Var x) {
  check_number("value / Var: value", value);
  return apply("reciprocal", {x}, {{"numerator", value}}, "reciprocal", {});
}

Var operator-(Var x, double value) { return x + -value; }
Var operator+(double value, Var x) { return x + value; }
Var operator-(double value, Var x) { return -x + value; }
Var operator*(double value, Var x) { return x * value; }

}  // namespace brisk
