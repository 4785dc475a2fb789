// brisk/ops/random.h: operations that draw random numbers.
#pragma once

#include <string>

#include "brisk/model.h"

namespace brisk {

struct DropoutOptions {
  std::string
      name{};  ///< empty: dropout1, dropout2, ... in its scope; keys the random numbers, with the model's seed and name
};

/// In training, each element becomes 0 with probability `rate` in [0, 1], and the others are divided by 1 - rate; in
/// evaluation nothing changes. x: [N, ...] f32. The mask depends on the sample's place in the global window, not on how
/// the work is split.
BRISK_EXPORT Var dropout(Var x, double rate, DropoutOptions options = {}, Where where = Where::here());

struct StochasticDepthOptions {
  std::string name{};  ///< empty: stochastic_depth1, ... in its scope; keys the random numbers, as for dropout
};

/// In training, each sample becomes 0 as a whole with probability `rate` in [0, 1), and the others are divided by
/// 1 - rate; in evaluation nothing changes (Huang et al., 2016; torchvision's mode "row"). For the branch of a residual
/// block: x + stochastic_depth(branch, 0.1). x: [N, ...] f32.
BRISK_EXPORT Var stochastic_depth(Var x, double rate, StochasticDepthOptions options = {}, Where where = Where::here());

struct RandomNormalOptions {
  double deviation = 1;  ///< at least 0
  double mean = 0;
  std::string name{};  ///< empty: random_normal1, ... in its scope; keys the random numbers, as for dropout
};

/// Normal random numbers, other ones for each sample and update, in training and in evaluation. shape: of one sample.
/// Returns [N, ...shape] f32; no gradient. They are a pure function of the seed, the name, the window's number, the
/// sample's place in it and the element: the same for any split into micro-batches and after a resume. In a model the
/// seed and the name are the model's; in an objective the seed is made of the seeds and names of all models that it
/// calls. Two steps of a program that must not draw the same numbers give their values different names. In evaluation
/// the samples count from the last read_evaluation().
BRISK_EXPORT Var random_normal(Shape shape, RandomNormalOptions options = {}, Where where = Where::here());

struct RandomUniformOptions {
  double high = 1;     ///< never reached
  double low = 0;      ///< below `high`
  std::string name{};  ///< empty: random_uniform1, ... in its scope; keys the random numbers, as for dropout
};

/// Random numbers uniform in [low, high), in 2^24 steps. Everything else as for random_normal.
BRISK_EXPORT Var random_uniform(Shape shape, RandomUniformOptions options = {}, Where where = Where::here());

}  // namespace brisk
