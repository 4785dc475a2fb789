// brisk/kernels/batch_norm.h: batch normalisation over rows (Ioffe and Szegedy, 2015).
#pragma once

#include <cstdint>

#include "brisk/export.h"
#include "brisk/kernels/activation.h"
#include "brisk/kernels/status.h"
#include "brisk/kernels/stream.h"
#include "brisk/tensor.h"

namespace brisk::kernels {

// Activations are [rows, channels], the channels of a row side by side: of [N, H, W, C], rows = N H W. All pointers are
// device pointers. Each launcher checks its options (Error [option]), launches on the stream, checks the launch (Error
// [backend]) and returns. Vectors of 16 bytes are used when channels and pointers allow it.

struct BatchNormOptions {
  Activation activation = Activation::none;
  const float* bias = nullptr;  ///< [channels]; null: 0
  int64_t channels = 0;
  int32_t* counters = nullptr;         ///< kCounterBytes (stream.h); may be null where the workspace is empty
  DType dtype = DType::f32;            ///< of x, residual and y: f32, f16 or bf16
  double epsilon = 1e-5;               ///< added to the variance
  float* inverse_deviation = nullptr;  ///< [channels], written: 1 / sqrt(variance + epsilon), biased variance
  float* mean = nullptr;               ///< [channels], written
  const void* residual = nullptr;      ///< [rows, channels], added before the activation; null: none
  int64_t rows = 0;
  float* unbiased_variance = nullptr;  ///< [channels], written; the biased one where rows = 1
  const float* weight = nullptr;       ///< [channels]; null: 1
  void* workspace = nullptr;           ///< batch_norm_workspace_bytes, 16-byte aligned; its contents are nothing's
  int64_t workspace_bytes = 0;
  const void* x = nullptr;  ///< [rows, channels]
  void* y = nullptr;        ///< [rows, channels], written; may be x or residual
};
/// y = activation(weight (x - mean) inverse_deviation + bias + residual) by the batch's own statistics. Two launches.
/// The statistics merge means and squared deviations in a fixed tree (Chan, Golub and LeVeque, 1979): no cancellation.
BRISK_EXPORT void batch_norm(const BatchNormOptions& options, CudaStream stream);
BRISK_EXPORT int64_t batch_norm_workspace_bytes(const BatchNormOptions& options);

struct BatchNormInferenceOptions {
  Activation activation = Activation::none;
  const float* bias = nullptr;  ///< [channels]; null: 0
  int64_t channels = 0;
  DType dtype = DType::f32;        ///< of x, residual and y
  double epsilon = 1e-5;           ///< added to the variance
  const float* mean = nullptr;     ///< [channels]; null: 0
  const void* residual = nullptr;  ///< [rows, channels]; null: none
  int64_t rows = 0;
  const float* variance = nullptr;  ///< [channels]
  const float* weight = nullptr;    ///< [channels]; null: 1
  const void* x = nullptr;          ///< [rows, channels]
  void* y = nullptr;                ///< [rows, channels], written; may be x or residual
};
/// y = activation(weight (x - mean) / sqrt(variance + epsilon) + bias + residual) by given statistics. One launch.
BRISK_EXPORT void batch_norm_inference(const BatchNormInferenceOptions& options, CudaStream stream);

struct BatchNormGradientOptions {
  bool accumulate = false;  ///< dweight and dbias are added to instead of overwritten
  Activation activation = Activation::none;
  const float* bias = nullptr;  ///< [channels]; null: 0; read where the activation's input is computed again
  int64_t channels = 0;
  int32_t* counters = nullptr;  ///< kCounterBytes (stream.h); may be null where the workspace is empty
  float* dbias = nullptr;       ///< [channels], written
  void* dresidual = nullptr;    ///< [rows, channels], written: the gradient before the activation; null: not wanted
  DType dtype = DType::f32;     ///< of x, output and their gradients
  float* dweight = nullptr;     ///< [channels], written
  void* dx = nullptr;           ///< [rows, channels], written; may be dy
  const void* dy = nullptr;     ///< [rows, channels]
  const float* inverse_deviation = nullptr;  ///< [channels], as batch_norm wrote it
  const float* mean = nullptr;               ///< [channels], as batch_norm wrote it
  const void* output = nullptr;  ///< [rows, channels]: y, for the derivative of relu, sigmoid, tanh at it. Null: relu
                                 ///< and silu from weight (x - mean) inverse_deviation + bias, without a residual
  int64_t rows = 0;
  const float* weight = nullptr;  ///< [channels]; null: 1
  void* workspace = nullptr;      ///< batch_norm_gradient_workspace_bytes, 16-byte aligned
  int64_t workspace_bytes = 0;
  const void* x = nullptr;  ///< [rows, channels]
};
/// The gradients of batch_norm through the statistics. Two launches.
BRISK_EXPORT void batch_norm_gradient(const BatchNormGradientOptions& options, CudaStream stream);
BRISK_EXPORT int64_t batch_norm_gradient_workspace_bytes(const BatchNormGradientOptions& options);

struct BatchNormCommitOptions {
  const float* batch_mean = nullptr;      ///< [channels]
  const float* batch_variance = nullptr;  ///< [channels], unbiased
  int64_t channels = 0;
  double momentum = 0.1;                    ///< the share of the batch, 0 to 1
  float* new_running_mean = nullptr;        ///< [channels], written; may be running_mean
  float* new_running_variance = nullptr;    ///< [channels], written; may be running_variance
  const float* running_mean = nullptr;      ///< [channels]
  const float* running_variance = nullptr;  ///< [channels]
  const Status* status = nullptr;  ///< where an error is set the running values stay as they are; null: not looked at
};
/// new = (1 - momentum) running + momentum batch; a channel whose batch is not finite stays as it was. One launch.
BRISK_EXPORT void batch_norm_commit(const BatchNormCommitOptions& options, CudaStream stream);

}  // namespace brisk::kernels
