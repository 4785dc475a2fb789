// Batch normalisation over rows, N and all dimensions of a sample but the first (Ioffe and Szegedy, 2015).
#include "brisk/ops/norm.h"

#include <cmath>
#include <limits>

#include "brisk/ops/elementwise.h"
#include "brisk/ops/shape.h"
#include "graph/ops/front.h"

namespace brisk::graph {
namespace {

void check_channels(const InferContext& c) {
  const ValueType& x = want_batched(c, 0, "input", "[N, channels, ...]");
  c.require(x.shape.rank() > 0, cat("input must be [N, channels, ...], got ", c.describe(0)));
}

// Inputs x, gamma, beta, running mean and variance, and perhaps a residual of x's type.
const ValueType& check_inputs(const InferContext& c) {
  check_channels(c);
  const ValueType& x = c.input(0);
  const ValueType channels = plain({x.shape[0]});
  const char* const roles[] = {"scale", "shift", "running mean", "running variance"};
  for (int i = 0; i < 4; ++i) want_type(c, i + 1, roles[i], channels);
  if (c.count() == 6) want_type(c, 5, "residual", x);
  const double epsilon = c.attributes().real("epsilon");
  if (!(epsilon > 0 && epsilon < 1)) c.fail(cat("epsilon = ", epsilon, ": must be between 0 and 1"));
  // silu's derivative is taken at its input, which is computed again: not with a residual.
  if (c.attributes().text("activation") != "silu" || c.count() == 6) check_activation(c);
  return x;
}

Types infer_batch_norm(const InferContext& c) {
  const ValueType& x = check_inputs(c);
  real_in(c, "momentum", 0, 1);
  const ValueType channels = plain({x.shape[0]});
  return {x, channels, channels, channels};
}

Types infer_inference(const InferContext& c) { return {check_inputs(c)}; }

// Activations that the gradient goes through by itself: their input is computed again from x.
bool recomputed(const std::string& activation) { return activation == "relu" || activation == "silu"; }

Types infer_gradient(const InferContext& c) {
  const ValueType& dz = want_batched(c, 0, "gradient", "[N, channels, ...]");
  want_type(c, 1, "input", dz);
  const std::string& activation = c.attributes().text("activation");
  c.require(activation == "none" || recomputed(activation),
            cat("activation = ", activation, ": must be none, relu or silu"));
  const ValueType channels = plain({dz.shape.dim(0)});
  const char* const roles[] = {"scale", "mean", "inverse deviation", "shift"};
  c.require(c.count() == 6 || !recomputed(activation), "an activation needs the shift");
  for (int i = 2; i < c.count(); ++i) want_type(c, i, roles[i - 2], channels);
  return {dz, channels, channels};
}

void derive_batch_norm(Derivation& d) {
  if (d.output_gradient() == kNoValue) return;
  const std::string activation = d.count() == 5 ? d.attributes().text("activation") : "none";
  const bool again = recomputed(activation);
  const ValueId dz = again ? d.output_gradient() : through_activation(d);
  if (d.wants(0) || d.wants(1) || d.wants(2)) {
    std::vector<ValueId> inputs = {dz, d.input(0), d.input(1), d.output(1), d.output(2)};
    if (again) inputs.push_back(d.input(2));
    const int32_t index = d.emit_node("batch_norm_gradient", std::move(inputs),
                                      {{"activation", again ? activation : std::string("none")}});
    const std::vector<ValueId> gradients = d.graph().nodes[static_cast<size_t>(index)].outputs;
    for (int i = 0; i < 3; ++i) {
      if (d.wants(i)) d.set(i, gradients[static_cast<size_t>(i)]);
    }
  }
  if (d.count() == 6 && d.wants(5)) d.set(5, dz);
}

// Statistics are constants here, so y is linear in x and in the parameters, and the operation itself, with parts of it
// put to 0 or 1, is its derivative.
void derive_inference(Derivation& d) {
  const ValueId x = d.input(0), gamma = d.input(1), mean = d.input(3), variance = d.input(4);
  const Attributes linear = {{"activation", std::string("none")}, {"epsilon", d.attributes().real("epsilon")}};
  const bool silu = d.attributes().text("activation") == "silu";
  const ValueId dz =
      silu ? d.emit("silu_gradient", {d.output_gradient(),
                                      d.emit("batch_norm_inference", {x, gamma, d.input(2), mean, variance}, linear)})
           : through_activation(d);
  const ValueId zero = d.wants(0) || d.wants(1) ? d.emit("scale", {gamma}, {{"factor", 0.0}}) : kNoValue;
  if (d.wants(0)) d.set(0, d.emit("batch_norm_inference", {dz, gamma, zero, zero, variance}, linear));
  if (d.wants(1)) {
    const ValueId one = d.emit("add_scalar", {zero}, {{"value", 1.0}});
    const ValueId normalised = d.emit("batch_norm_inference", {x, one, zero, mean, variance}, linear);
    d.set(1, d.emit("channel_sum", {d.emit("mul", {dz, normalised})}));
  }
  if (d.wants(2)) d.set(2, d.emit("channel_sum", {dz}));
  if (d.count() == 6 && d.wants(5)) d.set(5, dz);
}

// The batch's statistics have no reader in an evaluation graph: their values are left without a producer.
void evaluate_batch_norm(Graph& graph, int32_t index) {
  Node& node = graph.nodes[static_cast<size_t>(index)];
  const Attributes attributes = node.attributes;
  for (size_t i = 1; i < node.outputs.size(); ++i) graph.value(node.outputs[i]).producer = -1;
  node.outputs.resize(1);
  node.op = &op("batch_norm_inference");
  node.attributes = {{"activation", attributes.text("activation")}, {"epsilon", attributes.real("epsilon")}};
}

}  // namespace

std::span<const OpInfo> norm_ops() {
  static const std::vector<OpInfo> ops = {
      {.name = "batch_norm",
       .minimum_inputs = 5,
       .maximum_inputs = 6,
       .outputs = 4,
       .attributes = {{"activation", Kind::text}, {"epsilon", Kind::real}, {"momentum", Kind::real}},
       .infer = infer_batch_norm,
       .derive = derive_batch_norm,
       .backward_reads = Reads::both,
       .training_only = true,
       .flops = flops_per_input<7>,
       .evaluation = evaluate_batch_norm},
      {.name = "batch_norm_inference",
       .minimum_inputs = 5,
       .maximum_inputs = 6,
       .attributes = {{"activation", Kind::text}, {"epsilon", Kind::real}},
       .infer = infer_inference,
       .derive = derive_inference,
       .backward_reads = Reads::both,
       .flops = flops_per_input<2>},
      {.name = "batch_norm_gradient",
       .minimum_inputs = 5,
       .maximum_inputs = 6,
       .outputs = 3,
       .attributes = {{"activation", Kind::text}},
       .infer = infer_gradient,
       .flops = flops_per_input<10>},
  };
  return ops;
}

}  // namespace brisk::graph

