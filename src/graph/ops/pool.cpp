// Pooling and resizing over [N, channels, height, width].
#include "brisk/ops/pool.h"

#include <cmath>

#include "graph/ops/front.h"

namespace brisk::graph {
namespace {

constexpr const char* kImage = "[N, channels, height, width]";

// Padding of more than half a kernel would make windows that see no element at all.
Window window_of(const InferContext& c) {
  const Window window{pair_of(c, "kernel", 1), pair_of(c, "stride", 1), pair_of(c, "padding", 0)};
  for (size_t i = 0; i < 2; ++i) {
    if (window.padding[i] > window.kernel[i] / 2) {
      c.fail(cat("padding = ", window.padding[i], ": must be at most half of the kernel ", window.kernel[i]));
    }
  }
  return window;
}

// Indices of elements are i32.
void check_indices(const InferContext& c, const Shape& input) {
  c.require(input[1] <= INT32_MAX / input[2], cat("an image of ", input[1], " x ", input[2], " is too large"));
}

Types infer_max(const InferContext& c) {
  const ValueType& x = want_batched(c, 0, "input", kImage, 3);
  check_indices(c, x.shape);
  const Shape out = window_output(c, window_of(c), x.shape, x.shape[0]);
  return {batched(x.rows, out), batched(x.rows, out, DType::i32)};
}

Types infer_avg(const InferContext& c) {
  const ValueType& x = want_batched(c, 0, "input", kImage, 3);
  return {batched(x.rows, window_output(c, window_of(c), x.shape, x.shape[0]))};
}

Types infer_avg_gradient(const InferContext& c) {
  const Shape input = sizes_of(c, "input", 3);
  const ValueType& dy = want_batched(c, 0, "gradient", kImage, 3);
  want_type(c, 0, "gradient", batched(dy.rows, window_output(c, window_of(c), input, input[0])));
  return {batched(dy.rows, input)};
}

Types infer_max_gradient(const InferContext& c) {
  const Types types = infer_avg_gradient(c);
  check_indices(c, types[0].shape);
  const ValueType& dy = c.input(0);
  want_type(c, 1, "index", batched(dy.rows, dy.shape, DType::i32));
  return types;
}

Attributes gradient_attributes(const Derivation& d) {
  const Shape& input = d.type(d.input(0)).shape;
  Attributes attributes = d.attributes();
  attributes.set("input", std::vector<int64_t>(input.begin(), input.end()));
  return attributes;
}

void derive_max(Derivation& d) {
  if (!d.wants(0) || d.output_gradient() == kNoValue) return;
  d.set(0, d.emit("max_pool2d_gradient", {d.output_gradient(), d.output(1)}, gradient_attributes(d)));
}

void derive_avg(Derivation& d) {
  if (d.wants(0)) d.set(0, d.emit("avg_pool2d_gradient", {d.output_gradient()}, gradient_attributes(d)));
}

// Attributes of the gradient's node without the input's sizes are those of the node itself.
Shape resized(const InferContext& c, const Shape& input) {
  const std::string& mode = c.attributes().text("mode");
  c.require(mode == "nearest" || mode == "bilinear", cat("mode = ", mode, ": must be nearest or bilinear"));
  const Shape size = sizes_of(c, "size", 2);
  for (const double step : c.attributes().reals("step")) {
    c.require(std::isfinite(step) && step >= 0, cat("step = ", step, ": must be a number of at least 0"));
  }
  c.require(c.attributes().reals("step").size() == 2, "step must be of height and width");
  check_indices(c, input);
  return {input[0], size[0], size[1]};
}

Types infer_resize(const InferContext& c) {
  const ValueType& x = want_batched(c, 0, "input", kImage, 3);
  return {batched(x.rows, resized(c, x.shape))};
}

Types infer_resize_gradient(const InferContext& c) {
  const Shape input = sizes_of(c, "input", 3);
  const ValueType& dy = want_batched(c, 0, "gradient", kImage, 3);
  want_type(c, 0, "gradient", batched(dy.rows, resized(c, input)));
  return {batched(dy.rows, input)};
}

void derive_resize(Derivation& d) {
  if (d.wants(0)) d.set(0, d.emit("resize2d_gradient", {d.output_gradient()}, gradient_attributes(d)));
}

// One operation a tap.
double pool_flops(const Graph& graph, const Node& node) {
  const std::vector<int64_t>& kernel = node.attributes.integers("kernel");
  return static_cast<double>(graph.type(node.outputs[0]).elements()) * static_cast<double>(kernel[0] * kernel[1]);
}

}  // namespace

std::span<const OpInfo> pool_ops() {
  const std::vector<AttributeInfo> forward = {
      {"kernel", Kind::integers}, {"padding", Kind::integers}, {"stride", Kind::integers}};
  const std::vector<AttributeInfo> backward = {
      {"input", Kind::integers}, {"kernel", Kind::integers}, {"padding", Kind::integers}, {"stride", Kind::integers}};
  static const std::vector<OpInfo> ops = {
      {.name = "max_pool2d",
       .outputs = 2,
       .attributes = forward,
       .infer = infer_max,
       .derive = derive_max,
       .backward_reads = Reads::outputs,
       .flops = pool_flops},
      {.name = "max_pool2d_gradient",
       .minimum_inputs = 2,
       .maximum_inputs = 2,
       .attributes = backward,
       .infer = infer_max_gradient,
       .flops = flops_per_input<1>},
      {.name = "avg_pool2d", .attributes = forward, .infer = infer_avg, .derive = derive_avg, .flops = pool_flops},
      {.name = "avg_pool2d_gradient", .attributes = backward, .infer = infer_avg_gradient, .flops = flops_per_input<1>},
      {.name = "resize2d",
       .attributes = {{"aligned", Kind::flag}, {"mode", Kind::text}, {"size", Kind::integers}, {"step", Kind::reals}},
       .infer = infer_resize,
       .derive = derive_resize},
      {.name = "resize2d_gradient",
       .attributes = {{"aligned", Kind::flag},
                      {"input", Kind::integers},
                      {"mode", Kind::text},
                      {"size", Kind::integers},
                      {"step", Kind::reals}},
       .infer = infer_resize_gradient,
       .flops = flops_per_input<1>},
  };
  return ops;
}

}  // namespace brisk::graph

