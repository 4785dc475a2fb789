// A bucket's number is the position of a value's highest bit and the five bits below it.
#include "exec/latency.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace brisk::exec {

void LatencyHistogram::add(int64_t nanoseconds) {
  const auto value = static_cast<uint64_t>(std::max<int64_t>(nanoseconds, 0));
  size_t bucket = value;
  if (value >= kExact) {
    const int octave = std::bit_width(value) - std::bit_width(unsigned{kExact});
    bucket = static_cast<size_t>(kExact + octave * kSteps) + (value >> (octave + 1)) % kSteps;
  }
  buckets_[std::min(bucket, buckets_.size() - 1)].fetch_add(1, std::memory_order_relaxed);
}

int64_t LatencyHistogram::count() const {
  int64_t count = 0;
  for (const auto& bucket : buckets_) count += bucket.load(std::memory_order_relaxed);
  return count;
}

double LatencyHistogram::quantile_us(double part) const {
  const auto wanted = std::max<int64_t>(1, std::llround(std::ceil(part * static_cast<double>(count()))));
  int64_t seen = 0;
  for (size_t i = 0; i < buckets_.size(); ++i) {
    seen += buckets_[i].load(std::memory_order_relaxed);
    if (seen < wanted) continue;
    if (i < kExact) return static_cast<double>(i) / 1e3;
    const size_t octave = (i - kExact) / kSteps, step = (i - kExact) % kSteps;
    return (kSteps + static_cast<double>(step) + 0.5) * std::ldexp(1.0, static_cast<int>(octave) + 1) / 1e3;
  }
  return 0;
}

}  // namespace brisk::exec
