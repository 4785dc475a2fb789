// What fit() and evaluate() return.
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
    case StopReason::time_limit:
      return "time_limit";
  }
  return "unknown";
}

double EvaluationResult::metric(const std::string& name) const {
  if (name == "loss") return loss;
  std::vector<std::string> names = {"loss"};
  for (const NamedMean& metric : metrics) {
    if (metric.name == name) return metric.value();
    names.push_back(metric.name);
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
