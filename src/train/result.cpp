// What fit() and evaluate() return.
#include <utility>

#include "brisk/trainer.h"
#include "core/text.h"
#include "train/totals.h"

namespace brisk {

const char* name(StopReason reason) {
  switch (reason) {
    case StopReason::finished:
      return "finished";
    case StopReason::diverged:
      return "diverged";
    case StopReason::early_stop:
      return "early_stop";
    case StopReason::requested:
      return "requested";
    case StopReason::signal:
      return "signal";
    case StopReason::target_reached:
      return "target_reached";
    case StopReason::time_limit:
      return "time_limit";
  }
  return "unknown";
}

void Control::stop(std::string message) {
  if (std::exchange(stopped_, true)) return;
  message_ = std::move(message);
}

void Control::evaluate() {
  if (!has_validation_)
    throw Error(ErrorCode::state, "Control::evaluate",
                "this fit() has no validation data set; give one: fit(train, validation, options)");
  evaluates_ = true;
}

double EvaluationResult::metric(const std::string& name) const {
  if (name == "loss") return loss;
  std::vector<std::string> names = {"loss"};
  for (const NamedMean& metric : metrics) {
    if (metric.name == name) return metric.value();
    names.push_back(metric.name);
  }
  for (const NamedMean& term : terms) {
    names.push_back("loss." + term.name);
    if (names.back() == name) return term.value();
  }
  std::string list;
  for (const std::string& known : names) list += (list.empty() ? "" : ", ") + known;
  const std::string near = closest(name, names);
  throw Error(
      ErrorCode::option, cat("metric \"", name, "\""),
      cat("there is none of this name; there are ", list, near.empty() ? "" : cat(" (did you mean ", near, "?)")));
}

std::string FitResult::text() const {
  const std::string seconds = fixed_text(clock.seconds, clock.seconds < 100 ? 1 : 0) + " s";
  std::string out =
      cat(name(reason), ": ", train::epochs_text(clock.epochs), ", ", grouped(clock.updates), " updates in ", seconds);
  if (evaluation.samples > 0) {
    out += cat("; validation ", train::values_text(evaluation.loss, evaluation.terms, evaluation.metrics));
  } else if (train.samples > 0) {
    out += cat("; train ", train::values_text(train.loss, train.terms, train.metrics));
  }
  if (!machine.empty()) out += cat("; ", machine);
  if (!message.empty()) out += cat("; ", message);
  return out;
}

}  // namespace brisk
