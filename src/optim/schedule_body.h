// What a Schedule holds: one closed form, or a sequence of them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "brisk/schedule.h"

namespace brisk {

struct Schedule::Body {
  enum class Kind : uint8_t { constant, warmup, cosine, step_decay, sequence };
  Kind kind = Kind::constant;
  double value = 0;   ///< the constant, or the peak
  double end = 0;     ///< cosine
  double factor = 1;  ///< step_decay
  Duration length{};  ///< warm-up's length, cosine's `over` (not set: open), step_decay's `every`
  std::vector<std::shared_ptr<const Body>> pieces{};  ///< sequence: at least two, none of them a sequence

  /// What a schedule holds; null: not set.
  static const std::shared_ptr<const Body>& of(const Schedule& schedule) { return schedule.body_; }
  /// The rate of update `update`, counted from where this piece begins. `next` (a warm-up's goal) may be null.
  double at(int64_t update, const Body* next) const;
  /// Updates until the next piece begins; the length must be a number of updates. INT64_MAX: it has no end.
  int64_t updates() const;
  bool resolved() const;
  std::string text() const;
};

namespace optim {

/// Throws Error [option] "<field> = nan: ..." unless every number of the schedule is finite (as an f32, which is what
/// kernels read) and not negative; Error [option] "<field>: missing; ..." when it is not set; Error [schedule] when it
/// ends in a warm-up.
void check_rate(const std::string& field, const Schedule& schedule);

/// Throws Error [schedule] "<field>: cosine(0.1) lasts to the end of the run, and a Step has none; ..." when a length
/// is not a number of updates.
void check_resolved(const std::string& field, const Schedule& schedule);

/// Why the schedule is not resolved, with the remedy for a loop of the user's own; empty: it is.
std::string why_unresolved(const Schedule& schedule);

}  // namespace optim
}  // namespace brisk
