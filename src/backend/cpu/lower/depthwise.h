// Depthwise convolutions, a special case of the nodes that conv.cpp lowers.
#pragma once

#include "backend/cpu/lowering.h"

namespace brisk::backend::cpu {

/// Whether the depthwise kernels take a convolution with weights [out, kh, kw, in / groups] of `channels` inputs.
bool is_depthwise(const Call& call, const Shape& weight, int64_t channels);
void lower_depthwise(const Call& call, Lowering& lowering);
void lower_depthwise_input_gradient(const Call& call, Lowering& lowering);
void lower_depthwise_weight_gradient(const Call& call, Lowering& lowering);

}  // namespace brisk::backend::cpu
