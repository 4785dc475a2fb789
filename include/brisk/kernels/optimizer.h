// brisk/kernels/optimizer.h: an update on the device: statistics of all gradients, one walk over all parameters, the
// loss scale, staged buffers, the rates of the next update. What an update reads and whether it counts is decided in
// device memory, so that it can be captured as part of a CUDA graph.
#pragma once

#include <cstdint>
#include <span>

#include "brisk/export.h"
#include "brisk/kernels/status.h"
#include "brisk/kernels/stream.h"
#include "brisk/tensor.h"

namespace brisk::kernels {

/// Elements that a block of the walks covers.
constexpr int64_t kUpdateChunk = 4096;

/// One parameter of a walk over many. All pointers are device pointers, null where the walk has no use for one.
struct UpdateTensor {
  int64_t count = 0;                ///< elements
  float* average = nullptr;         ///< exponential moving average of the parameter
  int64_t first_chunk = 0;          ///< set by number_chunks
  const float* gradient = nullptr;  ///< not unscaled, not clipped
  float* moment1 = nullptr;
  float* moment2 = nullptr;
  float* parameter = nullptr;
  float rate_scale = 1;            ///< times the learning rate
  void* shadow = nullptr;          ///< copy of the new parameter in shadow_type
  DType shadow_type = DType::f16;  ///< f16 or bf16
  int64_t slot = 0;                ///< what the status calls the parameter
  float weight_decay = 0;
};

/// A buffer whose new value waits for the update to count.
struct StagedTensor {
  int64_t count = 0;        ///< elements
  int64_t first_chunk = 0;  ///< set by number_chunks
  const float* from = nullptr;
  float* to = nullptr;
};

/// Numbers the chunks of a table before it is copied to the device; returns how many there are.
BRISK_EXPORT int64_t number_chunks(std::span<UpdateTensor> tensors);
BRISK_EXPORT int64_t number_chunks(std::span<StagedTensor> tensors);

struct GradientStatsOptions {
  int64_t chunks = 0;                   ///< of table, as number_chunks returned it
  double clip_norm = 0;                 ///< largest norm of the gradients; 0: any
  int32_t node = -1;                    ///< for status
  const float* ratio = nullptr;         ///< factor of all gradients, in device memory; null: 1
  const float* scale = nullptr;         ///< loss scale that is in all gradients, in device memory; null: 1
  float* stats = nullptr;               ///< written, [4]: see gradient_stats
  Status* status = nullptr;             ///< set where an element is not finite; null: not, as with a loss scale
  const UpdateTensor* table = nullptr;  ///< [tensors], in device memory: count, first_chunk and gradient are read
  int64_t tensors = 0;
  void* workspace = nullptr;  ///< gradient_stats_workspace_bytes(chunks), 16-byte aligned
  int64_t workspace_bytes = 0;
};
constexpr int64_t gradient_stats_workspace_bytes(int64_t chunks) { return chunks * 16; }
/// stats[0]: the norm of ratio / scale times all gradients, of the finite elements, exact to f32 wherever it is
/// representable. stats[1]: how many elements are not finite. stats[2]: the factor 1 / scale, times
/// clip_norm / (norm + 1e-6) where the norm is larger than clip_norm (PyTorch's clip_grad_norm_). stats[3]: the first
/// tensor of the table with an element that is not finite, or -1.
BRISK_EXPORT void gradient_stats(const GradientStatsOptions& options, CudaStream stream);

/// A walk over one parameter (count, gradient, ...) or over a table of many. It moves nothing when stats[1] is not 0 or
/// the status is set. g = ratio * stats[2] * gradient.
struct SgdOptions {
  double average_decay = 0;  ///< average = average_decay * average + (1 - average_decay) * parameter
  int64_t chunks = 0;        ///< table: as number_chunks returned it
  int64_t count = 0;         ///< one parameter: elements
  double dampening = 0;
  const float* first = nullptr;     ///< in device memory: not 0 when moment1 begins; null: update = 1
  const float* gradient = nullptr;  ///< one parameter
  double learning_rate = 1e-3;
  float* moment1 = nullptr;  ///< one parameter: the momentum buffer; only with momentum
  double momentum = 0;
  bool nesterov = false;
  float* parameter = nullptr;    ///< one parameter
  const float* rate = nullptr;   ///< in device memory, in place of learning_rate
  const float* ratio = nullptr;  ///< in device memory; null: 1
  void* shadow = nullptr;        ///< one parameter
  DType shadow_type = DType::f16;
  const float* stats = nullptr;         ///< of gradient_stats; null: updates whatever the gradients are
  const Status* status = nullptr;       ///< in device memory
  const UpdateTensor* table = nullptr;  ///< [tensors], in device memory; null: one parameter
  int64_t tensors = 0;
  int64_t update = 1;       ///< the first one is 1
  double weight_decay = 0;  ///< one parameter
};
/// PyTorch's SGD: d = g + weight_decay w; moment1 = momentum moment1 + (1 - dampening) d, or d in the first update;
/// w -= rate moment1, with nesterov rate (d + momentum moment1), without momentum rate d.
BRISK_EXPORT void sgd(const SgdOptions& options, CudaStream stream);

struct AdamOptions {
  double average_decay = 0;  ///< as above
  double beta1 = 0.9;
  double beta2 = 0.999;
  const float* bias1 = nullptr;  ///< 1 - beta1^update, in device memory; null: of `update`
  const float* bias2 = nullptr;  ///< 1 - beta2^update
  int64_t chunks = 0;            ///< table: as number_chunks returned it
  int64_t count = 0;             ///< one parameter: elements
  double epsilon = 1e-8;
  const float* gradient = nullptr;  ///< one parameter
  double learning_rate = 1e-3;
  float* moment1 = nullptr;      ///< one parameter
  float* moment2 = nullptr;      ///< one parameter
  float* parameter = nullptr;    ///< one parameter
  const float* rate = nullptr;   ///< in device memory, in place of learning_rate
  const float* ratio = nullptr;  ///< in device memory; null: 1
  void* shadow = nullptr;        ///< one parameter
  DType shadow_type = DType::f16;
  const float* stats = nullptr;         ///< as above
  const Status* status = nullptr;       ///< as above
  const UpdateTensor* table = nullptr;  ///< as above
  int64_t tensors = 0;
  int64_t update = 1;       ///< the first one is 1
  double weight_decay = 0;  ///< one parameter
};
/// Adam (Kingma and Ba, 2015), weight decay coupled: g += weight_decay w. moment1 and moment2 are the averages of g and
/// g^2; w -= rate / bias1 * moment1 / (sqrt(moment2 / bias2) + epsilon).
BRISK_EXPORT void adam(const AdamOptions& options, CudaStream stream);
/// AdamW (Loshchilov and Hutter, 2019): w -= rate weight_decay w before the step, which g has no part of.
BRISK_EXPORT void adamw(const AdamOptions& options, CudaStream stream);

struct ScaleUpdateOptions {
  double backoff = 0.5;         ///< factor of the scale after an overflow
  int64_t* counters = nullptr;  ///< [4], changed: updates, good ones since the scale changed, skips in a row, skipped
  double growth = 2;            ///< factor after `interval` good updates in a row
  int64_t interval = 2000;
  double maximum = 16777216;
  double minimum = 1;
  float* scale = nullptr;          ///< changed; null: counts only
  const float* stats = nullptr;    ///< of gradient_stats
  const Status* status = nullptr;  ///< in device memory; where it is set, nothing changes
};
/// The dynamic loss scale (Micikevicius and others, 2018), after the walk: counts the update, or the skip.
BRISK_EXPORT void scale_update(const ScaleUpdateOptions& options, CudaStream stream);

struct CommitStagedOptions {
  int64_t chunks = 0;                   ///< as number_chunks returned it
  const float* stats = nullptr;         ///< of gradient_stats; null: copies whatever the gradients are
  const Status* status = nullptr;       ///< in device memory
  const StagedTensor* table = nullptr;  ///< [tensors], in device memory
  int64_t tensors = 0;
};
/// Copies each `from` to its `to` when the update counts.
BRISK_EXPORT void commit_staged(const CommitStagedOptions& options, CudaStream stream);

struct SelectRatesOptions {
  int64_t columns = 0;                ///< 1 or more
  const int64_t* counters = nullptr;  ///< [1] or more: counters[0] is the number of updates so far
  int64_t rows = 0;                   ///< 1 or more
  float* scalars = nullptr;           ///< written, [columns]
  const float* table = nullptr;       ///< [rows][columns]
};
/// scalars = row (updates % rows) of the table.
BRISK_EXPORT void select_rates(const SelectRatesOptions& options, CudaStream stream);

}  // namespace brisk::kernels
