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
  relu,
  tanh,
  sigmoid,
  exp,
  log,
  reciprocal,
  scale,
  add_scalar,
  relu_gradient,
  tanh_gradient,
  sigmoid_gradient,
  huber,
  huber_gradient,
  dropout
};

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
  int32_t a = 0, b = 0, out = 0;  ///< registers
  float constant = 0;             ///< factor, value, delta
  uint64_t key = 0;               ///< dropout's stream
  uint32_t threshold = 0;         ///< dropout keeps an element whose word is at least this
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
