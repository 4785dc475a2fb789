// What an optimizer does to each parameter of a model: the groups' globs applied to names.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "brisk/optimizer.h"

namespace brisk::optim {

/// A parameter as the rules see it.
struct NamedParameter {
  std::string name;
  int rank = 0;       ///< dimensions
  bool decay = true;  ///< false: weight decay never applies by default
};

/// (weight decay, rate factor) of each parameter, in order. The first group that matches a name wins; the optimizer's
/// decay applies to parameters of two or more dimensions that allow it, a group's own decay to all it matches.
/// `parameters` holds the frozen ones too, so that a group may name them. Throws Error [option] for a glob that matches
/// none.
std::vector<std::pair<double, double>> resolve_rules(const Optimizer& optimizer,
                                                     const std::vector<NamedParameter>& parameters);

}  // namespace brisk::optim
