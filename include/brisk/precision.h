// brisk/precision.h: in which number formats a step computes.
#pragma once

#include <cstdint>

#include "brisk/export.h"

namespace brisk {

/// A recipe, not an element type: which values have 16 bits. Whatever the recipe, parameters, moments, gradients of
/// parameters, batch statistics, softmax, losses, exp, log, pow and reductions are f32, and products are added in f32.
/// In `bf16` and `fp16` matrix products and convolutions read 16-bit operands (matrices are rounded from their f32
/// parameters) and make 16-bit results; elementwise operations, poolings and normalisations between them keep 16 bits.
/// Where a device has no 16-bit kernel for an operation it computes in f32 between the same roundings: on a CPU always,
/// which saves memory, not time.
enum class Precision : uint8_t {
  f32,
  bf16,       ///< bfloat16: the range of f32, 8 bits of precision
  fp16,       ///< IEEE half: 11 bits of precision, at most 65504; with a dynamic loss scale (StepOptions.loss_scale)
  automatic,  ///< what the device has matrix units for: bf16, else fp16; f32 on a CPU. Plan::precision() says which
};

/// "f32", "bf16", "fp16", "automatic"
BRISK_EXPORT const char* name(Precision precision);

/// Dynamic loss scaling of Precision::fp16: gradients are computed times the scale, and unscaled before anything looks
/// at them. An update whose gradient is not finite is skipped: nothing moves, the schedule does not advance, and the
/// scale shrinks. Rule and defaults: PyTorch's GradScaler, with limits.
struct LossScale {
  double backoff = 0.5;            ///< factor after a skipped update; above 0, below 1
  double growth = 2;               ///< factor after growth_interval updates without a skip; 1 (constant) or more
  int64_t growth_interval = 2000;  ///< at least 1
  double initial = 65536;          ///< from minimum to maximum
  double maximum = 16777216;       ///< 2^24; finite as an f32
  int64_t maximum_skips = 50;      ///< so many skipped updates in a row are an Error [numeric]; at least 1
  double minimum = 1;              ///< above 1.2e-38
};

}  // namespace brisk
