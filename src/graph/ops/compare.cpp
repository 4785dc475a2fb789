// Comparisons, the choice that they make between two values, element types, and the end of gradients.
#include <algorithm>

#include "brisk/ops/elementwise.h"
#include "graph/low_forms.h"
#include "graph/ops/elementwise_rules.h"

namespace brisk::graph {
namespace {

void check_relation(const InferContext& c) {
  const std::string& relation = c.attributes().text("relation");
  for (const char* known : {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}) {
    if (relation == known) return;
  }
  c.fail(cat("relation = ", relation, ": must be less, less_equal, greater, greater_equal, equal or not_equal"));
}

void derive_where(Derivation& d) {
  for (int i = 1; i < 3; ++i) {
    if (!d.wants(i)) continue;
    const ValueId kept = d.emit("where_gradient", {d.input(0), d.output_gradient()}, {{"chosen", i == 1}});
    d.set(i, reduced(d, kept, d.input(i)));
  }
}

// (condition, dy): the condition broadcasts to dy.
Types infer_where_gradient(const InferContext& c) { return infer_broadcast_to(c, 1, "gradient"); }

constexpr DType kCastTypes[] = {DType::f32, DType::i32, DType::i64, DType::u8};
constexpr const char* kCastText = "must be f32, i32, i64 or u8";

bool is_cast_type(DType dtype) {
  return std::find(std::begin(kCastTypes), std::end(kCastTypes), dtype) != std::end(kCastTypes);
}

// Between the types that users see; and, put there by the passes, between f32 and a 16-bit one.
Types infer_cast(const InferContext& c) {
  ValueType out = c.input(0);
  const std::string& wanted = c.attributes().text("dtype");
  if (out.dtype == DType::f32 && (wanted == "f16" || wanted == "bf16")) {
    out.dtype = wanted == "f16" ? DType::f16 : DType::bf16;
    return {out};
  }
  if (is_low(out.dtype) && wanted == "f32") {
    out.dtype = DType::f32;
    return {out};
  }
  if (!is_cast_type(out.dtype)) c.fail(cat("input ", kCastText, ", got ", name(out.dtype), " ", c.describe(0)));
  for (const DType dtype : kCastTypes) {
    if (wanted != name(dtype)) continue;
    out.dtype = dtype;
    return {out};
  }
  c.fail(cat("dtype = ", wanted, ": ", kCastText));
}

std::vector<OpInfo> make_ops() {
  const AttributeInfo relation = {"relation", Kind::text};
  OpInfo compare = binary("compare", nullptr, Reads::nothing);
  compare.attributes = {relation};
  compare.infer = checked<check_relation, infer_broadcast>;
  return {compare,
          function("compare_scalar", nullptr, Reads::nothing, {relation, {"value", Kind::real}},
                   checked<check_relation, infer_unary>),
          {.name = "where",
           .minimum_inputs = 3,
           .maximum_inputs = 3,
           .infer = infer_broadcast,
           .derive = derive_where,
           .backward_reads = Reads::inputs,
           .constant_inputs = 1,
           .elementwise = true},
          gradient("where_gradient", {{"chosen", Kind::flag}}, infer_where_gradient),
          {.name = "cast", .attributes = {{"dtype", Kind::text}}, .infer = infer_cast},
          {.name = "stop_gradient",
           .infer = [](const InferContext& c) { return Types{c.input(0)}; },
           .view = true,
           .flops = no_flops}};
}

}  // namespace

std::span<const OpInfo> compare_ops() {
  static const std::vector<OpInfo> ops = make_ops();
  return ops;
}

}  // namespace brisk::graph

namespace brisk {
namespace {

Var compare(const char* relation, Var a, Var b, Where where = {}) {
  return graph::apply("compare", {a, b}, {{"relation", std::string(relation)}}, relation, where);
}

Var compare(const char* relation, Var x, double value, Where where = {}) {
  graph::check_number(cat(relation, ": value"), value, where);
  return graph::apply("compare_scalar", {x}, {{"relation", std::string(relation)}, {"value", value}}, relation, where);
}

}  // namespace

Var operator<(Var a, Var b) { return compare("less", a, b); }
Var operator<=(Var a, Var b) { return compare("less_equal", a, b); }
Var operator>(Var a, Var b) { return compare("greater", a, b); }
Var operator>=(Var a, Var b) { return compare("greater_equal", a, b); }
Var operator<(Var x, double value) { return compare("less", x, value); }
Var operator<=(Var x, double value) { return compare("less_equal", x, value); }
Var operator>(Var x, double value) { return compare("greater", x, value); }
Var operator>=(Var x, double value) { return compare("greater_equal", x, value); }
Var operator<(double value, Var x) { return x > value; }
Var operator<=(double value, Var x) { return x >= value; }
Var operator>(double value, Var x) { return x < value; }
Var operator>=(double value, Var x) { return x <= value; }
Var equal(Var a, Var b, Where where) { return compare("equal", a, b, where); }
Var equal(Var x, double value, Where where) { return compare("equal", x, value, where); }
Var not_equal(Var a, Var b, Where where) { return compare("not_equal", a, b, where); }
Var not_equal(Var x, double value, Where where) { return compare("not_equal", x, value, where); }

Var where(Var condition, Var a, Var b, Where at) { return graph::apply("where", {condition, a, b}, {}, "where", at); }

Var cast(Var x, DType dtype, Where where) {
  graph::check_option(graph::is_cast_type(dtype), "cast.dtype", name(dtype), graph::kCastText, where);
  if (x.dtype() == dtype) return x;
  return graph::apply("cast", {x}, {{"dtype", std::string(name(dtype))}}, "cast", where);
}

Var stop_gradient(Var x, Where where) { return graph::apply("stop_gradient", {x}, {}, "stop_gradient", where); }

}  // namespace brisk
