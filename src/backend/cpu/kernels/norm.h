// Batch normalization over channels of [blocks][rows][channels][vectors][lanes]. Statistics are taken in slices small
// enough for the second pass over a slice to read the nearest caches; slices are combined in double, in their order.
#pragma once

#include <cstdint>

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/declare.h"

namespace brisk::backend::cpu {

/// How one channel's elements are cut: a slice is a few lines (one row of one block), or a segment of one.
struct ChannelSlices {
  int64_t samples = 0;
  int64_t rows = 1;
  int64_t lines = 1;  ///< blocks * rows
  int64_t channels = 1;
  int64_t vectors = 1;      ///< of one channel of one line
  int64_t segments = 1;     ///< of a line; 1 where a slice has whole lines
  int64_t per_segment = 1;  ///< vectors
  int64_t lines_per_slice = 1;
  int64_t slices = 1;
  int64_t channels_per_unit = 1;
  int64_t units_per_slice = 1;
};

struct BatchNorm {
  ChannelSlices cut;
  double count = 1;  ///< valid elements of a channel
  double epsilon = 0;
  float momentum = 0;
  bool staged = false, chained = false;      ///< commit: see the op
  Activation activation = Activation::none;  ///< of the gradient: that of the forward pass; relu, silu or none
  bool residual = false;
  bool adds_gamma = false, adds_beta = false;  ///< those gradients add to what earlier micro-batches left
  int64_t channels_per_combine = 1;
  int64_t partials_at = 0;      ///< workspace: two doubles a channel and slice
  int64_t coefficients_at = 0;  ///< workspace: floats, [2][channels]
};

// In training: slice statistics, then mean and deviation of the channels, then y.
BRISK_DECLARE_PHASE(batch_norm_slices)
BRISK_DECLARE_PHASE(batch_norm_combine)
BRISK_DECLARE_PHASE(batch_norm_apply)
// With given statistics: coefficients, then y.
BRISK_DECLARE_PHASE(batch_norm_prepare)
BRISK_DECLARE_PHASE(batch_norm_apply_given)
// Gradient: slice sums of dz and dz * (x - mean), then dgamma and dbeta, then dx. dz is dy through the activation,
// whose input is computed again: cheaper than a tensor of it that is written, kept and read.
BRISK_DECLARE_PHASE(batch_norm_gradient_slices)
BRISK_DECLARE_PHASE(batch_norm_gradient_combine)
BRISK_DECLARE_PHASE(batch_norm_gradient_apply)
/// Running statistics move towards the batch's, unless the status word is set.
BRISK_DECLARE_PHASE(batch_norm_commit)

}  // namespace brisk::backend::cpu
