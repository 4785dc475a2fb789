// brisk/schedule.h: durations with units, and rates as pure functions of the number of updates.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "brisk/error.h"
#include "brisk/export.h"

namespace brisk {

/// A length with its unit: 5_epochs, 500_updates, 1000_samples, 10_minutes, 30_seconds, 2_hours.
class BRISK_EXPORT Duration {
 public:
  enum class Unit : uint8_t { none, epochs, samples, seconds, updates };
  constexpr Duration() = default;
  constexpr Duration(double count, Unit unit) : count_(count), unit_(unit) {}
  constexpr double count() const { return count_; }
  constexpr Unit unit() const { return unit_; }
  constexpr bool set() const { return unit_ != Unit::none; }
  /// "5 epochs"
  std::string text() const;

 private:
  double count_ = 0;
  Unit unit_ = Unit::none;
};

inline namespace literals {
// clang-format off
constexpr Duration operator""_epochs(unsigned long long n) { return {static_cast<double>(n), Duration::Unit::epochs}; }
constexpr Duration operator""_epochs(long double n) { return {static_cast<double>(n), Duration::Unit::epochs}; }
constexpr Duration operator""_updates(unsigned long long n) { return {static_cast<double>(n), Duration::Unit::updates}; }
constexpr Duration operator""_samples(unsigned long long n) { return {static_cast<double>(n), Duration::Unit::samples}; }
constexpr Duration operator""_seconds(unsigned long long n) { return {static_cast<double>(n), Duration::Unit::seconds}; }
constexpr Duration operator""_minutes(unsigned long long n) { return {60.0 * static_cast<double>(n), Duration::Unit::seconds}; }
constexpr Duration operator""_hours(unsigned long long n) { return {3600.0 * static_cast<double>(n), Duration::Unit::seconds}; }
// clang-format on
}  // namespace literals

/// How far training has come.
struct Clock {
  int64_t attempts = 0;  ///< windows that have ended: updates, and those that were skipped or failed
  double epochs = 0;
  int64_t samples = 0;
  double seconds = 0;
  int64_t updates = 0;
};

/// A rate as a pure function of the number of updates, in double. A number converts to a constant schedule.
class BRISK_EXPORT Schedule {
 public:
  Schedule(double value);  // NOLINT: a number is a constant schedule
  Schedule();              ///< not set

  /// The rate of update number `clock.updates` (0-based). Throws Error [schedule] when a length is not known yet.
  double at(const Clock& clock) const;
  /// Goes on with `next` when this one's length is over; the clock of `next` starts at the joint.
  /// A warm-up climbs to the first value of `next`. Throws Error [schedule] when this one has no end.
  Schedule then(Schedule next) const;
  /// Converts epochs and samples to updates, and gives open lengths ("the rest of the run") their number.
  Schedule resolve(int64_t updates_per_epoch, int64_t samples_per_update, int64_t total_updates) const;
  /// Whether every length is a number of updates.
  bool resolved() const;
  bool set() const { return body_ != nullptr; }
  /// "warmup(500 updates).then(cosine(0.0003))"
  std::string text() const;

  struct Body;
  explicit Schedule(std::shared_ptr<const Body> body);

 private:
  std::shared_ptr<const Body> body_;
};

struct CosineOptions {
  double end = 0;   ///< the value at the end and ever after
  Duration over{};  ///< length; not set: the rest of the run
};
struct StepDecayOptions {
  Duration every{};     ///< required: length of a stair
  double factor = 0.1;  ///< multiplies the rate at each stair, in (0, 1]
};

BRISK_EXPORT Schedule constant(double value);
/// Linear from peak/length (the first update is never 0) to the first value of the next schedule, which it reaches at
/// its last update: 4 updates to 0.1 give 0.025, 0.05, 0.075, 0.1.
BRISK_EXPORT Schedule warmup(Duration length);
/// end + (peak - end) (1 + cos(pi t / T)) / 2 for t in [0, T], then `end`: closed form (Loshchilov and Hutter 2016).
BRISK_EXPORT Schedule cosine(double peak, CosineOptions options = {});
/// peak x factor^floor(t / every) (PyTorch's StepLR).
BRISK_EXPORT Schedule step_decay(double peak, StepDecayOptions options);

}  // namespace brisk
