// Normalisation within a sample: over its last dimensions (Ba, Kiros and Hinton, 2016), or over groups of its channels
// (Wu and He, 2018). Both give the mean and the inverse deviation of each group, which their derivatives read.
#include "brisk/ops/norm.h"
#include "graph/ops/front.h"

namespace brisk::graph {
namespace {

/// What is normalised together, of one sample: one mean for each element of `groups`; the weight's shape.
struct Groups {
  Shape groups;
  Shape weight;
};

Groups groups_of(const InferContext& c, const ValueType& x) {
  Groups g;
  if (c.attributes().has("groups")) {
    c.require(x.shape.rank() > 0, cat("input must be [N, channels, ...], got ", c.describe(0)));
    const int64_t groups = integer_in(c, "groups", 1, INT32_MAX);
    if (x.shape[0] % groups != 0) {
      c.fail(cat("groups = ", groups, ": must divide the ", x.shape[0], " channels of ", c.describe(0)));
    }
    return {{groups}, {x.shape[0]}};
  }
  const int64_t dims = integer_in(c, "dims", 1, Shape::kMaximumRank);
  if (dims > x.shape.rank()) {
    c.fail(cat("dims = ", dims, ": a sample has ", x.shape.rank(), " dimensions, got ", c.describe(0)));
  }
  for (int i = 0; i < x.shape.rank(); ++i) (i < x.shape.rank() - dims ? g.groups : g.weight).append(x.shape[i]);
  return g;
}

Types infer_norm(const InferContext& c) {
  const ValueType& x = want_batched(c, 0, "input", "[N, ...]");
  const Groups g = groups_of(c, x);
  c.require(c.count() != 2, "a weight comes with a bias");
  const char* const roles[] = {"weight", "bias"};
  for (int i = 1; i < c.count(); ++i) want_type(c, i, roles[i - 1], plain(g.weight));
  const double epsilon = c.attributes().real("epsilon");
  if (!(epsilon > 0 && epsilon < 1)) c.fail(cat("epsilon = ", epsilon, ": must be between 0 and 1"));
  return {x, batched(x.rows, g.groups), batched(x.rows, g.groups)};
}

// (dy, x, mean, inverse deviation, weight or none): dx, and the gradients of weight and bias.
Types infer_gradient(const InferContext& c) {
  const ValueType& dy = want_batched(c, 0, "gradient", "[N, ...]");
  want_type(c, 1, "input", dy);
  const Groups g = groups_of(c, dy);
  want_type(c, 2, "mean", batched(dy.rows, g.groups));
  want_type(c, 3, "inverse deviation", batched(dy.rows, g.groups));
  if (c.count() == 4) return {dy};
  want_type(c, 4, "weight", plain(g.weight));
  return {dy, plain(g.weight), plain(g.weight)};
}

void derive_norm(Derivation& d) {
  const ValueId dy = d.output_gradient();
  if (dy == kNoValue) return;
  const bool affine = d.count() == 3;
  if (!d.wants(0) && !(affine && (d.wants(1) || d.wants(2)))) return;
  const bool of_channels = d.attributes().has("groups");
  const char* const size = of_channels ? "groups" : "dims";
  std::vector<ValueId> inputs = {dy, d.input(0), d.output(1), d.output(2)};
  if (affine) inputs.push_back(d.input(1));
  const int32_t index = d.emit_node(of_channels ? "group_norm_gradient" : "layer_norm_gradient", inputs,
                                    {{size, d.attributes().integer(size)}});
  const std::vector<ValueId> gradients = d.graph().nodes[static_cast<size_t>(index)].outputs;
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (d.wants(static_cast<int>(i))) d.set(static_cast<int>(i), gradients[i]);
  }
}

OpInfo forward(std::string_view name, std::vector<AttributeInfo> attributes) {
  return {.name = name,
          .maximum_inputs = 3,
          .outputs = 3,
          .attributes = std::move(attributes),
          .infer = infer_norm,
          .derive = derive_norm,
          .backward_reads = Reads::both,
          .flops = flops_per_input<7>};
}

OpInfo gradient(std::string_view name, std::vector<AttributeInfo> attributes) {
  return {.name = name,
          .minimum_inputs = 4,
          .maximum_inputs = 5,
          .outputs = -1,
          .attributes = std::move(attributes),
          .infer = infer_gradient,
          .flops = flops_per_input<14>};
}

}  // namespace

std::span<const OpInfo> layer_norm_ops() {
  static const std::vector<OpInfo> ops = {
      forward("layer_norm", {{"dims", Kind::integer}, {"epsilon", Kind::real}}),
      gradient("layer_norm_gradient", {{"dims", Kind::integer}}),
      forward("group_norm", {{"epsilon", Kind::real}, {"groups", Kind::integer}}),
      gradient("group_norm_gradient", {{"groups", Kind::integer}}),
  };
  return ops;
}

}  // namespace brisk::graph

namespace brisk {

namespace {

void check_epsilon(const char* field, double epsilon, Where where) {
  graph::check_option(epsilon > 0 && epsilon < 1, field, epsilon, "must be more than 0 and less than 1", where);
}

Var normalised(graph::Layer& layer, std::string_view op, Var x, const Shape& weights, bool affine,
               graph::Attributes attributes) {
  std::vector<Var> inputs = {x};
  if (affine) {
    inputs.push_back(layer.parameter("weight", weights, init::ones(), graph::TorchLayout::same, false));
    inputs.push_back(layer.parameter("bias", weights, init::zeros(), graph::TorchLayout::same, false));
  }
  return layer.apply(op, inputs, std::move(attributes));
}

}  // namespace

Var layer_norm(Var x, LayerNormOptions options, Where where) {
  using namespace graph;
  check_epsilon("layer_norm.epsilon", options.epsilon, where);
  const Shape& shape = Access::type(x).shape;
  if (options.dims < 1 || options.dims > shape.rank()) {
    check_option(false, "layer_norm.dims", options.dims,
                 cat("must be from 1 to the ", shape.rank(), " dimensions of a sample of ", Access::type(x)), where);
  }
  Layer layer(x, "ln", options.name, where);
  Shape weights;
  for (auto i = static_cast<int>(shape.rank() - options.dims); i < shape.rank(); ++i) weights.append(shape[i]);
  return normalised(layer, "layer_norm", x, weights, options.affine,
                    {{"dims", options.dims}, {"epsilon", options.epsilon}});
}

Var group_norm(Var x, GroupNormOptions options, Where where) {
  using namespace graph;
  check_epsilon("group_norm.epsilon", options.epsilon, where);
  check_integer("group_norm.groups", options.groups, 1, "it divides the channels, for example .groups = 32", where);
  Layer layer(x, "gn", options.name, where);
  check_input(x, "group_norm", layer.name(), where, [](const InferContext& c) {
    const ValueType& type = want_batched(c, 0, "input", "[N, channels, ...]");
    c.require(type.shape.rank() > 0, cat("input must be [N, channels, ...], got ", c.describe(0)));
  });
  const int64_t channels = Access::type(x).shape[0];
  check_option(channels % options.groups == 0, "group_norm.groups", options.groups,
               cat("must divide the ", channels, " channels of ", Access::type(x)), where);
  return normalised(layer, "group_norm", x, {channels}, options.affine,
                    {{"epsilon", options.epsilon}, {"groups", options.groups}});
}

}  // namespace brisk
