// Convolution and its gradients: sizes, workspaces.
#include "brisk/kernels/conv.h"

#include "backend/cuda/lower/lower.h"
#include "core/text.h"

namespace brisk::backend::cuda {
namespace {

/// x, y: input and output of the forward convolution.
kernels::Conv2dShape shape_of(const Call& call, const graph::ValueType& x, const graph::ValueType& y,
                              int64_t kernel_height, int64_t kernel_width) {
  const graph::Attributes& a = call.node.attributes;
  const auto pair = [&](const char* name) { return std::array<int64_t, 2>{a.integers(name)[0], a.integers(name)[1]}; };
  return {.batch = x.rows * call.samples,
          .channels = x.shape[0],
          .dilation = pair("dilation"),
          .groups = a.integer("groups"),
          .height = x.shape[1],
          .kernel = {kernel_height, kernel_width},
          .out_channels = y.shape[0],
          .padding = pair("padding"),
          .stride = pair("stride"),
          .width = x.shape[2]};
}

/// What conv2d and its input gradient share: the weights are input 1.
kernels::Conv2dShape shape_by_weights(const Call& call, const graph::ValueType& x, const graph::ValueType& y) {
  const Shape& weights = call.input(1).shape;
  return shape_of(call, x, y, weights[1], weights[2]);
}

}  // namespace

std::string conv_declines(const Call& call) {
  const int64_t groups = call.node.attributes.integer("groups");
  if (groups != 1) return cat("its kernels have no groups (groups = ", groups, ")");
  if (call.input(0).dtype != call.input(1).dtype)
    return cat("its kernels take both operands of one type, not ", name(call.input(0).dtype), " and ",
               name(call.input(1).dtype));
  return "";
}

void lower_conv2d(const Call& call, Lowering& lowering) {
  kernels::Conv2dOptions options{.activation = activation_of(call),
                                 .dtype = call.input(0).dtype,
                                 .processors = call.profile.processors,
                                 .shape = shape_by_weights(call, call.input(0), call.output(0))};
  options.workspace_bytes = kernels::conv2d_workspace_bytes(options);
  const Location workspace = in_workspace(lowering, options.workspace_bytes), bias = input_if(call, 2);
  launch(call, lowering, "conv2d", [=](const Operands& o, CudaStream stream) {
    kernels::Conv2dOptions run = options;
    run.bias = bias.as<const float>(o);
    run.counters = o.counters;
    run.input = o.in[0];
    run.output = o.out[0];
    run.weights = o.in[1];
    run.workspace = run.workspace_bytes > 0 ? workspace.at(o) : nullptr;
    kernels::conv2d(run, stream);
  });
}

void lower_conv2d_input_gradient(const Call& call, Lowering& lowering) {
  kernels::Conv2dInputGradientOptions options{.dtype = call.input(0).dtype,
                                              .processors = call.profile.processors,
                                              .shape = shape_by_weights(call, call.output(0), call.input(0))};
  options.workspace_bytes = kernels::conv2d_input_gradient_workspace_bytes(options);
  const Location workspace = in_workspace(lowering, options.workspace_bytes);
  launch(call, lowering, "conv2d_input_gradient", [=](const Operands& o, CudaStream stream) {
    kernels::Conv2dInputGradientOptions run = options;
    run.counters = o.counters;
    run.input_gradient = o.out[0];
    run.output_gradient = o.in[0];
    run.weights = o.in[1];
    run.workspace = run.workspace_bytes > 0 ? workspace.at(o) : nullptr;
    kernels::conv2d_input_gradient(run, stream);
  });
}

void lower_conv2d_weight_gradient(const Call& call, Lowering& lowering) {
  const std::vector<int64_t>& kernel = call.node.attributes.integers("kernel");
  kernels::Conv2dWeightGradientOptions options{
      .dtype = call.input(0).dtype,
      .processors = call.profile.processors,
      .shape = shape_of(call, call.input(0), call.input(1), kernel[0], kernel[1])};
  options.workspace_bytes = kernels::conv2d_weight_gradient_workspace_bytes(options);
  const Location workspace = in_workspace(lowering, options.workspace_bytes);
  const bool adds = is_gradient(call, 0);
  launch(call, lowering, "conv2d_weight_gradient", [=](const Operands& o, CudaStream stream) {
    kernels::Conv2dWeightGradientOptions run = options;
    run.accumulate = adds && o.accumulate;
    run.counters = o.counters;
    run.input = o.in[0];
    run.output_gradient = o.in[1];
    run.weight_gradient = o.output<float>(0);
    run.workspace = run.workspace_bytes > 0 ? workspace.at(o) : nullptr;
    kernels::conv2d_weight_gradient(run, stream);
  });
}

}  // namespace brisk::backend::cuda
