// Matrix products over features, weights are [out, in]; bias per channel and its gradient.
#include "brisk/ops/linear.h"

#include <algorithm>
#include <cmath>

#include "graph/ops/front.h"

namespace brisk::graph {
namespace {

constexpr const char* kFeatures = "[N, features]";

void check_features(const InferContext& c) {
  const ValueType& x = c.input(0);
  if (x.batched() && x.dtype == DType::f32 && x.shape.rank() > 1) {
    c.fail(cat("input must be [N, features], got ", c.describe(0), "; put flatten() between them"));
  }
  want_batched(c, 0, "input", kFeatures, 1);
}

Types infer_linear(const InferContext& c) {
  check_features(c);
  const ValueType& x = c.input(0);
  const ValueType& weight = want_plain(c, 1, "weight", "[out, in]", 2);
  if (weight.shape[1] != x.shape[0]) {
    c.fail(cat("weight ", c.describe(1), " takes ", weight.shape[1], " features, the input has ", x.shape[0], ": ",
               c.describe(0)));
  }
  if (c.count() == 3) want_type(c, 2, "bias", plain({weight.shape[0]}));
  check_activation(c);
  return {batched(x.rows, {weight.shape[0]})};
}

void derive_linear(Derivation& d) {
  const ValueId dz = through_activation(d);
  if (d.wants(0)) d.set(0, d.emit("linear_input_gradient", {dz, d.input(1)}));
  if (d.wants(1)) d.set(1, d.emit("linear_weight_gradient", {d.input(0), dz}));
  if (d.count() == 3 && d.wants(2)) d.set(2, d.emit("channel_sum", {dz}));
}

Types infer_linear_input_gradient(const InferContext& c) {
  const ValueType& dy = want_batched(c, 0, "gradient", kFeatures, 1);
  const ValueType& weight = want_plain(c, 1, "weight", "[out, in]", 2);
  want_type(c, 0, "gradient", batched(dy.rows, {weight.shape[0]}));
  return {batched(dy.rows, {weight.shape[1]})};
}

Types infer_linear_weight_gradient(const InferContext& c) {
  const ValueType& x = want_batched(c, 0, "input", kFeatures, 1);
  const ValueType& dy = want_batched(c, 1, "gradient", kFeatures, 1);
  return {plain({dy.shape[0], x.shape[0]})};
}

const ValueType& want_channels(const InferContext& c, const char* role) {
  const ValueType& x = want_batched(c, 0, role, "[N, channels, ...]");
  c.require(x.shape.rank() > 0, cat(role, " must be [N, channels, ...], got ", c.describe(0)));
  return x;
}

Types infer_bias_add(const InferContext& c) {
  const ValueType& x = want_channels(c, "input");
  want_type(c, 1, "bias", plain({x.shape[0]}));
  return {x};
}

void derive_bias_add(Derivation& d) {
  const ValueId dy = d.output_gradient();
  if (d.wants(0)) d.set(0, dy);
  if (d.wants(1)) d.set(1, d.emit("channel_sum", {dy}));
}

Types infer_channel_sum(const InferContext& c) { return {plain({want_channels(c, "input").shape[0]})}; }

// Rows and columns of an operand as it enters the product.
Pair matrix_of(const InferContext& c, int i, bool transposed) {
  const Shape& shape = want_f32(c, i).shape;
  if (shape.rank() != 2) c.fail(cat("operands must be matrices [M, K], got ", c.describe(i)));
  return transposed ? Pair{shape[1], shape[0]} : Pair{shape[0], shape[1]};
}

Types infer_matmul(const InferContext& c) {
  const Pair a = matrix_of(c, 0, c.attributes().flag("transpose_a"));
  const Pair b = matrix_of(c, 1, c.attributes().flag("transpose_b"));
  if (a[1] != b[0]) {
    c.fail(cat("columns of the first (", a[1], ") and rows of the second (", b[0], ") must be equal, got ",
               c.describe(0), " and ", c.describe(1)));
  }
  return {{DType::f32, std::max(c.input(0).rows, c.input(1).rows), {a[0], b[1]}}};
}

ValueId product(Derivation& d, ValueId a, ValueId b, bool transpose_a, bool transpose_b) {
  return d.emit("matmul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
}

// Y = A B with A = a or a', B = b or b': dA = dY B', dB = A' dY; transposed where the operand was. An operand without a
// batch collects from all samples.
void derive_matmul(Derivation& d) {
  const ValueId a = d.input(0), b = d.input(1), dy = d.output_gradient();
  const bool ta = d.attributes().flag("transpose_a"), tb = d.attributes().flag("transpose_b");
  const auto finish = [&d](int i, ValueId gradient) {
    const bool collect = d.type(gradient).batched() && !d.type(d.input(i)).batched();
    d.set(i, collect ? d.emit("batch_sum", {gradient}) : gradient);
  };
  if (d.wants(0)) finish(0, ta ? product(d, b, dy, tb, true) : product(d, dy, b, false, !tb));
  if (d.wants(1)) finish(1, tb ? product(d, dy, a, true, ta) : product(d, a, dy, !ta, false));
}

double linear_flops(const Graph& graph, const Node& n) {
  const bool has_weight = !graph.type(n.inputs[1]).batched();
  const Shape& weight = graph.type(has_weight ? n.inputs[1] : n.outputs[0]).shape;
  return 2.0 * static_cast<double>(graph.type(n.inputs[0]).rows) * static_cast<double>(weight.count());
}

double matmul_flops(const Graph& graph, const Node& node) {
  const Shape& a = graph.type(node.inputs[0]).shape;
  const int64_t inner = node.attributes.flag("transpose_a") ? a[0] : a[1];
  return 2.0 * static_cast<double>(graph.type(node.outputs[0]).elements()) * static_cast<double>(inner);
}

}  // namespace

std::span<const OpInfo> linear_ops() {
  static const std::vector<OpInfo> ops = {
      {.name = "linear",
       .minimum_inputs = 2,
       .maximum_inputs = 3,
       .attributes = {{"activation", Kind::text}},
       .infer = infer_linear,
       .derive = derive_linear,
       .backward_reads = Reads::both,
       .flops = linear_flops},
      {.name = "linear_input_gradient",
       .minimum_inputs = 2,
       .maximum_inputs = 2,
       .infer = infer_linear_input_gradient,
       .flops = linear_flops},
      {.name = "linear_weight_gradient",
       .minimum_inputs = 2,
       .maximum_inputs = 2,
       .infer = infer_linear_weight_gradient,
       .flops = linear_flops},
      {.name = "bias_add",
       .minimum_inputs = 2,
       .maximum_inputs = 2,
       .infer = infer_bias_add,
       .derive = derive_bias_add},
      {.name = "channel_sum", .infer = infer_channel_sum, .flops = flops_per_input<1>},
      {.name = "matmul",
       .minimum_inputs = 2,
       .maximum_inputs = 2,
       .attributes = {{"transpose_a", Kind::flag}, {"transpose_b", Kind::flag}},
       .infer = infer_matmul,
       .derive = derive_matmul,
       .backward_reads = Reads::inputs,
       .flops = matmul_flops},
  };
  return ops;
}

}  // namespace brisk::graph

namespace brisk {

Var linear(Var x, int64_t features, LinearOptions options, Where where) {
  using namespace graph;
  check_integer("linear.features", features, 1, "it counts outputs, for example linear(x, 10)", where);
  Layer layer(x, "fc", options.name, where);
  check_input(x, "linear", layer.name(), where, check_features);
  const int64_t in = Access::type(x).shape[0];
  const Init uniform = init::uniform(1 / std::sqrt(static_cast<double>(in)));
  std::vector<Var> inputs = {x, layer.parameter("weight", {features, in}, uniform, TorchLayout::same)};
  if (options.bias) inputs.push_back(layer.parameter("bias", {features}, uniform, TorchLayout::same));
  return layer.apply("linear", inputs, {{"activation", std::string("none")}});
}

Var bias_add(Var x, Var bias, Where where) { return graph::apply("bias_add", {x, bias}, {}, "bias", where); }

Var matmul(Var a, Var b, MatmulOptions options, Where where) {
  return graph::apply("matmul", {a, b}, {{"transpose_a", options.transpose_a}, {"transpose_b", options.transpose_b}},
                      "matmul", where);
}

}  // namespace brisk
