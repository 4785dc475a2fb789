// brisk/ops/linear.h: fully connected layers and matrix products.
#pragma once

#include <cstdint>
#include <string>

#include "brisk/model.h"

namespace brisk {

struct LinearOptions {
  bool bias = true;    ///< adds one number a feature
  std::string name{};  ///< empty: fc1, fc2, ... in its scope
};

/// x W' + b. x: [N, in] f32. Returns [N, features]. Parameters "weight" [features, in] and "bias" [features] begin
/// uniform in
/// +-1 / sqrt(in), as in PyTorch.
/// Throws Error [shape] when a sample is not one row of features: put flatten() before it.
BRISK_EXPORT Var linear(Var x, int64_t features, LinearOptions options = {}, Where where = Where::here());

/// x with one number added to each channel. x: [N, channels, ...]; bias: [channels].
BRISK_EXPORT Var bias_add(Var x, Var bias, Where where = Where::here());

struct MatmulOptions {
  bool transpose_a = false;  ///< a is [N, K, M], or [K, M]
  bool transpose_b = false;  ///< b is [N, P, K], or [P, K]
};

/// Product of the matrices of each sample. a: [N, M, K]; b: [N, K, P]; either may lack N (a parameter: the same for all
/// samples). Returns [N, M, P].
BRISK_EXPORT Var matmul(Var a, Var b, MatmulOptions options = {}, Where where = Where::here());

}  // namespace brisk
