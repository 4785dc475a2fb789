// The ordered list of candidates: for each op, the first that does not decline is taken.
#include <algorithm>
#include <array>
#include <cstdlib>

#include "backend/cuda/cublaslt.h"
#include "backend/cuda/cuda_target.h"
#include "backend/cuda/lower/lower.h"
#include "brisk/error.h"
#include "core/text.h"
#include "graph/op_table.h"

namespace brisk::backend::cuda {
namespace {

Implementation native(std::string_view op, void (*lower)(const Call&, Lowering&),
                      std::string (*declines)(const Call&) = nullptr) {
  return {op, "native", declines, lower};
}

Implementation cudnn(std::string_view op) {
  const auto declines = [](const Call&) -> std::string {
    return "not used in this release; native convolutions run everything";
  };
  return {op, "cudnn", declines, nullptr};
}

std::vector<Implementation> all() {
  std::vector<Implementation> list = {
      // First, for it declines unless it is asked for.
      {"linear", "cublaslt", cublaslt_declines, lower_cublaslt_linear},
      {"linear_input_gradient", "cublaslt", cublaslt_declines, lower_cublaslt_linear_input_gradient},
      {"linear_weight_gradient", "cublaslt", cublaslt_declines, lower_cublaslt_linear_weight_gradient},
      native("conv2d", lower_conv2d, conv_declines),
      native("conv2d_input_gradient", lower_conv2d_input_gradient, conv_declines),
      native("conv2d_weight_gradient", lower_conv2d_weight_gradient, conv_declines),
      native("linear", lower_linear),
      native("linear_input_gradient", lower_linear_input_gradient),
      native("linear_weight_gradient", lower_linear_weight_gradient),
      native("matmul", lower_matmul, matmul_declines),
      native("bias_add", lower_bias_add),
      native("channel_sum", lower_channel_sum),
      native("max_pool2d", lower_max_pool2d),
      native("max_pool2d_gradient", lower_max_pool2d_gradient),
      native("avg_pool2d", lower_avg_pool2d),
      native("avg_pool2d_gradient", lower_avg_pool2d_gradient),
      native("load", lower_load),
      native("store", lower_store),
      native("total", lower_total),
      native("seed_rows", lower_seed_rows),
      native("seed_count", lower_seed_count),
      native("store_gradient", lower_store_gradient),
      native("reduce_sum", lower_reduce),
      native("reduce_mean", lower_reduce),
      native("expand", lower_expand),
      native("batch_sum", lower_batch_sum),
      native("reduce_max", lower_reduce_max, maximum_declines),
      native("reduce_max_gradient", lower_reduce_max_gradient, maximum_declines),
      native("constant", lower_constant),
      native("reshape", lower_reshape),
      native("stop_gradient", lower_reshape),
      native("cast", lower_cast),
      native("concat", lower_concat),
      native("slice", lower_slice),
      native("pad_slice", lower_pad_slice, padding_declines),
      native("permute", lower_permute),
      native("pad", lower_pad, padding_declines),
      native("random_normal", lower_random_normal),
      native("random_uniform", lower_random_uniform),
      native("stochastic_depth", lower_stochastic_depth),
      native("layer_norm", lower_layer_norm),
      native("layer_norm_gradient", lower_layer_norm_gradient),
      native("softmax", lower_softmax),
      native("log_softmax", lower_softmax),
      native("softmax_gradient", lower_softmax_gradient),
      native("log_softmax_gradient", lower_softmax_gradient),
      native("negative_log_likelihood", lower_negative_log_likelihood),
      native("negative_log_likelihood_gradient", lower_negative_log_likelihood_gradient),
      native("softmax_cross_entropy", lower_softmax_cross_entropy),
      native("softmax_cross_entropy_gradient", lower_softmax_cross_entropy_gradient),
      native("accuracy", lower_accuracy),
      native("batch_norm", lower_batch_norm),
      native("batch_norm_inference", lower_batch_norm_inference),
      native("batch_norm_gradient", lower_batch_norm_gradient),
      native("batch_norm_commit", lower_batch_norm_commit),
      native("gradient_stats", lower_gradient_stats),
      native("sgd_walk", lower_sgd_walk),
      native("adam_walk", lower_adam_walk),
      native("scale_update", lower_scale_update),
      native("select_scalars", lower_select_scalars),
      native("commit_staged", lower_commit_staged),
      cudnn("conv2d"),
      cudnn("conv2d_input_gradient"),
      cudnn("conv2d_weight_gradient"),
  };
  for (const std::string_view op : elementwise_operations()) list.push_back(native(op, lower_elementwise));
  return list;
}

bool is_one_of(std::string_view op, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), op) != names.end();
}

}  // namespace

bool cublaslt_comes_first() {
  const char* given = std::getenv("BRISK_CUDA_ENGINE");
  const std::string_view engine = given ? given : "";
  if (engine == "cublaslt") return true;
  if (engine.empty() || engine == "native") return false;
  throw Error(ErrorCode::backend, "BRISK_CUDA_ENGINE", cat('"', engine, "\"; allowed are native and cublaslt"));
}

std::span<const Implementation> implementations() {
  static const std::vector<Implementation> list = all();
  return list;
}

bool takes_low(std::string_view op) {
  return std::any_of(implementations().begin(), implementations().end(),
                     [&](const Implementation& candidate) { return candidate.op == op; });
}

bool is_matrix_operation(std::string_view op) {
  return is_one_of(op, {"conv2d", "conv2d_input_gradient", "conv2d_weight_gradient", "linear", "linear_input_gradient",
                        "linear_weight_gradient", "matmul"});
}

bool may_run_in_place(const Call& call, int input) {
  const std::string_view op = call.node.op->name;
  if (op == "cast") return size_of(call.input(0).dtype) == size_of(call.output(0).dtype);
  if (!(call.input(input) == call.output(0))) return false;
  if (call.node.op->elementwise) return true;
  // Kernels that read an element before they write it. What is turned in the workspace is read before anything.
  if (is_one_of(op, {"bias_add", "layer_norm", "log_softmax", "softmax", "stochastic_depth"})) return input == 0;
  if (is_one_of(op, {"batch_norm", "batch_norm_inference"})) return input == 0 || input == 5;
  if (is_one_of(op, {"softmax_gradient", "log_softmax_gradient"})) return true;
  if (op == "softmax_cross_entropy_gradient") return input == 2;
  return op == "batch_norm_gradient" && input == 0;
}

}  // namespace brisk::backend::cuda
