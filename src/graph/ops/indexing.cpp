// Operations that read by index or make indices, and tables of rows that are learnt.
#include "brisk/ops/indexing.h"

#include "graph/ops/front.h"

namespace brisk::graph {
namespace {

const ValueType& want_indices(const InferContext& c, int i) {
  return want_batched(c, i, "index", "[N, ...]", -1, DType::i64);
}

/// The index of gather: one a row, or k.
const ValueType& want_row_indices(const InferContext& c, int i) {
  const ValueType& index = want_indices(c, i);
  if (index.shape.rank() > 1) c.fail(cat("index must be [N] or [N, k], got ", c.describe(i)));
  return index;
}

Shape followed_by(Shape shape, int64_t size) {
  shape.append(size);
  return shape;
}

void check_rank(const InferContext& c, const ValueType& index) {
  if (index.shape.rank() == Shape::kMaximumRank) c.fail(cat("index has no room for one dimension more, got ", index));
}

Types infer_gather(const InferContext& c) {
  const ValueType& x = want_batched(c, 0, "input", "[N, C]", 1);
  return {batched(x.rows, want_row_indices(c, 1).shape)};
}

void derive_gather(Derivation& d) {
  if (!d.wants(0)) return;
  const int64_t classes = d.type(d.input(0)).shape[0];
  d.set(0, d.emit("gather_gradient", {d.output_gradient(), d.input(1)}, {{"classes", classes}}));
}

Types infer_gather_gradient(const InferContext& c) {
  const ValueType& index = want_row_indices(c, 1);
  want_type(c, 0, "gradient", batched(index.rows, index.shape));
  return {batched(index.rows, {integer_in(c, "classes", 1, INT32_MAX)})};
}

Types infer_argmax(const InferContext& c) {
  const ValueType& x = want_batched(c, 0, "input", "[N, ..., C]");
  c.require(x.shape.rank() > 0, cat("input must be [N, ..., C], got ", c.describe(0)));
  Shape shape;
  for (int i = 0; i + 1 < x.shape.rank(); ++i) shape.append(x.shape[i]);
  return {batched(x.rows, shape, DType::i64)};
}

Types infer_one_hot(const InferContext& c) {
  const ValueType& index = want_indices(c, 0);
  check_rank(c, index);
  return {batched(index.rows, followed_by(index.shape, integer_in(c, "classes", 1, INT32_MAX)))};
}

Types infer_embedding(const InferContext& c) {
  const ValueType& weight = want_plain(c, 0, "weight", "[count, features]", 2);
  const ValueType& index = want_indices(c, 1);
  check_rank(c, index);
  return {batched(index.rows, followed_by(index.shape, weight.shape[1]))};
}

void derive_embedding(Derivation& d) {
  if (!d.wants(0)) return;
  const int64_t count = d.type(d.input(0)).shape[0];
  d.set(0, d.emit("embedding_gradient", {d.output_gradient(), d.input(1)}, {{"count", count}}));
}

Types infer_embedding_gradient(const InferContext& c) {
  const ValueType& index = want_indices(c, 1);
  const ValueType& dy = want_batched(c, 0, "gradient", "[N, ..., features]", index.shape.rank() + 1);
  const int64_t features = dy.shape[dy.shape.rank() - 1];
  want_type(c, 0, "gradient", batched(index.rows, followed_by(index.shape, features)));
  return {plain({integer_in(c, "count", 1, INT32_MAX), features})};
}

}  // namespace

std::span<const OpInfo> indexing_ops() {
  static const std::vector<OpInfo> ops = {
      {.name = "gather",
       .minimum_inputs = 2,
       .maximum_inputs = 2,
       .infer = infer_gather,
       .derive = derive_gather,
       .backward_reads = Reads::inputs,
       .flops = no_flops},
      {.name = "gather_gradient",
       .minimum_inputs = 2,
       .maximum_inputs = 2,
       .attributes = {{"classes", Kind::integer}},
       .infer = infer_gather_gradient,
       .flops = flops_per_input<1>},
      {.name = "argmax", .infer = infer_argmax, .flops = flops_per_input<1>},
      {.name = "one_hot", .attributes = {{"classes", Kind::integer}}, .infer = infer_one_hot, .flops = no_flops},
      {.name = "embedding",
       .minimum_inputs = 2,
       .maximum_inputs = 2,
       .infer = infer_embedding,
       .derive = derive_embedding,
       .backward_reads = Reads::inputs,
       .flops = no_flops},
      {.name = "embedding_gradient",
       .minimum_inputs = 2,
       .maximum_inputs = 2,
       .attributes = {{"count", Kind::integer}},
       .infer = infer_embedding_gradient,
       .flops = flops_per_input<1>},
  };
  return ops;
}

}  // namespace brisk::graph

namespace brisk {

using namespace graph;

Var gather(Var x, Var index, Where where) { return apply("gather", {x, index}, {}, "gather", where); }

Var argmax(Var x, Where where) { return apply("argmax", {x}, {}, "argmax", where); }

Var one_hot(Var index, int64_t classes, Where where) {
  check_integer("one_hot.classes", classes, 1, "", where);
  return apply("one_hot", {index}, {{"classes", classes}}, "one_hot", where);
}

Var embedding(Var index, EmbeddingOptions options, Where where) {
  check_integer("embedding.count", options.count, 1, "one more than the largest index, for example .count = 1000",
                where);
  check_integer("embedding.features", options.features, 1, "elements of a row, for example .features = 64", where);
  Layer layer(index, "embedding", options.name, where);
  check_input(index, "embedding", layer.name(), where, [](const InferContext& c) { want_indices(c, 0); });
  const Var weight = layer.parameter("weight", {options.count, options.features}, init::normal(1), TorchLayout::same);
  return layer.apply("embedding", {weight, index}, {});
}

}  // namespace brisk
