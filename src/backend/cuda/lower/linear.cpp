// Matrix products, and sums per channel.
#include "backend/cuda/cublaslt.h"
#include "backend/cuda/lower/lower.h"
#include "brisk/kernels/gemm.h"
#include "brisk/kernels/reduce.h"
#include "core/text.h"
#include "graph/op_table.h"

namespace brisk::backend::cuda {
namespace {

/// A product of two inputs to output 0; which two, and how, by sizes and types.
struct Product {
  kernels::GemmOptions options;
  int a = 0, b = 1;  ///< indices of the inputs
};

Product product(const Call& call, kernels::GemmOptions options, int a = 0, int b = 1) {
  options.dtype = call.input(a).dtype;
  options.d_dtype = call.output(0).dtype;
  options.processors = call.profile.processors;
  return {options, a, b};
}

Product linear(const Call& call) {
  const Shape& weight = call.input(1).shape;
  return product(call, {.activation = activation_of(call),
                        .b_transposed = true,
                        .k = weight[1],
                        .m = call.input(0).rows * call.samples,
                        .n = weight[0]});
}

Product linear_input_gradient(const Call& call) {
  const Shape& weight = call.input(1).shape;
  return product(call, {.k = weight[0], .m = call.input(0).rows * call.samples, .n = weight[1]});
}

Product linear_weight_gradient(const Call& call) {
  const Shape& weight = call.output(0).shape;
  return product(call, {.a_transposed = true, .k = call.input(0).rows * call.samples, .m = weight[0], .n = weight[1]},
                 1, 0);
}

void lower_native(const Call& call, const Product& product, Lowering& lowering) {
  kernels::GemmOptions options = product.options;
  const int a = product.a, b = product.b;
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

void lower_library(const Call& call, const Product& product, Lowering& lowering) {
  lower_cublaslt(call, product.options, product.a, product.b, lowering);
}

}  // namespace

void lower_linear(const Call& call, Lowering& lowering) { lower_native(call, linear(call), lowering); }

void lower_linear_input_gradient(const Call& call, Lowering& lowering) {
  lower_native(call, linear_input_gradient(call), lowering);
}

void lower_linear_weight_gradient(const Call& call, Lowering& lowering) {
  lower_native(call, linear_weight_gradient(call), lowering);
}

std::string cublaslt_declines(const Call& call) {
  if (!cublaslt_comes_first()) return "native comes first; BRISK_CUDA_ENGINE=cublaslt turns that round";
  const std::string missing = cublaslt_missing();
  if (!missing.empty()) return missing;
  if (call.input(0).dtype != call.input(1).dtype)
    return cat("both matrices are to be of one type, not ", name(call.input(0).dtype), " and ",
               name(call.input(1).dtype));
  if (call.node.op->name != "linear") return "";
  if (activation_of(call) != kernels::Activation::none)
    return cat("nothing says that its activations keep NaN, as ", call.node.attributes.text("activation"),
               " does here");
  if (call.inputs() > 2 && call.output(0).dtype != DType::f32)
    return cat("beside outputs of ", name(call.output(0).dtype), " it takes no bias of f32");
  return "";
}

void lower_cublaslt_linear(const Call& call, Lowering& lowering) { lower_library(call, linear(call), lowering); }

void lower_cublaslt_linear_input_gradient(const Call& call, Lowering& lowering) {
  lower_library(call, linear_input_gradient(call), lowering);
}

void lower_cublaslt_linear_weight_gradient(const Call& call, Lowering& lowering) {
  lower_library(call, linear_weight_gradient(call), lowering);
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
  lower_native(call,
               product(call, {.a_transposed = transposed,
                              .b_transposed = call.node.attributes.flag("transpose_b"),
                              .k = a.shape[transposed ? 0 : 1],
                              .m = d.shape[0] * (d.batched() ? d.rows * call.samples : 1),
                              .n = d.shape[1]}),
               lowering);
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
