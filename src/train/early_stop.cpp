// Monitors and the best of a run.
#include "train/early_stop.h"

#include <cmath>
#include <limits>

#include "core/text.h"

namespace brisk {
namespace {

std::string checked_name(const char* function, std::string name) {
  if (name.empty()) throw Error(ErrorCode::option, function, "needs the name of a value, for example \"loss\"");
  return name;
}

}  // namespace

Monitor highest(std::string name) { return {checked_name("highest", std::move(name)), true}; }
Monitor lowest(std::string name) { return {checked_name("lowest", std::move(name)), false}; }

bool Monitor::better(double value, double other, double by) const {
  if (std::isnan(value) || std::isnan(other)) return std::isnan(other) && !std::isnan(value);
  return higher_ ? value > other + by : value < other - by;
}

double Monitor::worst() const {
  const double infinity = std::numeric_limits<double>::infinity();
  return higher_ ? -infinity : infinity;
}

namespace train {

void check_early_stop(const EarlyStop& options, bool has_validation) {
  const auto refuse = [](const std::string& field, const char* why) {
    throw Error(ErrorCode::option, "FitOptions.early_stop" + field, why);
  };
  const bool anything = options.min_delta != 0 || options.patience != 0 || options.restore_best ||
                        options.target.has_value() || options.warmup != 0;
  if (!options.monitor.set()) {
    if (anything) refuse(".monitor", "missing; say what to watch, for example .monitor = lowest(\"loss\")");
    return;
  }
  if (!has_validation) refuse("", "watches the validation set; give one: fit(train, validation, options)");
  if (!(options.min_delta >= 0 && std::isfinite(options.min_delta)))
    refuse(cat(".min_delta = ", options.min_delta), "must be finite and at least 0");
  if (options.patience < 1)
    refuse(cat(".patience = ", options.patience),
           "must be at least 1; it is the number of evaluations in a row without a better one that stop the run");
  if (options.target && !std::isfinite(*options.target)) refuse(cat(".target = ", *options.target), "must be finite");
  if (options.warmup < 0)
    refuse(cat(".warmup = ", options.warmup), "must be at least 0; it is a number of evaluations");
}

BestSoFar::BestSoFar(const EarlyStop& options)
    : options_(options), monitor_(options.monitor.set() ? options.monitor : lowest("loss")), best_(monitor_.worst()) {}

bool BestSoFar::take(double value) {
  if (taken_++ < options_.warmup) return false;
  const bool better = monitor_.better(value, best_, options_.min_delta);
  if (better) best_ = value;
  since_best_ = better ? 0 : since_best_ + 1;
  if (!options_.monitor.set()) return better;
  if (options_.target && monitor_.reaches(value, *options_.target)) {
    best_ = value;
    reason_ = StopReason::target_reached;
  } else if (since_best_ >= options_.patience) {
    reason_ = StopReason::early_stop;
  }
  return better;
}

std::string BestSoFar::text() const {
  const std::string value = cat(monitor_.name(), " ", number_text(best_, 4));
  if (reason_ == StopReason::target_reached) return cat(value, " reaches the target ", *options_.target);
  return cat(value, " not beaten for ", options_.patience, options_.patience == 1 ? " evaluation" : " evaluations");
}

}  // namespace train
}  // namespace brisk
