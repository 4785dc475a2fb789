// brisk/kernels/loss.h: losses over class labels, accuracy, and the sums and seeds of losses that have one value a row.
#pragma once

#include <cstdint>

#include "brisk/export.h"
#include "brisk/kernels/status.h"
#include "brisk/kernels/stream.h"
#include "brisk/tensor.h"

namespace brisk::kernels {

// Device pointers; classes of a row side by side. A row's target gives class c the share
//   t[c] = class_weights[c] (label_smoothing / classes + (c == label ? 1 - label_smoothing : 0)),
// its weight in the mean is class_weights[label]. A row whose label is ignore_index has loss, weight and gradient 0, as
// has a row whose label is no class: the first of those in the order of rows is written to the status word.

struct SoftmaxCrossEntropyOptions {
  const float* class_weights = nullptr;  ///< [classes]; null: 1
  int64_t classes = 0;
  DType dtype = DType::f32;  ///< of logits and probabilities: f32, f16 or bf16
  int64_t ignore_index = -100;
  double label_smoothing = 0;       ///< 0 to 1
  const int64_t* labels = nullptr;  ///< [rows]
  const void* logits = nullptr;     ///< [rows, classes]
  float* loss = nullptr;            ///< [rows], written
  int32_t node = -1;                ///< what the status word calls this launch
  void* probabilities = nullptr;    ///< [rows, classes], written, of all rows; null: not wanted; may be logits
  float* row_weight = nullptr;      ///< [rows], written
  int64_t rows = 0;
  Status* status = nullptr;  ///< null: bad labels are not reported
};
/// loss = -sum(t[c] log softmax(logits)[c]). One launch.
BRISK_EXPORT void softmax_cross_entropy(const SoftmaxCrossEntropyOptions& options, CudaStream stream);

struct SoftmaxCrossEntropyGradientOptions {
  const float* class_weights = nullptr;  ///< [classes]; null: 1
  int64_t classes = 0;
  void* dlogits = nullptr;       ///< [rows, classes], written; may be probabilities
  const float* dloss = nullptr;  ///< [rows]
  DType dtype = DType::f32;      ///< of dlogits and probabilities
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  const int64_t* labels = nullptr;      ///< [rows]
  const void* probabilities = nullptr;  ///< [rows, classes]
  int64_t rows = 0;
};
/// dlogits[c] = dloss (sum(t) probabilities[c] - t[c]). One launch.
BRISK_EXPORT void softmax_cross_entropy_gradient(const SoftmaxCrossEntropyGradientOptions& options, CudaStream stream);

struct NegativeLogLikelihoodOptions {
  const float* class_weights = nullptr;  ///< [classes]; null: 1
  int64_t classes = 0;
  DType dtype = DType::f32;  ///< of log_probabilities
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  const int64_t* labels = nullptr;          ///< [rows]
  const void* log_probabilities = nullptr;  ///< [rows, classes]
  float* loss = nullptr;                    ///< [rows], written
  int32_t node = -1;
  float* row_weight = nullptr;  ///< [rows], written
  int64_t rows = 0;
  Status* status = nullptr;  ///< null: bad labels are not reported
};
/// loss = -sum(t[c] log_probabilities[c]). One launch.
BRISK_EXPORT void negative_log_likelihood(const NegativeLogLikelihoodOptions& options, CudaStream stream);

struct NegativeLogLikelihoodGradientOptions {
  const float* class_weights = nullptr;  ///< [classes]; null: 1
  int64_t classes = 0;
  const float* dloss = nullptr;  ///< [rows]
  DType dtype = DType::f32;      ///< of dx
  void* dx = nullptr;            ///< [rows, classes], written
  int64_t ignore_index = -100;
  double label_smoothing = 0;
  const int64_t* labels = nullptr;  ///< [rows]
  int64_t rows = 0;
};
/// dx[c] = -dloss t[c]. One launch.
BRISK_EXPORT void negative_log_likelihood_gradient(const NegativeLogLikelihoodGradientOptions& options,
                                                   CudaStream stream);

struct AccuracyOptions {
  int64_t classes = 0;
  float* correct = nullptr;  ///< [rows], written: 1 where the first of the largest logits is the label's, else 0; with
                             ///< a NaN among them 0
  DType dtype = DType::f32;  ///< of logits
  int64_t ignore_index = -100;
  const int64_t* labels = nullptr;  ///< [rows]
  const void* logits = nullptr;     ///< [rows, classes]
  float* row_weight = nullptr;      ///< [rows], written: 0 where the label is ignored, else 1
  int64_t rows = 0;
};
BRISK_EXPORT void accuracy(const AccuracyOptions& options, CudaStream stream);

struct TotalOptions {
  bool accumulate = false;            ///< totals are added to instead of overwritten
  const float* row_weight = nullptr;  ///< [rows]; null: 1
  int64_t rows = 0;
  const float* term = nullptr;  ///< [rows]
  double* totals = nullptr;     ///< [2], written: the sum of term and the sum of row_weight, both added in f64
};
BRISK_EXPORT void total(const TotalOptions& options, CudaStream stream);

struct SeedRowsOptions {
  const float* loss_scale = nullptr;  ///< a scalar that the seed is multiplied by; null: 1
  int64_t rows = 0;
  const float* seed = nullptr;  ///< a scalar
  float* seeds = nullptr;       ///< [rows], written
};
/// The gradient of the objective for each row: seed loss_scale.
BRISK_EXPORT void seed_rows(const SeedRowsOptions& options, CudaStream stream);

struct SeedCountOptions {
  double factor = 1;
  const float* row_weight = nullptr;  ///< [rows]
  int64_t rows = 0;
  float* seed = nullptr;  ///< a scalar, written
};
/// seed = factor / sum(row_weight), added in f64; 0 where that sum is 0.
BRISK_EXPORT void seed_count(const SeedCountOptions& options, CudaStream stream);

}  // namespace brisk::kernels
