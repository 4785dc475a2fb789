// brisk/kernels/elementwise.h: chains of elementwise operations as one kernel: each source is read, each output written
// once, all between stays in registers.
#pragma once

#include <cstdint>
#include <span>

#include "brisk/export.h"
#include "brisk/kernels/run_state.h"
#include "brisk/kernels/stream.h"
#include "brisk/tensor.h"

namespace brisk::kernels {

/// What a step computes of a, b, c. Arithmetic is f32. NaN stays NaN everywhere but in comparisons, relu included.
enum class Elementwise : uint8_t {
  copy,                 ///< a
  add,                  ///< a + b
  sub,                  ///< a - b
  mul,                  ///< a b
  div,                  ///< a / b
  minimum,              ///< the smaller of a and b
  maximum,              ///< the larger of a and b
  relu,                 ///< max(a, 0)
  leaky_relu,           ///< a, or constant * a where a <= 0
  elu,                  ///< a, or constant * (exp(a) - 1) where a <= 0
  gelu,                 ///< a P(normal < a)
  gelu_tanh,            ///< its approximation by tanh (Hendrycks and Gimpel, 2016)
  silu,                 ///< a logistic(a)
  softplus,             ///< log(1 + exp(a))
  tanh,                 ///< hyperbolic tangent
  sigmoid,              ///< 1 / (1 + exp(-a))
  exp,                  ///< exp(a)
  log,                  ///< natural logarithm
  sqrt,                 ///< square root
  abs,                  ///< |a|
  pow,                  ///< a to the power of `exponent`
  clamp,                ///< a limited to [constant, high]
  reciprocal,           ///< constant / a
  scale,                ///< a * constant
  add_scalar,           ///< a + constant
  huber,                ///< a^2 / 2 for |a| <= constant, else constant (|a| - constant / 2)
  compare,              ///< 1 where `relation` holds between a and b, else 0
  compare_scalar,       ///< the same between a and constant
  where,                ///< b where a is not 0, else c
  minimum_gradient,     ///< of a = dy for b in minimum(b, c); half of it where the two are equal
  maximum_gradient,     ///< of a = dy for b in maximum(b, c); half of it where the two are equal
  relu_gradient,        ///< a = dy where b = y > 0
  leaky_relu_gradient,  ///< a = dy times constant where b = y <= 0
  elu_gradient,         ///< a = dy, times (b + constant) where b = y <= 0
  gelu_gradient,        ///< a = dy, b = x, as the following but where y is named
  gelu_tanh_gradient,
  silu_gradient,
  tanh_gradient,     ///< a = dy, b = y
  sigmoid_gradient,  ///< a = dy, b = y
  abs_gradient,
  clamp_gradient,
  huber_gradient,
  where_gradient,  ///< b = dy where the condition a is as `chosen` says, else 0
  dropout          ///< a * constant where the element's random word is at least `threshold`, else 0
};

/// What a comparison asks of its operands.
enum class Relation : uint8_t { less, less_equal, greater, greater_equal, equal, not_equal };

/// A tensor that a program reads.
struct ElementwiseSource {
  const void* data = nullptr;  ///< device pointer
  DType dtype = DType::f32;    ///< f32, f16 or bf16
  /// In elements, one a dimension of the program, 0 where the source is broadcast; empty: lies as the outputs do. Such
  /// a one may share its storage with an output; a source with strides may not.
  std::span<const int64_t> strides = {};
};

/// A tensor that a program writes: contiguous, of the program's dimensions.
struct ElementwiseOutput {
  void* data = nullptr;      ///< device pointer
  DType dtype = DType::f32;  ///< f32, f16 or bf16
  int32_t value = 0;         ///< which value it is, numbered as ElementwiseStep's operands
};

/// One operation. Operands are numbered: the sources first, then the results of the steps in order.
struct ElementwiseStep {
  int32_t a = 0, b = 0, c = 0;  ///< operands; those that the operation has no use for are not looked at
  bool chosen = true;           ///< where_gradient: of the value taken where the condition holds
  float constant = 0;           ///< factor, value, delta, slope, alpha, numerator, low
  double exponent = 1;          ///< pow
  float high = 0;               ///< clamp
  uint64_t key = 0;             ///< dropout: its stream of random numbers
  Elementwise operation = Elementwise::copy;
  Relation relation = Relation::less;
  uint32_t threshold = 0;  ///< dropout: rate * 2^32
};

struct ElementwiseOptions {
  /// dropout: channels of a sample that lies channels last; elements are numbered as if channels came first. 1: they
  /// are numbered as they lie.
  int64_t channels = 1;
  std::span<const int64_t> dims = {};               ///< of the outputs, row-major; at most 10
  std::span<const ElementwiseOutput> outputs = {};  ///< 1 to 8
  int64_t positions = 1;                            ///< dropout: positions that have channels; 1 where channels = 1
  const RunState* run = nullptr;                    ///< dropout: in device memory
  int64_t sample_elements = 0;                      ///< dropout: elements of one sample
  std::span<const ElementwiseSource> sources = {};  ///< 1 to 16
  /// 1 to 32. A result that another step than the next one reads, or that an output takes, is kept: at most 8 at once.
  std::span<const ElementwiseStep> steps = {};
};

constexpr int kElementwiseDims = 10, kElementwiseKept = 8, kElementwiseOutputs = 8, kElementwiseSources = 16,
              kElementwiseSteps = 32;

/// Runs the steps for each element of the outputs; outputs are written after all steps. Dropout's random words are
/// Philox4x32-10 (Salmon and others, SC 2011) with key `key` and counter (attempt low, attempt high, sample, element /
/// 4). Throws Error [option] for what is outside the limits above, Error [backend] when the launch fails.
BRISK_EXPORT void elementwise(const ElementwiseOptions& options, CudaStream stream);

/// Whether one launch takes the program: the limits above, and operands that name values that are there.
BRISK_EXPORT bool elementwise_fits(std::span<const ElementwiseOutput> outputs, int sources,
                                   std::span<const ElementwiseStep> steps);

}  // namespace brisk::kernels
