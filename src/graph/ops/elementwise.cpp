// Element by element: arithmetic that broadcasts as NumPy does over the per-sample shapes, and functions of one value.
#include "brisk/ops/elementwise.h"

#include <algorithm>
#include <cmath>

#include "graph/ops/front.h"

namespace brisk::graph {
namespace {

// Shapes align from the right; a missing or a single element repeats.
Types infer_binary(const InferContext& c) {
  const ValueType &a = want_f32(c, 0), &b = want_f32(c, 1);
  const int rank = std::max(a.shape.rank(), b.shape.rank());
  Shape out;
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.shape.rank()), ib = i - (rank - b.shape.rank());
    const int64_t sa = ia < 0 ? 1 : a.shape[ia], sb = ib < 0 ? 1 : b.shape[ib];
    if (sa != sb && sa != 1 && sb != 1) {
      c.fail(cat("sizes ", sa, " and ", sb, " do not fit together: ", c.describe(0), " and ", c.describe(1)));
    }
    out.append(std::max(sa, sb));
  }
  return {{DType::f32, std::max(a.rows, b.rows), out}};
}

Types infer_unary(const InferContext& c) { return {want_f32(c, 0)}; }

Types infer_huber(const InferContext& c) {
  const double delta = c.attributes().real("delta");
  if (!(delta > 0)) c.fail(cat("delta = ", delta, ": must be greater than 0"));
  return {want_f32(c, 0)};
}

Types infer_gradient(const InferContext& c) {
  const ValueType& dy = want_f32(c, 0, "gradient");
  want_type(c, 1, "value", dy);
  return {dy};
}

Types infer_huber_gradient(const InferContext& c) {
  infer_huber(c);
  return infer_gradient(c);
}

ValueId reshaped(Derivation& d, ValueId id, const Shape& shape) {
  const int64_t rows = d.type(id).rows;
  return d.emit("reshape", {id}, {{"rows", rows}, {"shape", std::vector<int64_t>(shape.begin(), shape.end())}});
}

// Sums a gradient over everything that the operand repeated itself along, so that it has exactly the operand's type.
ValueId reduced(Derivation& d, ValueId gradient, ValueId operand) {
  const Shape from = d.type(gradient).shape, to = d.type(operand).shape;
  const int missing = from.rank() - to.rank();
  std::vector<int64_t> axes;
  for (int i = 0; i < from.rank(); ++i) {
    if (i < missing || to[i - missing] != from[i]) axes.push_back(i);
  }
  if (!axes.empty()) {
    const bool keep = static_cast<int>(axes.size()) != missing;
    gradient = d.emit("reduce_sum", {gradient}, {{"axes", axes}, {"keep", keep}});
    if (keep && missing > 0) gradient = reshaped(d, gradient, to);
  }
  const bool collect = d.type(gradient).batched() && !d.type(operand).batched();
  return collect ? d.emit("batch_sum", {gradient}) : gradient;
}

ValueId scaled(Derivation& d, ValueId id, double factor) { return d.emit("scale", {id}, {{"factor", factor}}); }

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

template <class Rule>
constexpr auto unary(Rule) {
  return [](Derivation& d) {
    if (d.wants(0)) d.set(0, Rule()(d, d.output_gradient()));
  };
}

OpInfo binary(std::string_view name, void (*derive)(Derivation&), Reads reads) {
  return {.name = name,
          .minimum_inputs = 2,
          .maximum_inputs = 2,
          .infer = infer_binary,
          .derive = derive,
          .backward_reads = reads,
          .elementwise = true};
}

OpInfo function(std::string_view name, void (*derive)(Derivation&), Reads reads,
                std::vector<AttributeInfo> attributes = {}) {
  return {.name = name,
          .attributes = std::move(attributes),
          .infer = infer_unary,
          .derive = derive,
          .backward_reads = reads,
          .elementwise = true};
}

OpInfo gradient(std::string_view name) {
  return {.name = name, .minimum_inputs = 2, .maximum_inputs = 2, .infer = infer_gradient, .elementwise = true};
}

std::vector<OpInfo> make_ops() {
  constexpr auto relu = unary([](Derivation& d, ValueId dy) { return d.emit("relu_gradient", {dy, d.output()}); });
  constexpr auto tanh = unary([](Derivation& d, ValueId dy) { return d.emit("tanh_gradient", {dy, d.output()}); });
  constexpr auto sigmoid = unary([](Derivation& d, ValueId dy) {
    return d.emit("sigmoid_gradient", {dy, d.output()});
  });
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

  OpInfo huber_op = function("huber", huber, Reads::inputs, {{"delta", Kind::real}});
  huber_op.infer = infer_huber;
  OpInfo huber_gradient = gradient("huber_gradient");
  huber_gradient.attributes = {{"delta", Kind::real}};
  huber_gradient.infer = infer_huber_gradient;
  OpInfo identity = function("identity", same, Reads::nothing);
  identity.flops = no_flops;
  return {binary("add", derive_add, Reads::nothing),
          binary("sub", derive_sub, Reads::nothing),
          binary("mul", derive_mul, Reads::inputs),
          binary("div", derive_div, Reads::both),
          function("relu", relu, Reads::outputs),
          function("tanh", tanh, Reads::outputs),
          function("sigmoid", sigmoid, Reads::outputs),
          function("exp", exp, Reads::outputs),
          function("log", log, Reads::inputs),
          function("reciprocal", reciprocal, Reads::both, {{"numerator", Kind::real}}),
          function("scale", scale, Reads::nothing, {{"factor", Kind::real}}),
          function("add_scalar", same, Reads::nothing, {{"value", Kind::real}}),
          identity,
          huber_op,
          gradient("relu_gradient"),
          gradient("tanh_gradient"),
          gradient("sigmoid_gradient"),
          huber_gradient};
}

}  // namespace

std::span<const OpInfo> elementwise_ops() {
  static const std::vector<OpInfo> ops = make_ops();
  return ops;
}

}  // namespace brisk::graph

namespace brisk {

using graph::apply;

Var relu(Var x, Where where) { return apply("relu", {x}, {}, "relu", where); }
Var tanh(Var x, Where where) { return apply("tanh", {x}, {}, "tanh", where); }
Var sigmoid(Var x, Where where) { return apply("sigmoid", {x}, {}, "sigmoid", where); }
Var exp(Var x, Where where) { return apply("exp", {x}, {}, "exp", where); }
Var log(Var x, Where where) { return apply("log", {x}, {}, "log", where); }

Var operator+(Var a, Var b) { return apply("add", {a, b}, {}, "add", {}); }
Var operator-(Var a, Var b) { return apply("sub", {a, b}, {}, "sub", {}); }
Var operator*(Var a, Var b) { return apply("mul", {a, b}, {}, "mul", {}); }
Var operator/(Var a, Var b) { return apply("div", {a, b}, {}, "div", {}); }
Var operator-(Var x) { return x * -1.0; }

namespace {

void check_number(const char* operation, double value) {
  graph::check_option(std::isfinite(static_cast<float>(value)), operation, value, "must be a finite number as an f32",
                      {});
}

}  // namespace

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
