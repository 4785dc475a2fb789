// Native lowerings, one file a family in lower/; implementations.cpp puts them in order.
#pragma once

#include <span>

#include "backend/cpu/lowering.h"

namespace brisk::backend::cpu {

// conv.cpp
void lower_conv2d(const Call& call, Lowering& lowering);
void lower_conv2d_input_gradient(const Call& call, Lowering& lowering);
void lower_conv2d_weight_gradient(const Call& call, Lowering& lowering);

// custom.cpp
void lower_custom_op(const Call& call, Lowering& lowering);
void lower_custom_op_gradient(const Call& call, Lowering& lowering);

// linear.cpp
void lower_linear(const Call& call, Lowering& lowering);
void lower_linear_input_gradient(const Call& call, Lowering& lowering);
void lower_linear_weight_gradient(const Call& call, Lowering& lowering);
void lower_bias_add(const Call& call, Lowering& lowering);
void lower_channel_sum(const Call& call, Lowering& lowering);

// pool.cpp
void lower_max_pool2d(const Call& call, Lowering& lowering);
void lower_max_pool2d_gradient(const Call& call, Lowering& lowering);
void lower_avg_pool2d(const Call& call, Lowering& lowering);
void lower_avg_pool2d_gradient(const Call& call, Lowering& lowering);
void lower_single_max_pool2d(const Call& call, Lowering& lowering);
void lower_single_avg_pool2d(const Call& call, Lowering& lowering);

// resize.cpp
void lower_resize2d(const Call& call, Lowering& lowering);
void lower_resize2d_gradient(const Call& call, Lowering& lowering);

// plan.cpp
void lower_load(const Call& call, Lowering& lowering);
void lower_store(const Call& call, Lowering& lowering);
void lower_total(const Call& call, Lowering& lowering);
void lower_seed_rows(const Call& call, Lowering& lowering);
void lower_seed_count(const Call& call, Lowering& lowering);
void lower_store_gradient(const Call& call, Lowering& lowering);

// draw.cpp
void lower_random_normal(const Call& call, Lowering& lowering);
void lower_random_uniform(const Call& call, Lowering& lowering);
void lower_stochastic_depth(const Call& call, Lowering& lowering);

// indexing.cpp
void lower_gather(const Call& call, Lowering& lowering);
void lower_gather_gradient(const Call& call, Lowering& lowering);
void lower_argmax(const Call& call, Lowering& lowering);
void lower_one_hot(const Call& call, Lowering& lowering);
void lower_embedding(const Call& call, Lowering& lowering);
void lower_embedding_gradient(const Call& call, Lowering& lowering);

// layer_norm.cpp: layer_norm and group_norm
void lower_line_norm(const Call& call, Lowering& lowering);
void lower_line_norm_gradient(const Call& call, Lowering& lowering);

// reduce.cpp
void lower_reduce(const Call& call, Lowering& lowering);
void lower_batch_sum(const Call& call, Lowering& lowering);
void lower_reduce_max(const Call& call, Lowering& lowering);
void lower_reduce_max_gradient(const Call& call, Lowering& lowering);

// cast.cpp
void lower_cast(const Call& call, Lowering& lowering);

// elementwise.cpp
void lower_elementwise(const Call& call, Lowering& lowering);
/// What it takes.
std::vector<std::string_view> tile_operations();
void lower_expand(const Call& call, Lowering& lowering);
/// Elementwise nodes of one output type, tile by tile in one phase. Operands are bound as `inputs` (values made
/// outside) and `outputs` (values read outside) list them. The bits are those of the nodes run apart.
void lower_group(const graph::Graph& graph, std::span<const int32_t> nodes, int64_t samples, Isa isa,
                 std::span<const graph::ValueId> inputs, std::span<const graph::ValueId> outputs, Lowering& lowering);

// shape.cpp
void lower_reshape(const Call& call, Lowering& lowering);
void lower_concat(const Call& call, Lowering& lowering);
void lower_slice(const Call& call, Lowering& lowering);
void lower_pad_slice(const Call& call, Lowering& lowering);
void lower_permute(const Call& call, Lowering& lowering);
void lower_pad(const Call& call, Lowering& lowering);
void lower_constant(const Call& call, Lowering& lowering);

// single.cpp: for one sample whose values lie row-major
void lower_single_conv2d(const Call& call, Lowering& lowering);
void lower_single_linear(const Call& call, Lowering& lowering);
void lower_single_batch_norm_inference(const Call& call, Lowering& lowering);
void lower_single_bias_add(const Call& call, Lowering& lowering);
/// Operations whose kernels take values without a batch: one sample is such a value.
void lower_single_load(const Call& call, Lowering& lowering);
void lower_single_store(const Call& call, Lowering& lowering);
void lower_single_elementwise(const Call& call, Lowering& lowering);
void lower_single_reduce(const Call& call, Lowering& lowering);
void lower_single_expand(const Call& call, Lowering& lowering);
void lower_single_reshape(const Call& call, Lowering& lowering);
void lower_single_concat(const Call& call, Lowering& lowering);
void lower_single_slice(const Call& call, Lowering& lowering);
void lower_single_softmax(const Call& call, Lowering& lowering);
void lower_single_cast(const Call& call, Lowering& lowering);
void lower_single_group(const graph::Graph& graph, std::span<const int32_t> nodes, int64_t samples, Isa isa,
                        std::span<const graph::ValueId> inputs, std::span<const graph::ValueId> outputs,
                        Lowering& lowering);
/// Why a node does not run sample by sample; "" when it does.
std::string not_single(const Call& call);
/// The phases of one sample for each of `samples`. Operands are bound as `inputs` and `outputs` list them.
void repeat(const Lowering& one, const graph::Graph& graph, std::span<const graph::ValueId> inputs,
            std::span<const graph::ValueId> outputs, int64_t samples, Lowering& lowering);
template <void (*kLower)(const Call&, Lowering&)>
void lower_each_sample(const Call& call, Lowering& lowering) {
  Lowering one;
  kLower({call.graph, call.node, 1, call.isa}, one);
  repeat(one, call.graph, call.node.inputs, call.node.outputs, call.samples, lowering);
}

// softmax.cpp
void lower_softmax(const Call& call, Lowering& lowering);
void lower_softmax_gradient(const Call& call, Lowering& lowering);

// loss.cpp
void lower_nll(const Call& call, Lowering& lowering);
void lower_nll_gradient(const Call& call, Lowering& lowering);
void lower_softmax_cross_entropy(const Call& call, Lowering& lowering);
void lower_softmax_cross_entropy_gradient(const Call& call, Lowering& lowering);
void lower_accuracy(const Call& call, Lowering& lowering);

// norm.cpp
void lower_batch_norm(const Call& call, Lowering& lowering);
void lower_batch_norm_inference(const Call& call, Lowering& lowering);
void lower_batch_norm_gradient(const Call& call, Lowering& lowering);
void lower_batch_norm_commit(const Call& call, Lowering& lowering);

// matmul.cpp
void lower_matmul(const Call& call, Lowering& lowering);

// optimizer.cpp
void lower_gradient_stats(const Call& call, Lowering& lowering);
void lower_commit_staged(const Call& call, Lowering& lowering);
void lower_scale_update(const Call& call, Lowering& lowering);
void lower_sgd_walk(const Call& call, Lowering& lowering);
void lower_adam_walk(const Call& call, Lowering& lowering);

}  // namespace brisk::backend::cpu
