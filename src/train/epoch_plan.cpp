// Micro-batches, windows and durations in whole numbers.
#include "train/epoch_plan.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text.h"

namespace brisk::train {
namespace {

constexpr double kRounding = 1e-9;  // of one micro-batch, or of one period: below it two durations are the same

int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// a x b + c for numbers of at least 0; beyond 63 bits the largest one, which no run reaches.
int64_t multiply_add(int64_t a, int64_t b, int64_t c) {
  int64_t out = 0;
  const bool over = __builtin_mul_overflow(a, b, &out) || __builtin_add_overflow(out, c, &out);
  return over ? std::numeric_limits<int64_t>::max() : out;
}

int64_t ceil_tolerant(double value) { return static_cast<int64_t>(std::ceil(value - kRounding)); }

Position normal(const EpochShape& shape, int64_t epoch, int64_t micro) {
  return micro >= shape.micro_batches() ? Position{epoch + 1, 0} : Position{epoch, micro};
}

Position after_epochs(double epochs, const EpochShape& shape) {
  const double whole = std::floor(epochs);
  const double micro = (epochs - whole) * static_cast<double>(shape.rows()) / static_cast<double>(shape.batch);
  return normal(shape, static_cast<int64_t>(whole), ceil_tolerant(micro));
}

/// `amount` units after `position`, when an epoch has `per_epoch` of them, `left` remain in this one and a micro-batch
/// advances by 1/`per_micro`.
Position after_units(int64_t amount, int64_t left, int64_t per_epoch, int64_t unit_in_micro, bool unit_is_window,
                     const EpochShape& shape, const Position& position) {
  const auto micros = [&](int64_t units) {
    return unit_is_window ? multiply_add(units, unit_in_micro, 0) : ceil_div(units, unit_in_micro);
  };
  if (amount <= left) {
    const int64_t micro_left = shape.micro_batches() - position.micro;
    return normal(shape, position.epoch, position.micro + std::min(micros(amount), micro_left));
  }
  amount -= left;
  const int64_t epochs = amount / per_epoch;
  return normal(shape, position.epoch + 1 + epochs, micros(amount % per_epoch));
}

Position end_of(const Duration& duration, const EpochShape& shape, const Start& start) {
  const double count = duration.count();
  if (duration.unit() == Duration::Unit::epochs) return after_epochs(count, shape);
  const int64_t wanted = static_cast<int64_t>(std::ceil(count));
  const Position& position = start.position;
  if (duration.unit() == Duration::Unit::samples) {
    const int64_t left = shape.rows() - shape.rows_before(position.micro);
    return after_units(wanted - start.samples, left, shape.rows(), shape.batch, false, shape, position);
  }
  const int64_t left = shape.updates(position.micro, shape.micro_batches());
  return after_units(wanted - start.updates, left, shape.updates(), shape.accumulate, true, shape, position);
}

bool reached(const Duration& duration, const Start& start) {
  if (duration.unit() == Duration::Unit::samples) return static_cast<double>(start.samples) >= duration.count();
  if (duration.unit() == Duration::Unit::updates) return static_cast<double>(start.updates) >= duration.count();
  return false;
}

}  // namespace

int64_t EpochShape::micro_batches() const { return drop_last ? samples / batch : ceil_div(samples, batch); }
int64_t EpochShape::rows() const { return drop_last ? samples - samples % batch : samples; }
int64_t EpochShape::rows_before(int64_t micro) const { return std::min(rows(), multiply_add(micro, batch, 0)); }
int64_t EpochShape::rows(int64_t micro) const { return std::min(batch, rows() - micro * batch); }
int64_t EpochShape::updates(int64_t first, int64_t last) const { return ceil_div(last - first, accumulate); }

Horizon horizon(const Duration& duration, const EpochShape& shape, const Start& start) {
  Horizon out;
  const Position end = reached(duration, start) ? start.position : end_of(duration, shape, start);
  out.end = std::max(end, start.position);
  const int64_t per_epoch = shape.micro_batches();
  const int64_t epochs = out.end.epoch - start.position.epoch;
  if (epochs == 0) {
    out.micro_batches = out.end.micro - start.position.micro;
    out.total_updates = start.updates + shape.updates(start.position.micro, out.end.micro);
    return out;
  }
  // The rest of this epoch, the whole ones, and a part of the last.
  out.micro_batches = multiply_add(epochs - 1, per_epoch, per_epoch - start.position.micro + out.end.micro);
  out.total_updates =
      multiply_add(epochs - 1, shape.updates(),
                   start.updates + shape.updates(start.position.micro, per_epoch) + shape.updates(0, out.end.micro));
  return out;
}

double epochs_at(const EpochShape& shape, const Position& position) {
  const double done = static_cast<double>(shape.rows_before(position.micro)) / static_cast<double>(shape.rows());
  return static_cast<double>(position.epoch) + done;
}

Trigger::Trigger(const Duration& every, const Clock& now) : every_(every) {
  if (every_.set()) set_next(value(now));
}

double Trigger::value(const Clock& clock) const {
  switch (every_.unit()) {
    case Duration::Unit::epochs:
      return clock.epochs;
    case Duration::Unit::samples:
      return static_cast<double>(clock.samples);
    case Duration::Unit::seconds:
      return clock.seconds;
    default:
      return static_cast<double>(clock.updates);
  }
}

void Trigger::set_next(double value) { next_ = (std::floor(value / every_.count() + kRounding) + 1) * every_.count(); }

bool Trigger::due(const Clock& now) {
  if (!every_.set()) return false;
  const double at = value(now);
  if (at < next_ - kRounding * every_.count()) return false;
  set_next(at);
  return true;
}

void check_duration(const std::string& field, const Duration& duration, bool seconds_only) {
  if (!duration.set()) {
    throw Error(ErrorCode::option, field, "missing; say how long to train, for example .duration = 2_epochs");
  }
  const std::string subject = cat(field, " = ", duration.text());
  if (!(duration.count() > 0 && duration.count() < 9e15)) {
    throw Error(ErrorCode::option, subject, "must be a finite length of more than 0");
  }
  if (seconds_only != (duration.unit() == Duration::Unit::seconds)) {
    throw Error(ErrorCode::option, subject,
                seconds_only ? "must be a time, for example 55_minutes"
                             : "must be epochs, samples or updates, since it is the horizon of the schedule; a budget "
                               "of time is .time_limit");
  }
}

}  // namespace brisk::train
