// brisk/kernels/layer_norm.h: normalisation of each row (Ba, Kiros and Hinton, 2016).
#pragma once

#include <cstdint>

#include "brisk/export.h"
#include "brisk/kernels/stream.h"
#include "brisk/tensor.h"

namespace brisk::kernels {

// Device pointers; f32, f16 or bf16 rows of any length, f32 statistics and parameters.

struct LayerNormOptions {
  const float* bias = nullptr;         ///< [size]; null: 0
  DType dtype = DType::f32;            ///< of x and y
  double epsilon = 1e-5;               ///< added to the variance
  float* inverse_deviation = nullptr;  ///< [rows], written: 1 / sqrt(variance + epsilon), biased variance
  float* mean = nullptr;               ///< [rows], written
  int64_t rows = 0;
  int64_t size = 0;               ///< elements of a row
  const float* weight = nullptr;  ///< [size]; null: 1
  const void* x = nullptr;        ///< [rows, size]
  void* y = nullptr;              ///< [rows, size], written; may be x
};
/// y = weight (x - mean) inverse_deviation + bias. One launch. A constant row gives exactly the bias.
BRISK_EXPORT void layer_norm(const LayerNormOptions& options, CudaStream stream);

struct LayerNormGradientOptions {
  bool accumulate = false;                   ///< dweight and dbias are added to instead of overwritten
  int32_t* counters = nullptr;               ///< kCounterBytes (stream.h); may be null where the workspace is empty
  float* dbias = nullptr;                    ///< [size], written; null together with dweight: not wanted
  DType dtype = DType::f32;                  ///< of x, dx and dy
  float* dweight = nullptr;                  ///< [size], written
  void* dx = nullptr;                        ///< [rows, size], written; null: not wanted; may be dy
  const void* dy = nullptr;                  ///< [rows, size]
  const float* inverse_deviation = nullptr;  ///< [rows], as layer_norm wrote it
  const float* mean = nullptr;               ///< [rows], as layer_norm wrote it
  int64_t rows = 0;
  int64_t size = 0;
  const float* weight = nullptr;  ///< [size]; null: 1
  void* workspace = nullptr;      ///< layer_norm_gradient_workspace_bytes, 16-byte aligned
  int64_t workspace_bytes = 0;
  const void* x = nullptr;  ///< [rows, size]
};
/// The gradients of layer_norm through the statistics. One launch for dx, one for dweight and dbias.
BRISK_EXPORT void layer_norm_gradient(const LayerNormGradientOptions& options, CudaStream stream);
BRISK_EXPORT int64_t layer_norm_gradient_workspace_bytes(const LayerNormGradientOptions& options);

}  // namespace brisk::kernels
