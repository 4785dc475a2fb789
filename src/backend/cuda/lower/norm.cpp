// Normalisation over the batch and over the last dimensions of a sample.
#include "backend/cuda/lower/lower.h"
#include "brisk/kernels/batch_norm.h"
#include "brisk/kernels/layer_norm.h"

namespace brisk::backend::cuda {

using graph::Layout;

void lower_batch_norm(const Call& call, Lowering& lowering) {
  Relaid laid(call, lowering, call.graph.value(call.in[0]), Layout::channels_last);
  kernels::BatchNormOptions options{.activation = activation_of(call),
                                    .channels = laid.channels(),
                                    .dtype = call.input(0).dtype,
                                    .epsilon = call.node.attributes.real("epsilon"),
                                    .rows = laid.rows()};
  options.workspace_bytes = kernels::batch_norm_workspace_bytes(options);
  const Location x = laid.read(input(0)), residual = laid.read(input_if(call, 5)), y = laid.write(output(0)),
                 workspace = in_workspace(lowering, options.workspace_bytes);
  launch(
      call, lowering, "batch_norm",
      [=](const Operands& o, CudaStream stream) {
        kernels::BatchNormOptions run = options;
        run.bias = o.input<float>(2);
        run.counters = o.counters;
        run.inverse_deviation = o.output<float>(2);
        run.mean = o.output<float>(1);
        run.residual = residual.at(o);
        run.unbiased_variance = o.output<float>(3);
        run.weight = o.input<float>(1);
        run.workspace = workspace.at(o);
        run.x = x.at(o);
        run.y = y.at(o);
        kernels::batch_norm(run, stream);
      },
      2);
  laid.give_back();
}

void lower_batch_norm_inference(const Call& call, Lowering& lowering) {
  Relaid laid(call, lowering, call.graph.value(call.in[0]), Layout::channels_last);
  const kernels::BatchNormInferenceOptions options{.activation = activation_of(call),
                                                   .channels = laid.channels(),
                                                   .dtype = call.input(0).dtype,
                                                   .epsilon = call.node.attributes.real("epsilon"),
                                                   .rows = laid.rows()};
  const Location x = laid.read(input(0)), residual = laid.read(input_if(call, 5)), y = laid.write(output(0));
  launch(call, lowering, "batch_norm_inference", [=](const Operands& o, CudaStream stream) {
    kernels::BatchNormInferenceOptions run = options;
    run.bias = o.input<float>(2);
    run.mean = o.input<float>(3);
    run.residual = residual.at(o);
    run.variance = o.input<float>(4);
    run.weight = o.input<float>(1);
    run.x = x.at(o);
    run.y = y.at(o);
    kernels::batch_norm_inference(run, stream);
  });
  laid.give_back();
}

void lower_batch_norm_gradient(const Call& call, Lowering& lowering) {
  Relaid laid(call, lowering, call.graph.value(call.in[0]), Layout::channels_last);
  SummedOutputs sums(call, lowering, {1, 2});
  kernels::BatchNormGradientOptions options{.activation = activation_of(call),
                                            .channels = laid.channels(),
                                            .dtype = call.input(0).dtype,
                                            .rows = laid.rows()};
  options.workspace_bytes = kernels::batch_norm_gradient_workspace_bytes(options);
  const Location dy = laid.read(input(0)), x = laid.read(input(1)), dx = laid.write(output(0)),
                 dweight = sums.location(1), dbias = sums.location(2), bias = input_if(call, 5),
                 workspace = in_workspace(lowering, options.workspace_bytes);
  const bool adds = sums.accumulates();
  launch(
      call, lowering, "batch_norm_gradient",
      [=](const Operands& o, CudaStream stream) {
        kernels::BatchNormGradientOptions run = options;
        run.accumulate = adds && o.accumulate;
        run.bias = bias.as<const float>(o);
        run.counters = o.counters;
        run.dbias = dbias.as<float>(o);
        run.dweight = dweight.as<float>(o);
        run.dx = dx.at(o);
        run.dy = dy.at(o);
        run.inverse_deviation = o.input<float>(4);
        run.mean = o.input<float>(3);
        run.weight = o.input<float>(2);
        run.workspace = workspace.at(o);
        run.x = x.at(o);
        kernels::batch_norm_gradient(run, stream);
      },
      2);
  laid.give_back();
  sums.give_back();
}

void lower_batch_norm_commit(const Call& call, Lowering& lowering) {
  const bool stages = call.inputs() == 6;
  const bool chained = call.node.attributes.flag("chained");
  const kernels::BatchNormCommitOptions options{.channels = call.output(0).elements(),
                                                .momentum = call.node.attributes.real("momentum")};
  launch(call, lowering, "batch_norm_commit", [=](const Operands& o, CudaStream stream) {
    const int running = stages && (chained || o.accumulate) ? 4 : 2;  // a window begins with the buffers themselves
    kernels::BatchNormCommitOptions run = options;
    run.batch_mean = o.input<float>(0);
    run.batch_variance = o.input<float>(1);
    run.new_running_mean = o.output<float>(0);
    run.new_running_variance = o.output<float>(1);
    run.running_mean = o.input<float>(running);
    run.running_variance = o.input<float>(running + 1);
    run.status = o.status;
    kernels::batch_norm_commit(run, stream);
  });
}

namespace {

/// Elements that a row of layer_norm has.
int64_t row_size(const Call& call, const graph::ValueType& type) {
  int64_t size = 1;
  for (auto i = static_cast<int>(type.shape.rank() - call.node.attributes.integer("dims")); i < type.shape.rank(); ++i)
    size *= type.shape[i];
  return size;
}

}  // namespace

void lower_layer_norm(const Call& call, Lowering& lowering) {
  const graph::ValueType& type = call.input(0);
  Relaid laid(call, lowering, call.graph.value(call.in[0]), Layout::plain);
  kernels::LayerNormOptions options{
      .dtype = type.dtype, .epsilon = call.node.attributes.real("epsilon"), .size = row_size(call, type)};
  options.rows = call.elements(type) / options.size;
  const Location x = laid.read(input(0)), y = laid.write(output(0)), weight = input_if(call, 1),
                 bias = input_if(call, 2);
  launch(call, lowering, "layer_norm", [=](const Operands& o, CudaStream stream) {
    kernels::LayerNormOptions run = options;
    run.bias = bias.as<const float>(o);
    run.inverse_deviation = o.output<float>(2);
    run.mean = o.output<float>(1);
    run.weight = weight.as<const float>(o);
    run.x = x.at(o);
    run.y = y.at(o);
    kernels::layer_norm(run, stream);
  });
  laid.give_back();
}

void lower_layer_norm_gradient(const Call& call, Lowering& lowering) {
  const graph::ValueType& type = call.input(1);
  const bool affine = call.inputs() > 4;
  Relaid laid(call, lowering, call.graph.value(call.in[1]), Layout::plain);
  SummedOutputs sums(call, lowering, affine ? std::vector<int>{1, 2} : std::vector<int>{});
  kernels::LayerNormGradientOptions options{.dtype = type.dtype, .size = row_size(call, type)};
  options.rows = call.elements(type) / options.size;
  options.workspace_bytes = affine ? kernels::layer_norm_gradient_workspace_bytes(options) : 0;
  const Location dy = laid.read(input(0)), x = laid.read(input(1)), dx = laid.write(output(0)),
                 dweight = affine ? sums.location(1) : Location(), dbias = affine ? sums.location(2) : Location(),
                 weight = input_if(call, 4), workspace = in_workspace(lowering, options.workspace_bytes);
  const bool adds = sums.accumulates();
  launch(
      call, lowering, "layer_norm_gradient",
      [=](const Operands& o, CudaStream stream) {
        kernels::LayerNormGradientOptions run = options;
        run.accumulate = adds && o.accumulate;
        run.counters = o.counters;
        run.dbias = dbias.as<float>(o);
        run.dweight = dweight.as<float>(o);
        run.dx = dx.at(o);
        run.dy = dy.at(o);
        run.inverse_deviation = o.input<float>(3);
        run.mean = o.input<float>(2);
        run.weight = weight.as<const float>(o);
        run.workspace = run.workspace_bytes > 0 ? workspace.at(o) : nullptr;
        run.x = x.at(o);
        kernels::layer_norm_gradient(run, stream);
      },
      affine ? 2 : 1);
  laid.give_back();
  sums.give_back();
}

}  // namespace brisk::backend::cuda
