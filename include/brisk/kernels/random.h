// brisk/kernels/random.h: random values, dropout and stochastic depth as pure functions of (key, attempt, sample,
// element): Philox4x32-10 (Salmon and others, SC 2011), counter words attempt low, attempt high, sample, element / 4.
#pragma once

#include <cstdint>

#include "brisk/export.h"
#include "brisk/kernels/run_state.h"
#include "brisk/kernels/stream.h"
#include "brisk/tensor.h"

namespace brisk::kernels {

struct DropoutOptions {
  int64_t channels = 1;           ///< as ElementwiseOptions::channels
  DType dtype = DType::f32;       ///< of x and y: f32, f16 or bf16
  uint64_t key = 0;               ///< the stream
  int64_t positions = 1;          ///< as ElementwiseOptions::positions
  double rate = 0.5;              ///< in [0, 1): the probability to become 0; the others are divided by 1 - rate
  const RunState* run = nullptr;  ///< in device memory
  int64_t sample_elements = 1;
  int64_t samples = 0;
  const void* x = nullptr;  ///< [samples, sample_elements]
  void* y = nullptr;        ///< [samples, sample_elements], written; may be x
};
/// The same key and run give the same mask: the gradient is this kernel on dy.
BRISK_EXPORT void dropout(const DropoutOptions& options, CudaStream stream);

struct RandomNormalOptions {
  int64_t channels = 1;  ///< of a sample that lies channels last; elements are numbered channels first
  double deviation = 1;
  DType dtype = DType::f32;  ///< of y: f32, f16 or bf16
  uint64_t key = 0;          ///< the stream
  double mean = 0;
  int64_t positions = 1;          ///< that have channels
  const RunState* run = nullptr;  ///< in device memory
  int64_t sample_elements = 1;
  int64_t samples = 0;
  void* y = nullptr;  ///< [samples, sample_elements], written
};
/// Box and Muller, 1958.
BRISK_EXPORT void random_normal(const RandomNormalOptions& options, CudaStream stream);

struct RandomUniformOptions {
  int64_t channels = 1;      ///< as above
  DType dtype = DType::f32;  ///< of y: f32, f16 or bf16
  double high = 1;
  uint64_t key = 0;
  double low = 0;
  int64_t positions = 1;
  const RunState* run = nullptr;
  int64_t sample_elements = 1;
  int64_t samples = 0;
  void* y = nullptr;  ///< [samples, sample_elements], written: in [low, high) before rounding to dtype
};
BRISK_EXPORT void random_uniform(const RandomUniformOptions& options, CudaStream stream);

struct StochasticDepthOptions {
  DType dtype = DType::f32;  ///< of x and y: f32, f16 or bf16
  uint64_t key = 0;          ///< the stream
  double rate = 0.5;         ///< in [0, 1): the probability of a row to become 0; others are divided by 1 - rate
  int64_t row_elements = 1;
  int64_t rows = 1;               ///< of a sample; each is kept or dropped
  const RunState* run = nullptr;  ///< in device memory
  int64_t samples = 0;
  const void* x = nullptr;  ///< [samples, rows, row_elements]
  void* y = nullptr;        ///< [samples, rows, row_elements], written; may be x
};
/// The same key and run keep the same rows: the gradient is this kernel on dy.
BRISK_EXPORT void stochastic_depth(const StochasticDepthOptions& options, CudaStream stream);

}  // namespace brisk::kernels
