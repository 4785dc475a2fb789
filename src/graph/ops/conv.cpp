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

// The attributes that a convolution and its gradients share, and one of its own.
Attributes geometry(const Derivation& d, const char* name, Attribute value) {
  Attributes attributes;
  for (const char* shared : {"stride", "padding", "dilation", "groups"}) {
    attributes.set(shared, *d.attributes().find(shared));
  }
  attributes.set(name, std::move(value));
  return attributes;
}

// x: the larger side, dy: the side that a convolution makes of it.
ValueId weight_gradient(Derivation& d, ValueId x, ValueId dy) {
  const Shape weight = d.type(d.input(1)).shape;
  return d.emit("conv2d_weight_gradient", {x, dy}, geometry(d, "kernel", std::vector<int64_t>{weight[1], weight[2]}));
}

void derive_conv2d(Derivation& d) {
  const ValueId x = d.input(0), weight = d.input(1), dz = through_activation(d);
  if (d.wants(0)) {
    d.set(0, d.emit("conv2d_input_gradient", {dz, weight}, geometry(d, "input", list(d.type(x).shape))));
  }
  if (d.wants(1)) d.set(1, weight_gradient(d, x, dz));
  if (d.count() == 3 && d.wants(2)) d.set(2, d.emit("channel_sum", {dz}));
}

// The node is a transposed convolution's forward pass: its gradient is a convolution.
void derive_input_gradient(Derivation& d) {
  const ValueId dy = d.output_gradient();
  if (d.wants(0)) {
    d.set(0, d.emit("conv2d", {dy, d.input(1)}, geometry(d, "activation", std::string("none"))));
  }
  if (d.wants(1)) d.set(1, weight_gradient(d, dy, d.input(0)));
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
       .derive = derive_input_gradient,
       .backward_reads = Reads::inputs,
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
namespace {

using namespace graph;

template <class Options>
void check_options(const std::string& op, const Options& options, Where where) {
  check_integer(op + ".channels", options.channels, 1, "it counts output channels, for example .channels = 64", where);
  check_size(op + ".kernel", options.kernel, 1, "height and width of the window, for example .kernel = 3", where);
  check_size(op + ".dilation", options.dilation, 1, "", where);
  check_size(op + ".padding", options.padding, 0, "", where);
  check_size(op + ".stride", options.stride, 1, "", where);
  check_integer(op + ".groups", options.groups, 1, "", where);
}

template <class Options>
void check_groups_option(const std::string& op, int64_t in, const Options& options, Where where) {
  check_option(in % options.groups == 0 && options.channels % options.groups == 0, op + ".groups", options.groups,
               cat("must divide the ", in, " input channels and the ", options.channels, " output channels"), where);
}

template <class Options>
Attributes attributes_of(const Options& options) {
  return {{"dilation", both(options.dilation)},
          {"groups", options.groups},
          {"padding", both(options.padding)},
          {"stride", both(options.stride)}};
}

// PyTorch's rule: uniform, by the weights of one channel of the first dimension.
Init initial(const Shape& weight) {
  return init::uniform(1 / std::sqrt(static_cast<double>(weight.count() / weight[0])));
}

}  // namespace

Var conv2d(Var x, Conv2dOptions options, Where where) {
  check_options("conv2d", options, where);
  Layer layer(x, "conv", options.name, where);
  check_input(x, "conv2d", layer.name(), where, check_image);
  const int64_t in = Access::type(x).shape[0];
  check_groups_option("conv2d", in, options, where);
  const Shape shape = {options.channels, options.kernel.height, options.kernel.width, in / options.groups};
  std::vector<Var> inputs = {x, layer.parameter("weight", shape, initial(shape), TorchLayout::convolution)};
  if (options.bias) {
    inputs.push_back(layer.parameter("bias", {options.channels}, initial(shape), TorchLayout::same));
  }
  Attributes attributes = attributes_of(options);
  attributes.set("activation", std::string("none"));
  return layer.apply("conv2d", inputs, std::move(attributes));
}

Var conv_transpose2d(Var x, ConvTranspose2dOptions options, Where where) {
  const std::string op = "conv_transpose2d";
  check_options(op, options, where);
  check_size(op + ".output_padding", options.output_padding, 0, "", where);
  const Size2 more = options.output_padding;
  check_option(more.height < options.stride.height && more.width < options.stride.width, op + ".output_padding",
               cat("{", more.height, ", ", more.width, "}"), "must be smaller than the stride", where);
  Layer layer(x, "conv_transpose", options.name, where);
  check_input(x, op, layer.name(), where, check_image);
  const Shape in = Access::type(x).shape;
  check_groups_option(op, in[0], options, where);
  const auto size = [](int64_t count, int64_t stride, int64_t padding, int64_t dilation, int64_t kernel, int64_t rest) {
    return (count - 1) * stride - 2 * padding + dilation * (kernel - 1) + rest + 1;
  };
  const Size2 &kernel = options.kernel, &stride = options.stride, &padding = options.padding,
              &dilation = options.dilation;
  const int64_t height = size(in[1], stride.height, padding.height, dilation.height, kernel.height, more.height);
  const int64_t width = size(in[2], stride.width, padding.width, dilation.width, kernel.width, more.width);
  check_option(height >= 1 && width >= 1, op + ".padding", cat("{", padding.height, ", ", padding.width, "}"),
               cat("leaves an image of ", height, " x ", width), where);
  const Shape shape = {in[0], kernel.height, kernel.width, options.channels / options.groups};
  Attributes attributes = attributes_of(options);
  attributes.set("input", std::vector<int64_t>{options.channels, height, width});
  const Var weight = layer.parameter("weight", shape, initial(shape), TorchLayout::convolution);
  const Var y = layer.apply("conv2d_input_gradient", {x, weight}, std::move(attributes));
  if (!options.bias) return y;
  const Var bias = layer.parameter("bias", {options.channels}, initial(shape), TorchLayout::same);
  return layer.apply("bias_add", {y, bias}, {});
}

}  // namespace brisk
