// The ordered list of candidates: for each op, the first that does not decline is taken.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "backend/cpu/lower/lower.h"
#include "backend/cpu/lowering.h"
#include "backend/cpu/onednn.h"
#include "core/text.h"
#include "graph/op_table.h"

namespace brisk::backend::cpu {
namespace {

Implementation native(std::string_view op, void (*lower)(const Call&, Lowering&)) {
  return {op, "native", nullptr, lower};
}

/// For plans of a few samples, whose activations lie row-major: all of a plan's nodes, or none.
std::vector<Implementation> sample_by_sample() {
  std::vector<Implementation> list;
  const auto add = [&](std::string_view op, void (*lower)(const Call&, Lowering&)) {
    list.push_back({op, kSingle, not_single, lower});
  };
  add("conv2d", lower_each_sample<lower_single_conv2d>);
  add("custom_op", lower_custom_op);   // sees all samples at once, row-major as they lie
  add("linear", lower_single_linear);  // weights are read once for all samples
  add("bias_add", lower_each_sample<lower_single_bias_add>);
  add("batch_norm_inference", lower_each_sample<lower_single_batch_norm_inference>);
  add("max_pool2d", lower_each_sample<lower_single_max_pool2d>);
  add("avg_pool2d", lower_each_sample<lower_single_avg_pool2d>);
  add("load", lower_each_sample<lower_single_load>);
  add("store", lower_each_sample<lower_single_store>);
  add("reduce_sum", lower_each_sample<lower_single_reduce>);
  add("reduce_mean", lower_each_sample<lower_single_reduce>);
  add("expand", lower_each_sample<lower_single_expand>);
  add("reshape", lower_each_sample<lower_single_reshape>);
  add("concat", lower_each_sample<lower_single_concat>);
  add("slice", lower_each_sample<lower_single_slice>);
  add("softmax", lower_each_sample<lower_single_softmax>);
  add("log_softmax", lower_each_sample<lower_single_softmax>);
  add("stop_gradient", lower_each_sample<lower_single_reshape>);
  add("cast", lower_each_sample<lower_single_cast>);
  for (const std::string_view op : tile_operations()) {
    if (!graph::op(op).random)
      add(op, lower_each_sample<lower_single_elementwise>);  // random numbers are drawn by sample
  }
  return list;
}

std::vector<Implementation> all() {
  std::vector<Implementation> list = {
      native("conv2d", lower_conv2d),
      native("conv2d_input_gradient", lower_conv2d_input_gradient),
      native("conv2d_weight_gradient", lower_conv2d_weight_gradient),
      native("custom_op", lower_custom_op),
      native("custom_op_gradient", lower_custom_op_gradient),
      native("linear", lower_linear),
      native("linear_input_gradient", lower_linear_input_gradient),
      native("linear_weight_gradient", lower_linear_weight_gradient),
      native("matmul", lower_matmul),
      native("bias_add", lower_bias_add),
      native("channel_sum", lower_channel_sum),
      native("max_pool2d", lower_max_pool2d),
      native("max_pool2d_gradient", lower_max_pool2d_gradient),
      native("avg_pool2d", lower_avg_pool2d),
      native("avg_pool2d_gradient", lower_avg_pool2d_gradient),
      native("resize2d", lower_resize2d),
      native("resize2d_gradient", lower_resize2d_gradient),
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
      native("reduce_max", lower_reduce_max),
      native("reduce_max_gradient", lower_reduce_max_gradient),
      native("constant", lower_constant),
      native("reshape", lower_reshape),
      native("stop_gradient", lower_reshape),
      native("cast", lower_cast),
      native("concat", lower_concat),
      native("slice", lower_slice),
      native("pad_slice", lower_pad_slice),
      native("permute", lower_permute),
      native("pad", lower_pad),
      native("gather", lower_gather),
      native("gather_gradient", lower_gather_gradient),
      native("argmax", lower_argmax),
      native("one_hot", lower_one_hot),
      native("embedding", lower_embedding),
      native("embedding_gradient", lower_embedding_gradient),
      native("random_normal", lower_random_normal),
      native("random_uniform", lower_random_uniform),
      native("stochastic_depth", lower_stochastic_depth),
      native("layer_norm", lower_line_norm),
      native("layer_norm_gradient", lower_line_norm_gradient),
      native("group_norm", lower_line_norm),
      native("group_norm_gradient", lower_line_norm_gradient),
      native("softmax", lower_softmax),
      native("log_softmax", lower_softmax),
      native("softmax_gradient", lower_softmax_gradient),
      native("log_softmax_gradient", lower_softmax_gradient),
      native("negative_log_likelihood", lower_nll),
      native("negative_log_likelihood_gradient", lower_nll_gradient),
      native("softmax_cross_entropy", lower_softmax_cross_entropy),
      native("softmax_cross_entropy_gradient", lower_softmax_cross_entropy_gradient),
      native("accuracy", lower_accuracy),
      native("batch_norm", lower_batch_norm),
      native("batch_norm_inference", lower_batch_norm_inference),
      native("batch_norm_gradient", lower_batch_norm_gradient),
      native("batch_norm_commit", lower_batch_norm_commit),
      native("gradient_stats", lower_gradient_stats),
      native("commit_staged", lower_commit_staged),
      native("scale_update", lower_scale_update),
      native("sgd_walk", lower_sgd_walk),
      native("adam_walk", lower_adam_walk),
  };
  for (const std::string_view op : tile_operations()) list.push_back(native(op, lower_elementwise));
  const std::vector<Implementation> single = sample_by_sample();
  list.insert(list.end(), single.begin(), single.end());
  const std::span<const Implementation> library = onednn_implementations();
  list.insert(onednn_comes_first() ? list.begin() : list.end(), library.begin(), library.end());
  return list;
}

}  // namespace

bool onednn_comes_first() {
  const char* given = std::getenv("BRISK_CPU_ENGINE");
  const std::string_view engine = given == nullptr ? "" : given;
  if (engine == "onednn") return true;
  if (engine.empty() || engine == "native") return false;
  throw Error(ErrorCode::backend, "BRISK_CPU_ENGINE", cat('"', engine, "\"; allowed are native and onednn"));
}

std::span<const Implementation> implementations() {
  static const std::vector<Implementation> list = all();
  return list;
}

bool may_run_in_place(const Call& call, int input) {
  if (!(call.input(input) == call.output(0))) return false;
  const auto list = implementations();
  const auto found = std::find_if(list.begin(), list.end(), [&](const Implementation& candidate) {
    return candidate.op == call.node.op->name && candidate.lower == lower_elementwise;
  });
  const std::string_view op = call.node.op->name;
  const bool reads_first = op == "bias_add" || op == "batch_norm_inference" || op == "batch_norm_gradient";
  return found != list.end() || (reads_first && input == 0);
}

}  // namespace brisk::backend::cpu
