// Sums, means and extremes over axes of a sample, their derivatives, and sums over the batch.
#include "brisk/ops/reduce.h"

#include <algorithm>

#include "brisk/ops/elementwise.h"
#include "graph/ops/front.h"

namespace brisk::graph {
namespace {

// Sorted axes, each once, among `rank` dimensions.
const std::vector<int64_t>& axes_of(const InferContext& c, int rank) {
  const std::vector<int64_t>& axes = c.attributes().integers("axes");
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] < 0 || axes[i] >= rank) {
      c.fail(cat("axis ", axes[i], " is not one of the ", rank, " dimensions of a sample of ", c.describe(0)));
    }
    if (i > 0 && axes[i] <= axes[i - 1]) c.fail("axes must be ascending and each named once");
  }
  return axes;
}

bool contains(const std::vector<int64_t>& axes, int axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

Types infer_reduce(const InferContext& c) {
  const ValueType& x = want_f32(c, 0);
  const std::vector<int64_t>& axes = axes_of(c, x.shape.rank());
  Shape out;
  for (int i = 0; i < x.shape.rank(); ++i) {
    if (!contains(axes, i)) out.append(x.shape[i]);
    if (contains(axes, i) && c.attributes().flag("keep")) out.append(1);
  }
  return {{DType::f32, x.rows, out}};
}

ValueId expanded(Derivation& d, ValueId gradient) {
  const Shape shape = d.type(d.input(0)).shape;
  const bool keep = d.attributes().flag("keep");
  const std::vector<int64_t> axes = keep ? std::vector<int64_t>{} : d.attributes().integers("axes");
  return d.emit("expand", {gradient}, {{"axes", axes}, {"shape", std::vector<int64_t>(shape.begin(), shape.end())}});
}

void derive_sum(Derivation& d) {
  if (d.wants(0)) d.set(0, expanded(d, d.output_gradient()));
}

void derive_mean(Derivation& d) {
  if (!d.wants(0)) return;
  const Shape& shape = d.type(d.input(0)).shape;
  double count = 1;
  for (const int64_t axis : d.attributes().integers("axes"))
    count *= static_cast<double>(shape[static_cast<int>(axis)]);
  d.set(0, expanded(d, d.emit("scale", {d.output_gradient()}, {{"factor", 1 / count}})));
}

// x with single elements put in where `axes` say: the rank of `shape`.
Shape with_axes(const Shape& x, const std::vector<int64_t>& axes, int rank) {
  Shape out;
  for (int i = 0, from = 0; i < rank; ++i) out.append(contains(axes, i) ? 1 : x[from++]);
  return out;
}

Types infer_expand(const InferContext& c) {
  const ValueType& x = want_f32(c, 0);
  const Shape shape = sizes_of(c, "shape");
  const std::vector<int64_t>& axes = axes_of(c, shape.rank());
  if (x.shape.rank() + static_cast<int>(axes.size()) != shape.rank()) {
    c.fail(cat("shape ", shape, " must have the dimensions of ", c.describe(0), " and ", axes.size(), " axes"));
  }
  const Shape from = with_axes(x.shape, axes, shape.rank());
  for (int i = 0; i < shape.rank(); ++i) {
    if (from[i] != 1 && from[i] != shape[i]) {
      c.fail(cat("dimension ", i, " of ", shape, " must be ", from[i], ", as in ", c.describe(0)));
    }
  }
  return {{DType::f32, x.rows, shape}};
}

void derive_expand(Derivation& d) {
  if (!d.wants(0)) return;
  const Shape x = d.type(d.input(0)).shape, shape = d.type(d.output()).shape;
  const std::vector<int64_t> inserted = d.attributes().integers("axes");
  const Shape from = with_axes(x, inserted, shape.rank());
  std::vector<int64_t> repeated;
  for (int i = 0; i < shape.rank(); ++i) {
    if (contains(inserted, i) || from[i] != shape[i]) repeated.push_back(i);
  }
  const bool keep = repeated != inserted;
  ValueId dx = d.emit("reduce_sum", {d.output_gradient()}, {{"axes", repeated}, {"keep", keep}});
  if (keep && !inserted.empty()) {
    const int64_t rows = d.type(dx).rows;
    dx = d.emit("reshape", {dx}, {{"rows", rows}, {"shape", std::vector<int64_t>(x.begin(), x.end())}});
  }
  d.set(0, dx);
}

/// Each sample gets the gradient of the sum; x is read for its rows alone.
void derive_batch_sum(Derivation& d) {
  if (!d.wants(0)) return;
  const ValueId zeros = d.emit("compare", {d.input(0), d.input(0)}, {{"relation", std::string("less")}});
  d.set(0, d.emit("add", {zeros, d.output_gradient()}));
}

Types infer_batch_sum(const InferContext& c) { return {plain(want_batched(c, 0, "input", "[N, ...]").shape)}; }

// The largest element along an axis, and where it lies.
Types infer_max(const InferContext& c) {
  const ValueType& x = want_batched(c, 0, "input", "[N, ...]");
  const int axis = axis_of(c, x);
  ValueType out = x;
  out.shape = {};
  for (int i = 0; i < x.shape.rank(); ++i) {
    if (i != axis) out.shape.append(x.shape[i]);
  }
  ValueType index = out;
  index.dtype = DType::i32;
  return {out, index};
}

void derive_max(Derivation& d) {
  if (!d.wants(0) || d.output_gradient() == kNoValue) return;
  const int64_t axis = d.attributes().integer("axis"), size = d.type(d.input(0)).shape[static_cast<int>(axis)];
  d.set(0, d.emit("reduce_max_gradient", {d.output_gradient(), d.output(1)}, {{"axis", axis}, {"size", size}}));
}

Types infer_max_gradient(const InferContext& c) {
  const ValueType& dy = want_batched(c, 0, "gradient", "[N, ...]");
  want_type(c, 1, "index", batched(dy.rows, dy.shape, DType::i32));
  const int64_t axis = integer_in(c, "axis", 0, dy.shape.rank());
  if (dy.shape.rank() == Shape::kMaximumRank) c.fail(cat("gradient has no room for one dimension more, got ", dy));
  Shape shape;
  for (int i = 0; i <= dy.shape.rank(); ++i) {
    shape.append(i == axis ? integer_in(c, "size", 1, INT32_MAX) : dy.shape[i < axis ? i : i - 1]);
  }
  return {batched(dy.rows, shape)};
}

}  // namespace

