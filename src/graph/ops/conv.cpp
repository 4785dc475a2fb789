// Convolution over [N, channels, height, width]; weights are [out channels, kh, kw, in channels / groups].
#include "brisk/ops/conv.h"

#include <cmath>

#include "graph/ops/front.h"

namespace brisk::graph {
namespace {

constexpr const char* kImage = "[N, channels, height, width]";
constexpr int64_t kManyGroups = INT32_MAX;

void check_image(const InferContext& c) { want_batched(c, 0, "input", kImage, 3); }

Window window_of(const InferContext& c, Pair kernel) {
  return {kernel, pair_of(c, "stride", 1), pair_of(c, "padding", 0), pair_of(c, "dilation", 1)};
}

void check_groups(const InferContext& c, int64_t in, int64_t out) {
  const int64_t groups = integer_in(c, "groups", 1, kManyGroups);
  if (in % groups != 0 || out % groups != 0) {
    c.fail(cat("groups = ", groups, ": must divide the channels of input (", in, ") and output (", out, ")"));
  }
}

// The weight's kernel; fails when it is not made for `in` channels.
Pair check_weight(const InferContext& c, int i, int64_t in) {
  const ValueType& weight = want_plain(c, i, "weight", "[channels, kh, kw, input channels / groups]", 4);
  check_groups(c, in, weight.shape[0]);
  const int64_t per_group = in / c.attributes().integer("groups");
  if (weight.shape[3] != per_group) {
    c.fail(cat("weight must have ", per_group, " input channels per group, got ", c.describe(i), " for ", in,
               " channels"));
  }
  return {weight.shape[1], weight.shape[2]};
}

Types infer_conv2d(const InferContext& c) {
  const ValueType& x = want_batched(c, 0, "input", kImage, 3);
  const Pair kernel = check_weight(c, 1, x.shape[0]);
  const int64_t channels = c.input(1).shape[0];
  if (c.count() == 3) want_type(c, 2, "bias", plain({channels}));
  check_activation(c);
  return {batched(x.rows, window_output(c, window_of(c, kernel), x.shape, channels))};
}

Types infer_input_gradient(const InferContext& c) {
  const Shape input = sizes_of(c, "input", 3);
  const ValueType& dy = want_batched(c, 0, "gradient", kImage, 3);
  const Pair kernel = check_weight(c, 1, input[0]);
  const Shape forward = window_output(c, window_of(c, kernel), input, c.input(1).shape[0]);
  want_type(c, 0, "gradient", batched(dy.rows, forward));
  return {batched(dy.rows, input)};
}

Types infer_weight_gradient(const InferContext& c) {
  const ValueType& x = want_batched(c, 0, "input", kImage, 3);
  const ValueType& dy = want_batched(c, 1, "gradient", kImage, 3);
  const int64_t channels = dy.shape[0];
  check_groups(c, x.shape[0], channels);
  const Pair kernel = pair_of(c, "kernel", 1);
  want_type(c, 1, "gradient", batched(x.rows, window_output(c, window_of(c, kernel), x.shape, channels)));
  return {plain({channels, kernel[0], kernel[1], x.shape[0] / c.attributes().integer("groups")})};
}

void derive_conv2d(Derivation& d) {
  const ValueId x = d.input(0), weight = d.input(1);
  const Shape input = d.type(x).shape, kernel = d.type(weight).shape;
  Attributes geometry;
  for (const char* name : {"stride", "padding", "dilation", "groups"}) geometry.set(name, *d.attributes().find(name));
  const ValueId dz = through_activation(d);
  if (d.wants(0)) {
    Attributes attributes = geometry;
    attributes.set("input", std::vector<int64_t>(input.begin(), input.end()));
    d.set(0, d.emit("conv2d_input_gradient", {dz, weight}, std::move(attributes)));
  }
  if (d.wants(1)) {
    Attributes attributes = geometry;
    attributes.set("kernel", std::vector<int64_t>{kernel[1], kernel[2]});
    d.set(1, d.emit("conv2d_weight_gradient", {x, dz}, std::move(attributes)));
  }
  if (d.count() == 3 && d.wants(2)) d.set(2, d.emit("channel_sum", {dz}));
}

// All taps count, also those on padding: elements of the output side x taps of one of its elements.
double conv_flops(const Graph& graph, ValueId output_side, const Shape& weight) {
  return 2.0 * static_cast<double>(graph.type(output_side).elements()) *
         static_cast<double>(weight[1] * weight[2] * weight[3]);
}

}  // namespace

std::span<const OpInfo> conv_ops() {
  static const std::vector<OpInfo> ops = {
      {.name = "conv2d",
       .minimum_inputs = 2,
       .maximum_inputs = 3,
       .attributes = {{"activation", Kind::text},
                      {"dilation", Kind::integers},
                      {"groups", Kind::integer},
                      {"padding", Kind::integers},
                      {"stride", Kind::integers}},
       .infer = infer_conv2d,
       .derive = derive_conv2d,
       .backward_reads = Reads::both,
       .flops = [](const Graph& g, const Node& n) { return conv_flops(g, n.outputs[0], g.type(n.inputs[1]).shape); }},
      {.name = "conv2d_input_gradient",
       .minimum_inputs = 2,
       .maximum_inputs = 2,
       .attributes = {{"dilation", Kind::integers},
                      {"groups", Kind::integer},
                      {"input", Kind::integers},
                      {"padding", Kind::integers},
                      {"stride", Kind::integers}},
       .infer = infer_input_gradient,
       .flops = [](const Graph& g, const Node& n) { return conv_flops(g, n.inputs[0], g.type(n.inputs[1]).shape); }},
      {.name = "conv2d_weight_gradient",
       .minimum_inputs = 2,
       .maximum_inputs = 2,
       .attributes = {{"dilation", Kind::integers},
                      {"groups", Kind::integer},
                      {"kernel", Kind::integers},
                      {"padding", Kind::integers},
                      {"stride", Kind::integers}},
       .infer = infer_weight_gradient,
       .flops = [](const Graph& g, const Node& n) { return conv_flops(g, n.inputs[1], g.type(n.outputs[0]).shape); }},
  };
  return ops;
}

}  // namespace brisk::graph

