// Parameter groups: first match wins.
#include "optim/rules.h"

#include <algorithm>

#include "core/text.h"
#include "optim/glob.h"

namespace brisk::optim {
namespace {

constexpr size_t kNamesShown = 6;

[[noreturn]] void throw_no_match(const Optimizer& optimizer, size_t group,
                                 const std::vector<NamedParameter>& parameters) {
  std::string names;
  for (size_t i = 0; i < std::min(parameters.size(), kNamesShown); ++i) {
    names += (i == 0 ? "" : ", ") + parameters[i].name;
  }
  if (parameters.size() > kNamesShown) names += cat(" and ", parameters.size() - kNamesShown, " more");
  throw Error(
      ErrorCode::option, cat(optimizer.name, ".groups[", group, "].match = \"", optimizer.groups[group].match, "\""),
      parameters.empty() ? "matches no parameter; the model has none" : cat("matches no parameter; there are ", names));
}

}  // namespace

std::vector<std::pair<double, double>> resolve_rules(const Optimizer& optimizer,
                                                     const std::vector<NamedParameter>& parameters) {
  std::vector<std::pair<double, double>> rules;
  std::vector<bool> used(optimizer.groups.size(), false);
  for (const NamedParameter& parameter : parameters) {
    std::pair<double, double> rule(parameter.rank >= 2 && parameter.decay ? optimizer.weight_decay : 0, 1);
    bool taken = false;
    for (size_t i = 0; i < optimizer.groups.size(); ++i) {
      const ParameterGroup& group = optimizer.groups[i];
      if (!glob_matches(group.match, parameter.name)) continue;
      used[i] = true;
      if (taken) continue;
      taken = true;
      rule.first = group.weight_decay.value_or(rule.first);
      rule.second = group.learning_rate_scale;
    }
    rules.push_back(rule);
  }
  for (size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) throw_no_match(optimizer, i, parameters);
  }
  return rules;
}

}  // namespace brisk::optim
