// brisk/optimizer.h: optimizers as values. Rates are schedules; a number is a constant one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "brisk/schedule.h"

namespace brisk {

/// Options for the parameters whose names match a glob; the first group that matches wins.
struct ParameterGroup {
  double learning_rate_scale = 1;        ///< multiplies the optimizer's rate
  std::string match{};                   ///< glob over parameter names (`*`, `?`); required; must match something
  std::optional<double> weight_decay{};  ///< overrides the optimizer's decay and the two-or-more-dimensions rule
};

struct SgdOptions {
  double dampening = 0;  ///< buf = momentum buf + (1 - dampening) g; not on a parameter's first update
  std::vector<ParameterGroup> groups{};
  Schedule learning_rate{};  ///< required
  double momentum = 0;       ///< in [0, 1)
  bool nesterov = false;     ///< needs momentum > 0 and dampening 0
  double weight_decay = 0;   ///< coupled (added to the gradient), on parameters of two or more dimensions
};
struct AdamOptions {
  std::vector<double> betas{0.9, 0.999};  ///< two numbers in [0, 1)
  double epsilon = 1e-8;                  ///< outside the root, after bias correction
  std::vector<ParameterGroup> groups{};
  Schedule learning_rate = 1e-3;
  double weight_decay = 0;  ///< coupled: added to the gradient
};
struct AdamWOptions {
  std::vector<double> betas{0.9, 0.999};
  double epsilon = 1e-8;
  std::vector<ParameterGroup> groups{};
  Schedule learning_rate = 1e-3;
  double weight_decay = 0.01;  ///< decoupled: w *= 1 - rate x decay before the step
};

/// What an optimizer is, whichever function made it.
struct Optimizer {
  enum class Kind : uint8_t { sgd, adam };
  Kind kind = Kind::sgd;
  double beta1 = 0;  ///< SGD: momentum
  double beta2 = 0;
  double dampening = 0;
  double epsilon = 0;
  std::vector<ParameterGroup> groups{};
  Schedule learning_rate{};
  std::string name{};      ///< "sgd", "adam", "adamw": for messages
  bool decoupled = false;  ///< weight decay apart from the gradient
  bool nesterov = false;
  double weight_decay = 0;

  int moments() const { return kind == Kind::adam ? 2 : (beta1 != 0 ? 1 : 0); }
};

/// PyTorch's SGD: g += decay w; buf = momentum buf + (1 - dampening) g; w -= rate (nesterov ? g + momentum buf : buf).
/// Throws Error [option] for values outside their ranges or NaN; Error [option] when learning_rate is missing.
BRISK_EXPORT Optimizer sgd(SgdOptions options);
/// Adam (Kingma and Ba 2014): m, v with bias correction; w -= rate mhat / (sqrt(vhat) + epsilon).
BRISK_EXPORT Optimizer adam(AdamOptions options = {});
/// Adam with decoupled weight decay (Loshchilov and Hutter 2017).
BRISK_EXPORT Optimizer adamw(AdamWOptions options = {});

}  // namespace brisk
