// The lowerings, one file a family; implementations.cpp puts them in order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "backend/cuda/lower/tensor.h"

namespace brisk::backend::cuda {

// conv.cpp
std::string conv_declines(const Call& call);
void lower_conv2d(const Call& call, Lowering& lowering);
void lower_conv2d_input_gradient(const Call& call, Lowering& lowering);
void lower_conv2d_weight_gradient(const Call& call, Lowering& lowering);

// linear.cpp
void lower_linear(const Call& call, Lowering& lowering);
void lower_linear_input_gradient(const Call& call, Lowering& lowering);
void lower_linear_weight_gradient(const Call& call, Lowering& lowering);
std::string cublaslt_declines(const Call& call);
void lower_cublaslt_linear(const Call& call, Lowering& lowering);
void lower_cublaslt_linear_input_gradient(const Call& call, Lowering& lowering);
void lower_cublaslt_linear_weight_gradient(const Call& call, Lowering& lowering);
std::string matmul_declines(const Call& call);
void lower_matmul(const Call& call, Lowering& lowering);
void lower_channel_sum(const Call& call, Lowering& lowering);

// pool.cpp
void lower_max_pool2d(const Call& call, Lowering& lowering);
void lower_max_pool2d_gradient(const Call& call, Lowering& lowering);
void lower_avg_pool2d(const Call& call, Lowering& lowering);
void lower_avg_pool2d_gradient(const Call& call, Lowering& lowering);

// plan.cpp
void lower_load(const Call& call, Lowering& lowering);
void lower_store(const Call& call, Lowering& lowering);
void lower_total(const Call& call, Lowering& lowering);
void lower_seed_rows(const Call& call, Lowering& lowering);
void lower_seed_count(const Call& call, Lowering& lowering);
void lower_store_gradient(const Call& call, Lowering& lowering);

// random.cpp
void lower_random_normal(const Call& call, Lowering& lowering);
void lower_random_uniform(const Call& call, Lowering& lowering);
void lower_stochastic_depth(const Call& call, Lowering& lowering);

// elementwise.cpp: one node, or a chain of them as one kernel (as few as fit)
void lower_elementwise(const Call& call, Lowering& lowering);
/// What it takes.
std::vector<std::string_view> elementwise_operations();
void lower_bias_add(const Call& call, Lowering& lowering);
void lower_expand(const Call& call, Lowering& lowering);

// shape.cpp
void lower_reshape(const Call& call, Lowering& lowering);
void lower_concat(const Call& call, Lowering& lowering);
void lower_slice(const Call& call, Lowering& lowering);
std::string padding_declines(const Call& call);
void lower_pad_slice(const Call& call, Lowering& lowering);
void lower_pad(const Call& call, Lowering& lowering);
void lower_permute(const Call& call, Lowering& lowering);
void lower_constant(const Call& call, Lowering& lowering);
void lower_cast(const Call& call, Lowering& lowering);

// reduce.cpp
void lower_reduce(const Call& call, Lowering& lowering);
void lower_batch_sum(const Call& call, Lowering& lowering);
std::string maximum_declines(const Call& call);
void lower_reduce_max(const Call& call, Lowering& lowering);
void lower_reduce_max_gradient(const Call& call, Lowering& lowering);

// softmax.cpp
void lower_softmax(const Call& call, Lowering& lowering);
void lower_softmax_gradient(const Call& call, Lowering& lowering);

// loss.cpp
void lower_negative_log_likelihood(const Call& call, Lowering& lowering);
void lower_negative_log_likelihood_gradient(const Call& call, Lowering& lowering);
void lower_softmax_cross_entropy(const Call& call, Lowering& lowering);
void lower_softmax_cross_entropy_gradient(const Call& call, Lowering& lowering);
void lower_accuracy(const Call& call, Lowering& lowering);

// norm.cpp
void lower_batch_norm(const Call& call, Lowering& lowering);
void lower_batch_norm_inference(const Call& call, Lowering& lowering);
void lower_batch_norm_gradient(const Call& call, Lowering& lowering);
void lower_batch_norm_commit(const Call& call, Lowering& lowering);
void lower_layer_norm(const Call& call, Lowering& lowering);
void lower_layer_norm_gradient(const Call& call, Lowering& lowering);

// optimizer.cpp
void lower_gradient_stats(const Call& call, Lowering& lowering);
void lower_sgd_walk(const Call& call, Lowering& lowering);
void lower_adam_walk(const Call& call, Lowering& lowering);
void lower_scale_update(const Call& call, Lowering& lowering);
void lower_select_scalars(const Call& call, Lowering& lowering);
void lower_commit_staged(const Call& call, Lowering& lowering);

}  // namespace brisk::backend::cuda
