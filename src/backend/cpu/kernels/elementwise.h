// Elementwise work as a tile program: operands are brought into L1-sized tiles (broadcast ones expanded, others read
// where they lie), a list of steps runs over each tile, and only the program's outputs leave it. One op is a program of
// one step.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cpu/kernels/declare.h"

namespace brisk::backend::cpu {

enum class Micro : uint8_t {
  copy,
  add,
  sub,
  mul,
  div,
  minimum,
  maximum,
  relu,
  leaky_relu,
  elu,
  gelu,
  gelu_tanh,
  silu,
  softplus,
  tanh,
  sigmoid,
  exp,
  log,
  sqrt,
  abs,
  pow,
  clamp,
  reciprocal,
  scale,
  add_scalar,
  huber,
  compare,
  compare_scalar,
  where,
  minimum_gradient,
  maximum_gradient,
  relu_gradient,
  leaky_relu_gradient,
  elu_gradient,
  gelu_gradient,
  gelu_tanh_gradient,
  silu_gradient,
  tanh_gradient,
  sigmoid_gradient,
  abs_gradient,
  clamp_gradient,
  huber_gradient,
  where_gradient,
  dropout
};

/// What a comparison asks of its operands.
enum class Relation : uint8_t { less, less_equal, greater, greater_equal, equal, not_equal };

/// Floats of a tile: a few of them fit the L1 cache together.
constexpr int64_t kTile = 2048;
/// Floats of a unit of work.
constexpr int64_t kUnit = 4 * kTile;

/// How an operand is reached from the output's elements.
struct TileSource {
  enum Kind : uint8_t {
    direct,    ///< lies as the output does
    constant,  ///< one element without a batch
    lanes,     ///< batched, broadcast over some dimensions
    vector,    ///< without a batch, in a batched output: an element is the same for all samples
    plain      ///< without a batch, as the output
  };
  Kind kind = direct;
  int64_t elements = 0;          ///< of one sample (batched)
  std::vector<int64_t> strides;  ///< in elements, one a dimension of the program; 0: broadcast
};

struct TileStep {
  Micro op = Micro::copy;
  Relation relation = Relation::less;
  bool chosen = true;                    ///< where_gradient: of the value taken where the condition holds
  int32_t a = 0, b = 0, c = 0, out = 0;  ///< registers
  float constant = 0;                    ///< factor, value, delta, slope, alpha, low
  float high = 0;                        ///< clamp
  double exponent = 0;                   ///< pow
  uint64_t key = 0;                      ///< dropout's stream
  uint32_t threshold = 0;                ///< dropout keeps an element whose word is at least this
};

/// Registers: first the sources, then the outputs, then temporaries.
struct TileProgram {
  bool batched = false;
  int64_t elements = 0;       ///< of one sample, or all
  int64_t total = 0;          ///< floats of an output, with lanes
  std::vector<int64_t> dims;  ///< of the output without the samples, collapsed where all sources allow
  std::vector<TileSource> sources;
  std::vector<TileStep> steps;
  std::vector<int32_t> staged;  ///< per output: the temporary that holds it until the tile ends, or -1: written at once
  int32_t temporaries = 0;
  int64_t buffers_at = 0;  ///< bytes from the start of scratch, after the table of registers
};

BRISK_DECLARE_PHASE(run_tiles)

}  // namespace brisk::backend::cpu