std::span<const OpInfo> reduce_ops() {
  static const std::vector<OpInfo> ops = {
      {.name = "reduce_sum",
       .attributes = {{"axes", Kind::integers}, {"keep", Kind::flag}},
       .infer = infer_reduce,
       .derive = derive_sum,
       .flops = flops_per_input<1>},
      {.name = "reduce_mean",
       .attributes = {{"axes", Kind::integers}, {"keep", Kind::flag}},
       .infer = infer_reduce,
       .derive = derive_mean,
       .flops = flops_per_input<1>},
      {.name = "expand",
       .attributes = {{"axes", Kind::integers}, {"shape", Kind::integers}},
       .infer = infer_expand,
       .derive = derive_expand,
       .flops = no_flops},
      {.name = "batch_sum",
       .infer = infer_batch_sum,
       .derive = derive_batch_sum,
       .backward_reads = Reads::inputs,
       .flops = flops_per_input<1>},
      {.name = "reduce_max",
       .outputs = 2,
       .attributes = {{"axis", Kind::integer}},
       .infer = infer_max,
       .derive = derive_max,
       .backward_reads = Reads::outputs,
       .flops = flops_per_input<1>},
      {.name = "reduce_max_gradient",
       .minimum_inputs = 2,
       .maximum_inputs = 2,
       .attributes = {{"axis", Kind::integer}, {"size", Kind::integer}},
       .infer = infer_max_gradient,
       .flops = no_flops},
  };
  return ops;
}

}  // namespace brisk::graph

namespace brisk {

namespace {

Var reduce(std::string_view op, Var x, const ReduceOptions& options, Where where) {
  using namespace graph;
  const ValueType& type = Access::type(x);
  std::vector<int64_t> axes;
  for (const int64_t axis : options.axes) axes.push_back(sample_axis(x, cat(op, ".axes"), axis, where));
  std::sort(axes.begin(), axes.end());
  if (std::adjacent_find(axes.begin(), axes.end()) != axes.end()) {
    throw Error(ErrorCode::shape, std::string(op) + ".axes", "name a dimension twice; each may be named once", where);
  }
  for (int64_t axis = 0; options.axes.empty() && axis < type.shape.rank(); ++axis) axes.push_back(axis);
  if (axes.empty()) return x;  // one number a sample
  return apply(op, {x}, {{"axes", axes}, {"keep", options.keep}}, op.substr(op.find('_') + 1), where);
}

}  // namespace

Var reduce_sum(Var x, ReduceOptions options, Where where) { return reduce("reduce_sum", x, options, where); }
Var reduce_mean(Var x, ReduceOptions options, Where where) { return reduce("reduce_mean", x, options, where); }

Var batch_mean(Var x, Where where) {
  using namespace graph;
  if (!Access::type(x).batched())
    throw Error(ErrorCode::shape, "batch_mean",
                cat("takes a value of each sample, got ", Access::type(x), " without a batch"), where);
  Layer layer(x, "batch_mean", "", where);
  const Var ones =
      layer.apply("add_scalar", {reduce_rows(layer, "reduce_sum", zeros_like(layer, x))}, {{"value", 1.0}});
  const Var count = layer.apply("batch_sum", {ones}, {});
  return layer.apply("div", {layer.apply("batch_sum", {x}, {}), count}, {});
}

Var reduce_max(Var x, ReduceMaxOptions options, Where where) {
  using namespace graph;
  const int64_t axis = sample_axis(x, "reduce_max.axis", options.axis, where);
  const Var y = apply("reduce_max", {x}, {{"axis", axis}}, "max", where);
  if (!options.keep) return y;
  std::vector<int64_t> shape = list(Access::type(x).shape);
  shape[static_cast<size_t>(axis)] = 1;
  return apply("reshape", {y}, {{"rows", Access::type(y).rows}, {"shape", shape}}, "reshape", {});
}

Var reduce_min(Var x, ReduceMaxOptions options, Where where) {
  using namespace graph;
  check_input(x, "reduce_min", "", where, [](const InferContext& c) { want_f32(c, 0); });
  sample_axis(x, "reduce_min.axis", options.axis, where);
  return -reduce_max(-x, options, where);
}

Var batch_sum(Var x, Where where) { return graph::apply("batch_sum", {x}, {}, "batch_sum", where); }

}  // namespace brisk
