// Matrix products, and sums per channel.
#include "backend/cuda/lower/lower.h"
#include "brisk/kernels/gemm.h"
#include "brisk/kernels/reduce.h"
#include "core/text.h"

namespace brisk::backend::cuda {
namespace {

/// A product of the first two inputs, a and b by their indices, to output 0.
void lower_product(const Call& call, kernels::GemmOptions options, int a, int b, Lowering& lowering) {
  options.dtype = call.input(a).dtype;
  options.d_dtype = call.output(0).dtype;
  options.processors = call.profile.processors;
  options.workspace_bytes = kernels::gemm_workspace_bytes(options);
  const Location workspace = in_workspace(lowering, options.workspace_bytes);
  const Location bias = input_if(call, 2);
  const bool adds = is_gradient(call, 0);
  launch(call, lowering, "gemm", [=](const Operands& o, CudaStream stream) {
    kernels::GemmOptions run = options;
    run.a = o.in[a];
    run.accumulate = adds && o.accumulate;
    run.b = o.in[b];
    run.bias = bias.as<const float>(o);
    run.counters = o.counters;
    run.d = o.out[0];
    run.workspace = run.workspace_bytes > 0 ? workspace.at(o) : nullptr;
    kernels::gemm(run, stream);
  });
}

}  // namespace

void lower_linear(const Call& call, Lowering& lowering) {
  const Shape& weight = call.input(1).shape;
  lower_product(call,
                {.activation = activation_of(call),
                 .b_transposed = true,
                 .k = weight[1],
                 .m = call.input(0).rows * call.samples,
                 .n = weight[0]},
                0, 1, lowering);
}

void lower_linear_input_gradient(const Call& call, Lowering& lowering) {
  const Shape& weight = call.input(1).shape;
  lower_product(call, {.k = weight[0], .m = call.input(0).rows * call.samples, .n = weight[1]}, 0, 1, lowering);
}

void lower_linear_weight_gradient(const Call& call, Lowering& lowering) {
  const Shape& weight = call.output(0).shape;
  lower_product(call, {.a_transposed = true, .k = call.input(0).rows * call.samples, .m = weight[0], .n = weight[1]}, 1,
                0, lowering);
}

std::string matmul_declines(const Call& call) {
  const graph::ValueType &a = call.input(0), &b = call.input(1);
  if (a.dtype != b.dtype)
    return cat("its kernels take both matrices of one type, not ", name(a.dtype), " and ", name(b.dtype));
  if (b.batched() || (a.batched() && call.node.attributes.flag("transpose_a")))
    return "its kernels have no batch of matrices but [N, M, K] times one [K, N]";
  return "";
}

void lower_matmul(const Call& call, Lowering& lowering) {
  const bool transposed = call.node.attributes.flag("transpose_a");
  const graph::ValueType &a = call.input(0), &d = call.output(0);
  lower_product(call,
                {.a_transposed = transposed,
                 .b_transposed = call.node.attributes.flag("transpose_b"),
                 .k = a.shape[transposed ? 0 : 1],
                 .m = d.shape[0] * (d.batched() ? d.rows * call.samples : 1),
                 .n = d.shape[1]},
                0, 1, lowering);
}

void lower_channel_sum(const Call& call, Lowering& lowering) {
  Relaid laid(call, lowering, call.graph.value(call.in[0]), graph::Layout::channels_last);
  const Location x = laid.read(input(0));
  kernels::ChannelSumOptions options{.channels = laid.channels(), .dtype = call.input(0).dtype, .rows = laid.rows()};
  options.workspace_bytes = kernels::channel_sum_workspace_bytes(options);
  const Location workspace = in_workspace(lowering, options.workspace_bytes);
  const bool adds = is_gradient(call, 0);
  launch(call, lowering, "channel_sum", [=](const Operands& o, CudaStream stream) {
    kernels::ChannelSumOptions run = options;
    run.accumulate = adds && o.accumulate;
    run.counters = o.counters;
    run.workspace = workspace.at(o);
    run.x = x.at(o);
    run.y = o.output<float>(0);
    kernels::channel_sum(run, stream);
  });
}

}  // namespace brisk::backend::cuda
