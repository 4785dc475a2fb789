// Operations that move elements without changing them.
#include "brisk/ops/shape.h"

#include "graph/ops/front.h"

namespace brisk::graph {
namespace {

Types infer_reshape(const InferContext& c) {
  const ValueType& x = c.input(0);
  const Shape shape = sizes_of(c, "shape");
  const int64_t rows = c.attributes().integer("rows");
  if ((rows > 0) != x.batched() || rows < 0) {
    c.fail(cat("rows = ", rows, ": must be ", x.batched() ? "at least 1" : "0", " for ", c.describe(0)));
  }
  const ValueType out{x.dtype, rows, shape};
  int64_t elements = 0;
  if (__builtin_mul_overflow(x.batched() ? rows : 1, shape.count(), &elements) || elements != x.elements()) {
    c.fail(cat(out, " must have as many elements as ", c.describe(0)));
  }
  return {out};
}

void derive_reshape(Derivation& d) {
  if (!d.wants(0)) return;
  const ValueType x = d.type(d.input(0));
  d.set(0, d.emit("reshape", {d.output_gradient()},
                  {{"rows", x.rows}, {"shape", std::vector<int64_t>(x.shape.begin(), x.shape.end())}}));
}

Types infer_concat(const InferContext& c) {
  ValueType out = c.input(0);
  const int axis = axis_of(c, out);
  for (int i = 1; i < c.count(); ++i) {
    const ValueType& x = c.input(i);
    bool fits = x.dtype == out.dtype && x.batched() == out.batched() && x.shape.rank() == out.shape.rank();
    for (int k = 0; fits && k < out.shape.rank(); ++k) fits = k == axis || x.shape[k] == out.shape[k];
    if (!fits || __builtin_add_overflow(out.shape[axis], x.shape[axis], &out.shape[axis])) {
      const int seen = axis + (out.batched() ? 1 : 0);
      c.fail(cat("inputs may differ along axis ", seen, " only, got ", c.describe(0), " and ", c.describe(i)));
    }
  }
  return {out};
}

void derive_concat(Derivation& d) {
  const int64_t axis = d.attributes().integer("axis");
  int64_t first = 0;
  for (int i = 0; i < d.count(); ++i) {
    const int64_t count = d.type(d.input(i)).shape[static_cast<int>(axis)];
    if (d.wants(i)) {
      d.set(i, d.emit("slice", {d.output_gradient()}, {{"axis", axis}, {"count", count}, {"first", first}}));
    }
    first += count;
  }
}

Types infer_slice(const InferContext& c) {
  ValueType out = c.input(0);
  const int axis = axis_of(c, out);
  const int64_t size = out.shape[axis];
  const int64_t first = integer_in(c, "first", 0, size - 1);
  out.shape[axis] = integer_in(c, "count", 1, size - first);
  return {out};
}

void derive_slice(Derivation& d) {
  if (!d.wants(0)) return;
  const int64_t axis = d.attributes().integer("axis"), first = d.attributes().integer("first");
  const int64_t size = d.type(d.input(0)).shape[static_cast<int>(axis)];
  d.set(0, d.emit("pad_slice", {d.output_gradient()}, {{"axis", axis}, {"first", first}, {"size", size}}));
}

Types infer_pad_slice(const InferContext& c) {
  ValueType out = want_f32(c, 0);
  const int axis = axis_of(c, out);
  const int64_t size = integer_in(c, "size", out.shape[axis], INT64_MAX);
  integer_in(c, "first", 0, size - out.shape[axis]);
  out.shape[axis] = size;
  return {out};
}

void derive_pad_slice(Derivation& d) {
  if (!d.wants(0)) return;
  const int64_t axis = d.attributes().integer("axis"), first = d.attributes().integer("first");
  const int64_t count = d.type(d.input(0)).shape[static_cast<int>(axis)];
  d.set(0, d.emit("slice", {d.output_gradient()}, {{"axis", axis}, {"count", count}, {"first", first}}));
}

}  // namespace

std::span<const OpInfo> shape_ops() {
  static const std::vector<OpInfo> ops = {
      {.name = "reshape",
       .attributes = {{"rows", Kind::integer}, {"shape", Kind::integers}},
       .infer = infer_reshape,
       .derive = derive_reshape,
       .view = true,
       .flops = no_flops},
      {.name = "concat",
       .maximum_inputs = -1,
       .attributes = {{"axis", Kind::integer}},
       .infer = infer_concat,
       .derive = derive_concat,
       .flops = no_flops},
      {.name = "slice",
       .attributes = {{"axis", Kind::integer}, {"count", Kind::integer}, {"first", Kind::integer}},
       .infer = infer_slice,
       .derive = derive_slice,
       .flops = no_flops},
      {.name = "pad_slice",
       .attributes = {{"axis", Kind::integer}, {"first", Kind::integer}, {"size", Kind::integer}},
       .infer = infer_pad_slice,
       .derive = derive_pad_slice,
       .flops = no_flops},
  };
  return ops;
}

}  // namespace brisk::graph

namespace brisk {

Var flatten(Var x, Where where) {
  using namespace graph;
  const ValueType& type = Access::type(x);
  return apply("reshape", {x}, {{"rows", type.rows}, {"shape", std::vector<int64_t>{type.shape.count()}}}, "flatten",
               where);
}

Var reshape(Var x, std::vector<int64_t> sizes, Where where) {
  using namespace graph;
  const ValueType& type = Access::type(x);
  const Attributes shown = {{"sizes", sizes}};
  const auto fail = [&](const std::string& message) {
    throw Error(ErrorCode::shape, "reshape", cat(shown.print(), " for ", type, ": ", message), where);
  };
  if (type.batched()) {
    if (sizes.empty() || sizes[0] != -1) fail("the first size must be -1, which keeps the samples");
    sizes.erase(sizes.begin());
  }
  if (sizes.size() > Shape::kMaximumRank) fail(cat("at most ", Shape::kMaximumRank, " sizes"));
  for (const int64_t size : sizes) {
    if (size < 1) fail(type.batched() ? "all sizes but the first must be at least 1" : "sizes must be at least 1");
  }
  const int64_t count = shape_of(sizes).count();
  if (type.elements() % count != 0) fail("the elements do not fit");
  const int64_t rows = type.batched() ? type.elements() / count : 0;
  return apply("reshape", {x}, {{"rows", rows}, {"shape", sizes}}, "reshape", where);
}

Var concat(const std::vector<Var>& values, ConcatOptions options, Where where) {
  using namespace graph;
  if (values.empty()) throw Error(ErrorCode::shape, "concat", "needs at least one value", where);
  const int64_t axis = sample_axis(values[0], "concat", options.axis, where);
  return apply("concat", values, {{"axis", axis}}, "concat", where);
}

}  // namespace brisk
