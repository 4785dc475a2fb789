// Operations that move elements without changing them, frames around them, and fixed numbers.
#include "brisk/ops/shape.h"

#include <algorithm>
#include <cmath>
#include <numeric>

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

// Dimension i of the output is dimension axes[i] of the input, both of one sample.
Types infer_permute(const InferContext& c) {
  const ValueType& x = c.input(0);
  const std::vector<int64_t>& axes = c.attributes().integers("axes");
  std::vector<bool> named(static_cast<size_t>(x.shape.rank()), false);
  ValueType out{x.dtype, x.rows, {}};
  for (const int64_t axis : axes) {
    const bool fresh = axis >= 0 && axis < x.shape.rank() && !named[static_cast<size_t>(axis)];
    if (!fresh) c.fail(cat("axes must name each of the ", x.shape.rank(), " dimensions of a sample once"));
    named[static_cast<size_t>(axis)] = true;
    out.shape.append(x.shape[static_cast<int>(axis)]);
  }
  if (out.shape.rank() != x.shape.rank()) c.fail(cat("axes must name all dimensions of a sample of ", c.describe(0)));
  return {out};
}

void derive_permute(Derivation& d) {
  if (!d.wants(0)) return;
  const std::vector<int64_t> axes = d.attributes().integers("axes");
  std::vector<int64_t> inverse(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) inverse[static_cast<size_t>(axes[i])] = static_cast<int64_t>(i);
  d.set(0, d.emit("permute", {d.output_gradient()}, {{"axes", inverse}}));
}

// Sizes before and behind the last dimensions, as many as the attributes have.
Types infer_pad(const InferContext& c) {
  ValueType out = want_f32(c, 0);
  const std::vector<int64_t>&before = c.attributes().integers("before"), &after = c.attributes().integers("after");
  if (before.size() != after.size() || static_cast<int>(before.size()) > std::min(out.shape.rank(), 2)) {
    c.fail(cat("before and after must have one size for each of at most two last dimensions of ", c.describe(0)));
  }
  for (size_t i = 0; i < before.size(); ++i) {
    int64_t& size = out.shape[out.shape.rank() - static_cast<int>(before.size() - i)];
    if (before[i] < 0 || after[i] < 0) c.fail("before and after must be at least 0");
    if (__builtin_add_overflow(size, before[i], &size) || __builtin_add_overflow(size, after[i], &size)) {
      c.fail(cat("the padded size of ", c.describe(0), " has more than 63 bits"));
    }
  }
  return {out};
}

void derive_pad(Derivation& d) {
  if (!d.wants(0)) return;
  const std::vector<int64_t> before = d.attributes().integers("before");
  const Shape shape = d.type(d.input(0)).shape;
  ValueId dx = d.output_gradient();
  for (size_t i = 0; i < before.size(); ++i) {
    const int axis = shape.rank() - static_cast<int>(before.size() - i);
    if (d.type(dx).shape[axis] == shape[axis]) continue;
    dx = d.emit("slice", {dx}, {{"axis", int64_t{axis}}, {"count", shape[axis]}, {"first", before[i]}});
  }
  d.set(0, dx);
}

Types infer_constant(const InferContext& c) {
  const Shape shape = sizes_of(c, "shape");
  const std::vector<double>& values = c.attributes().reals("values");
  if (static_cast<int64_t>(values.size()) != shape.count()) {
    c.fail(cat("values has ", values.size(), " numbers for the ", shape.count(), " elements of ", shape));
  }
  return {plain(shape)};
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
      {.name = "permute",
       .attributes = {{"axes", Kind::integers}},
       .infer = infer_permute,
       .derive = derive_permute,
       .flops = no_flops},
      {.name = "pad",
       .attributes = {{"after", Kind::integers}, {"before", Kind::integers}, {"value", Kind::real}},
       .infer = infer_pad,
       .derive = derive_pad,
       .flops = no_flops},
      {.name = "constant",
       .minimum_inputs = 0,
       .maximum_inputs = 0,
       .attributes = {{"shape", Kind::integers}, {"values", Kind::reals}},
       .infer = infer_constant,
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
  const int64_t axis = sample_axis(values[0], "concat.axis", options.axis, where);
  return apply("concat", values, {{"axis", axis}}, "concat", where);
}

namespace {

/// Nothing is done for an order that is the one at hand.
Var permuted(Var x, const std::vector<int64_t>& axes, std::string_view kind, Where where) {
  if (std::is_sorted(axes.begin(), axes.end())) return x;
  return graph::apply("permute", {x}, {{"axes", axes}}, kind, where);
}

Var sliced(Var x, int64_t axis, int64_t first, int64_t count, Where where) {
  return graph::apply("slice", {x}, {{"axis", axis}, {"count", count}, {"first", first}}, "slice", where);
}

}  // namespace

Var transpose(Var x, int64_t a, int64_t b, Where where) {
  const int64_t first = graph::sample_axis(x, "transpose.a", a, where);
  const int64_t second = graph::sample_axis(x, "transpose.b", b, where);
  std::vector<int64_t> axes(static_cast<size_t>(graph::Access::type(x).shape.rank()));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  std::swap(axes[static_cast<size_t>(first)], axes[static_cast<size_t>(second)]);
  return permuted(x, axes, "transpose", where);
}

Var permute(Var x, std::vector<int64_t> axes, Where where) {
  using namespace graph;
  const ValueType& type = Access::type(x);
  const Attributes shown = {{"axes", axes}};
  const auto fail = [&](const std::string& message) {
    throw Error(ErrorCode::shape, "permute", cat(shown.print(), " for ", type, ": ", message), where);
  };
  if (static_cast<int>(axes.size()) != type.rank()) fail(cat("must name all ", type.rank(), " dimensions"));
  if (type.batched()) {
    if (axes[0] != 0) fail("the first must be 0: the samples keep their place");
    axes.erase(axes.begin());
  }
  for (int64_t& axis : axes) axis = sample_axis(x, "permute.axes", axis, where);
  std::vector<int64_t> sorted = axes;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) fail("names a dimension twice");
  return permuted(x, axes, "permute", where);
}