namespace brisk {

Var batch_norm(Var x, BatchNormOptions options, Where where) {
  using namespace graph;
  check_option(options.epsilon > 0 && options.epsilon < 1, "batch_norm.epsilon", options.epsilon,
               "must be more than 0 and less than 1", where);
  check_option(options.momentum >= 0 && options.momentum <= 1, "batch_norm.momentum", options.momentum,
               "must be from 0 to 1; it is the share of the batch in the running statistics, for example 0.1", where);
  Layer layer(x, "bn", options.name, where);
  check_input(x, "batch_norm", layer.name(), where, check_channels);
  const Shape channels = {Access::type(x).shape[0]};
  // Made one by one: the order of a call's arguments is the compiler's.
  const Var weight = layer.parameter("weight", channels, init::ones(), TorchLayout::same);
  const Var bias = layer.parameter("bias", channels, init::zeros(), TorchLayout::same);
  const Var mean = layer.buffer("running_mean", channels, 0);
  const Var variance = layer.buffer("running_var", channels, 1);
  return layer.apply(
      "batch_norm", {x, weight, bias, mean, variance},
      {{"activation", std::string("none")}, {"epsilon", options.epsilon}, {"momentum", options.momentum}});
}

Var normalize(Var x, NormalizeOptions options, Where where) {
  using namespace graph;
  check_input(x, "normalize", "", where, [](const InferContext& c) {
    const DType dtype = c.input(0).dtype == DType::u8 ? DType::u8 : DType::f32;
    c.require(want_batched(c, 0, "input", "[N, channels, ...]", -1, dtype).shape.rank() > 0,
              cat("input must be [N, channels, ...], got ", c.describe(0)));
  });
  const Shape& sample = Access::type(x).shape;
  const auto channels = static_cast<size_t>(sample[0]);
  const auto check_numbers = [&](const char* field, const std::vector<double>& values, bool positive) {
    check_option(values.size() == channels, cat("normalize.", field), cat(values.size(), " numbers"),
                 cat("must be one for each of the ", channels, " channels of ", Access::type(x)), where);
    for (const double value : values) {
      // With denormals flushed a smaller deviation would be 0.
      const bool right = !positive || value >= std::numeric_limits<float>::min();
      check_option(std::isfinite(static_cast<float>(value)) && right, cat("normalize.", field), value,
                   positive ? "must be finite and above 1.2e-38" : "must be a finite number as an f32", where);
    }
  };
  check_numbers("deviation", options.deviation, true);
  check_numbers("mean", options.mean, false);
  const double most = x.dtype() == DType::u8 ? 255 : 1;
  for (double& mean : options.mean) mean *= most;
  for (double& deviation : options.deviation) deviation = 1 / (most * deviation);
  Shape shape = {sample[0]};
  for (int i = 1; i < sample.rank(); ++i) shape.append(1);
  return (cast(x, DType::f32, {}) - constant(options.mean, shape, where)) * constant(options.deviation, shape, where);
}

}  // namespace brisk