namespace brisk {

Var conv2d(Var x, Conv2dOptions options, Where where) {
  using namespace graph;
  check_integer("conv2d.channels", options.channels, 1, "it counts output channels, for example .channels = 64", where);
  check_size("conv2d.kernel", options.kernel, 1, "height and width of the window, for example .kernel = 3", where);
  check_size("conv2d.dilation", options.dilation, 1, "", where);
  check_size("conv2d.padding", options.padding, 0, "", where);
  check_size("conv2d.stride", options.stride, 1, "", where);
  check_integer("conv2d.groups", options.groups, 1, "", where);
  Layer layer(x, "conv", options.name, where);
  check_input(x, "conv2d", layer.name(), where, check_image);
  const int64_t in = Access::type(x).shape[0], per_group = in / options.groups;
  if (in % options.groups != 0 || options.channels % options.groups != 0) {
    check_option(false, "conv2d.groups", options.groups,
                 cat("must divide the ", in, " input channels and the ", options.channels, " output channels"), where);
  }
  const Shape shape = {options.channels, options.kernel.height, options.kernel.width, per_group};
  const double fan_in = static_cast<double>(shape.count() / options.channels);
  const Init uniform = init::uniform(1 / std::sqrt(fan_in));
  std::vector<Var> inputs = {x, layer.parameter("weight", shape, uniform, TorchLayout::convolution)};
  if (options.bias) inputs.push_back(layer.parameter("bias", {options.channels}, uniform, TorchLayout::same));
  return layer.apply("conv2d", inputs,
                     {{"activation", std::string("none")},
                      {"dilation", both(options.dilation)},
                      {"groups", options.groups},
                      {"padding", both(options.padding)},
                      {"stride", both(options.stride)}});
}

}  // namespace brisk
