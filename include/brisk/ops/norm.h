// brisk/ops/norm.h: normalisation layers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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

struct LayerNormOptions {
  bool affine = true;     ///< learns a weight and a bias for each normalised element
  int64_t dims = 1;       ///< how many dimensions, counted from the last one, are normalised together
  double epsilon = 1e-5;  ///< added to the variance; in (0, 1)
  std::string name{};     ///< empty: ln1, ln2, ... in its scope
};

/// Normalises the last dimensions of each sample by their own mean and biased variance (Ba, Kiros and Hinton, 2016), in
/// training as in evaluation: y = (x - mean) / sqrt(variance + epsilon) weight + bias. x: [N, ...] f32. Returns x's
/// shape. Parameters "weight" (ones) and "bias" (zeros) have the shape of those dimensions, as in PyTorch's LayerNorm.
BRISK_EXPORT Var layer_norm(Var x, LayerNormOptions options = {}, Where where = Where::here());

struct GroupNormOptions {
  bool affine = true;     ///< learns a weight and a bias for each channel
  double epsilon = 1e-5;  ///< added to the variance; in (0, 1)
  int64_t groups = 0;     ///< divides the channels; required
  std::string name{};     ///< empty: gn1, gn2, ... in its scope
};

/// Normalises groups of neighbouring channels of each sample, all further dimensions included (Wu and He, 2018), by
/// their own mean and biased variance. x: [N, channels, ...] f32. Returns x's shape. Parameters "weight" (ones) and
/// "bias" (zeros): [channels]. With as many groups as channels this is instance normalisation.
BRISK_EXPORT Var group_norm(Var x, GroupNormOptions options, Where where = Where::here());

struct NormalizeOptions {
  std::vector<double> deviation{};  ///< one number a channel, above 0; required
  std::vector<double> mean{};       ///< one number a channel; required
};

/// (x - mean) / deviation by channel, with fixed numbers: torchvision's Normalize. x: [N, channels, ...] f32, or u8,
/// whose 0 .. 255 are divided by 255 first (ToTensor and then Normalize). Returns f32. Images from a decoder go through
/// to_channels_first() before.
BRISK_EXPORT Var normalize(Var x, NormalizeOptions options, Where where = Where::here());

}  // namespace brisk
