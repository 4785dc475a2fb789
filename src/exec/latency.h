// Durations counted in fixed buckets, so that any thread may add one without a lock or an allocation.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace brisk::exec {

/// Buckets are 1 ns wide below 64 ns and 1/32 of their octave above; the last one takes all that is longer.
class LatencyHistogram {
 public:
  void add(int64_t nanoseconds);
  int64_t count() const;
  /// The middle of the bucket of the value below or at which a share of `part` of all values lies; 0 when there are
  /// none.
  double quantile_us(double part) const;

 private:
  static constexpr int kExact = 64, kSteps = 32, kOctaves = 34;  // up to 18 minutes

  std::array<std::atomic<int64_t>, kExact + kSteps * kOctaves> buckets_{};
};

}  // namespace brisk::exec
