// The update: statistics of all gradients, then one walk over all parameters. A unit is a range of the parameters'
// elements laid end to end, so that many small ones cost one unit.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cpu/kernels/declare.h"

namespace brisk::backend::cpu {

/// Elements [first, first + count) of parameter `parameter` (its place in the node).
struct Stretch {
  int32_t parameter = 0;
  int64_t first = 0;
  int64_t count = 0;
};

struct Walk {
  std::vector<Stretch> stretches;
  std::vector<int32_t> unit_begin;  ///< first stretch of each unit, and their number at the end
  int32_t parameters = 0;
  std::vector<int32_t> parameter_slots;  ///< stats: indices into Graph::parameters
  bool scaled = false;                   ///< stats: the gradients carry a loss scale, input 1
  float clip_norm = 0;                   ///< stats: 0: off
  int64_t partials_at = 0;               ///< stats: workspace, two doubles a unit (sum of squares, not finite)
  std::vector<float> weight_decay, rate_scale;
  bool momentum_used = false, nesterov = false, decoupled = false;
  float momentum = 0, undamped = 1;         ///< SGD; 1 - dampening
  float beta1 = 0, beta2 = 0, epsilon = 0;  ///< Adam
  float rest1 = 1, rest2 = 1;               ///< 1 - beta
};

struct ScaleRule {
  bool scaled = false;
  float backoff = 1, growth = 1, minimum = 0, maximum = 0;
  int64_t interval = 1;
};

BRISK_DECLARE_PHASE(gradient_squares)
BRISK_DECLARE_PHASE(gradient_stats)  // one unit
/// Copies of the same element type, in the stretches of a walk.
BRISK_DECLARE_PHASE(commit_staged)
BRISK_DECLARE_PHASE(scale_update)  // one unit
BRISK_DECLARE_PHASE(sgd_walk)
BRISK_DECLARE_PHASE(adam_walk)

}  // namespace brisk::backend::cpu