namespace brisk {

namespace {

Var pool(std::string_view op, Var x, const Pool2dOptions& options, Where where) {
  using namespace graph;
  const std::string prefix = std::string(op) + ".";
  check_size(prefix + "kernel", options.kernel, 1, "height and width of the window, for example .kernel = 2", where);
  check_size(prefix + "stride", options.stride, 0, "0 stands for the kernel", where);
  const int64_t most[] = {options.kernel.height / 2, options.kernel.width / 2};
  check_size(prefix + "padding", options.padding, 0, "", where);
  if (options.padding.height > most[0] || options.padding.width > most[1]) {
    const std::string value = cat("{", options.padding.height, ", ", options.padding.width, "}");
    check_option(false, prefix + "padding", value,
                 cat("must be at most half of the kernel: {", most[0], ", ", most[1], "}"), where);
  }
  const Size2 stride = {options.stride.height > 0 ? options.stride.height : options.kernel.height,
                        options.stride.width > 0 ? options.stride.width : options.kernel.width};
  return apply(op, {x},
               {{"kernel", both(options.kernel)}, {"padding", both(options.padding)}, {"stride", both(stride)}}, "pool",
               where);
}

}  // namespace

Var max_pool2d(Var x, Pool2dOptions options, Where where) { return pool("max_pool2d", x, options, where); }
Var avg_pool2d(Var x, Pool2dOptions options, Where where) { return pool("avg_pool2d", x, options, where); }

Var global_avg_pool2d(Var x, Where where) {
  using namespace graph;
  check_input(x, "global_avg_pool2d", "", where, [](const InferContext& c) { want_batched(c, 0, "input", kImage, 3); });
  return apply("reduce_mean", {x}, {{"axes", std::vector<int64_t>{1, 2}}, {"keep", false}}, "pool", where);
}

Var resize2d(Var x, Resize2dOptions options, Where where) {
  using namespace graph;
  check_size("resize2d.size", options.size, 0, "0 stands for the input's size times .scale", where);
  const bool sized = options.size.height > 0 && options.size.width > 0, scaled = options.scale > 0;
  check_option(std::isfinite(options.scale) && options.scale >= 0, "resize2d.scale", options.scale,
               "must be a positive number, or 0: by .size", where);
  check_option(sized != scaled, "resize2d.size", cat("{", options.size.height, ", ", options.size.width, "}"),
               cat("give either .size or .scale (it is ", options.scale, ")"), where);
  const bool bilinear = options.mode == ResizeMode::bilinear;
  check_option(bilinear || !options.align_corners, "resize2d.align_corners", "true",
               "is for ResizeMode::bilinear alone", where);
  check_input(x, "resize2d", "", where, [](const InferContext& c) { want_batched(c, 0, "input", kImage, 3); });
  const Shape in = Access::type(x).shape;
  std::vector<int64_t> size = both(options.size);
  std::vector<double> step;
  for (size_t i = 0; i < 2; ++i) {
    const auto from = static_cast<double>(in[static_cast<int>(i) + 1]);
    const double wanted = scaled ? std::floor(from * options.scale) : static_cast<double>(size[i]);
    check_option(wanted >= 1 && wanted <= INT32_MAX, "resize2d.scale", options.scale,
                 cat("makes ", wanted, " rows or columns of ", from, "; there must be 1 to 2^31 - 1"), where);
    size[i] = static_cast<int64_t>(wanted);
    const auto to = static_cast<double>(size[i]);
    if (options.align_corners) {
      step.push_back(to > 1 ? (from - 1) / (to - 1) : 0);
    } else {
      step.push_back(scaled ? 1 / options.scale : from / to);
    }
  }
  return apply("resize2d", {x},
               {{"aligned", options.align_corners},
                {"mode", std::string(bilinear ? "bilinear" : "nearest")},
                {"size", size},
                {"step", step}},
               "resize", where);
}

}  // namespace brisk
