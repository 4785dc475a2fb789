// brisk/ops/norm.h: normalisation layers.
#pragma once

#include <string>

#include "brisk/model.h"

namespace brisk {

struct BatchNormOptions {
  double epsilon = 1e-5;  ///< added to the variance; in (0, 1)
  double momentum = 0.1;  ///< share of the batch in the running statistics; in [0, 1]
  std::string name{};     ///< empty: bn1, bn2, ... in its scope
};

/// Normalises each channel over the samples and all further dimensions (Ioffe and Szegedy, 2015): in training by the
/// batch's mean and biased variance, in evaluation by the running ones. x: [N, channels, ...] f32. Returns x's shape.
/// Parameters "weight" (ones) and "bias" (zeros); buffers "running_mean" (zeros) and "running_var" (ones), which take
/// the unbiased variance.
BRISK_EXPORT Var batch_norm(Var x, BatchNormOptions options = {}, Where where = Where::here());

}  // namespace brisk
