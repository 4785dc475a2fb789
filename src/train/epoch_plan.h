// The arithmetic of a run: how a data set falls into micro-batches and windows, where a duration ends, when a periodic
// event is due. Nothing here reads a clock or a sample.
#pragma once

#include <cstdint>
#include <string>

#include "brisk/schedule.h"

namespace brisk::train {

/// One data set as a sequence of micro-batches. A window is `accumulate` of them; the last of an epoch may be shorter.
struct EpochShape {
  int64_t samples = 0;
  int64_t batch = 1;
  int64_t accumulate = 1;
  bool drop_last = false;  ///< rows that do not fill a micro-batch are left out

  int64_t micro_batches() const;
  /// Samples of micro-batch number `micro`: `batch`, or less for the last.
  int64_t rows(int64_t micro) const;
  /// Samples of an epoch.
  int64_t rows() const;
  /// Samples before micro-batch number `micro`.
  int64_t rows_before(int64_t micro) const;
  /// Updates that micro-batches [first, last) of one epoch make when a window begins at `first`.
  int64_t updates(int64_t first, int64_t last) const;
  int64_t updates() const { return updates(0, micro_batches()); }
};

/// Micro-batch `micro` of epoch `epoch` comes next. `micro` is below the epoch's number of micro-batches.
struct Position {
  int64_t epoch = 0;
  int64_t micro = 0;
  friend bool operator==(const Position&, const Position&) = default;
  friend bool operator<(const Position& a, const Position& b) {
    return a.epoch != b.epoch ? a.epoch < b.epoch : a.micro < b.micro;
  }
};

/// What has been done when a run begins.
struct Start {
  Position position;
  int64_t samples = 0;
  int64_t updates = 0;
};

/// Where a run ends.
struct Horizon {
  Position end;
  int64_t micro_batches = 0;  ///< of this run
  int64_t total_updates = 0;  ///< since the trainer's start, those of this run included
};

/// The first position at which `duration`, counted from the trainer's start, is reached. Ends at a whole micro-batch.
Horizon horizon(const Duration& duration, const EpochShape& shape, const Start& start);

/// Epochs done, fractions included.
double epochs_at(const EpochShape& shape, const Position& position);

/// Due each time the clock passes a multiple of `every`; never when that is not set.
class Trigger {
 public:
  Trigger(const Duration& every, const Clock& now);
  bool due(const Clock& now);

 private:
  double value(const Clock& clock) const;
  void set_next(double value);
  Duration every_;
  double next_ = 0;
};

/// Throws Error [option] naming `field` unless the duration is set, finite, more than zero and, with
/// `seconds_only`, a time.
void check_duration(const std::string& field, const Duration& duration, bool seconds_only);

}  // namespace brisk::train