Var to_channels_first(Var x, Where where) {
  graph::check_input(x, "to_channels_first", "", where, [](const graph::InferContext& c) {
    graph::want_batched(c, 0, "input", "[N, height, width, channels]", 3, c.input(0).dtype);
  });
  return permuted(x, {2, 0, 1}, "to_channels_first", where);
}

Var slice(Var x, SliceOptions options, Where where) {
  using namespace graph;
  const int64_t axis = sample_axis(x, "slice.axis", options.axis, where);
  const int64_t size = Access::type(x).shape[static_cast<int>(axis)];
  const int64_t first = options.first < 0 ? options.first + size : options.first;
  if (first < 0 || first >= size)
    check_option(false, "slice.first", options.first, cat("must be from ", -size, " to ", size - 1), where);
  const int64_t count = options.count == 0 ? size - first : options.count;
  if (count < 0 || count > size - first)
    check_option(false, "slice.count", options.count,
                 cat("must be from 1 to ", size - first, ", or 0 for all from element ", first, " on"), where);
  return sliced(x, axis, first, count, where);
}

std::vector<Var> chunk(Var x, int64_t parts, ChunkOptions options, Where where) {
  using namespace graph;
  const int64_t axis = sample_axis(x, "chunk.axis", options.axis, where);
  const int64_t size = Access::type(x).shape[static_cast<int>(axis)];
  if (parts < 1 || size % parts != 0)
    throw Error(ErrorCode::shape, cat("chunk.parts = ", parts),
                cat("must divide the ", size, " elements of dimension ", options.axis, " of ", Access::type(x)), where);
  std::vector<Var> made;
  for (int64_t i = 0; i < parts; ++i) made.push_back(sliced(x, axis, i * (size / parts), size / parts, where));
  return made;
}

Var pad(Var x, PadOptions options, Where where) {
  using namespace graph;
  check_integer("pad.bottom", options.bottom, 0, "", where);
  check_integer("pad.left", options.left, 0, "", where);
  check_integer("pad.right", options.right, 0, "", where);
  check_integer("pad.top", options.top, 0, "", where);
  check_option(std::isfinite(static_cast<float>(options.value)) || std::isinf(options.value), "pad.value",
               options.value, "must be a number that an f32 holds, or infinite", where);
  const int rank = Access::type(x).shape.rank();
  std::vector<int64_t> before = {options.top, options.left}, after = {options.bottom, options.right};
  if (rank < 2) {
    check_option(options.top == 0 && options.bottom == 0, "pad.top, pad.bottom", cat(options.top, ", ", options.bottom),
                 cat("must be 0 for ", Access::type(x), ", which has no rows"), where);
    before.erase(before.begin());
    after.erase(after.begin());
  }
  return apply("pad", {x}, {{"after", after}, {"before", before}, {"value", options.value}}, "pad", where);
}

Var constant(std::vector<double> values, Shape shape, Where where) {
  using namespace graph;
  if (static_cast<int64_t>(values.size()) != shape.count() || values.empty())
    throw Error(ErrorCode::shape, "constant", cat("has ", values.size(), " numbers; ", shape, " takes ", shape.count()),
                where);
  for (const double value : values)
    check_option(std::isfinite(static_cast<float>(value)) || std::isinf(value), "constant.values", value,
                 "must be a number that an f32 holds, or infinite", where);
  // No child of a scope that counts its layers: it owns nothing.
  return apply("constant", {}, {{"shape", list(shape)}, {"values", std::move(values)}}, "constant", {});
}

}  // namespace brisk
