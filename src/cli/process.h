// What the kernel knows of this process.
#pragma once

#include <cstdint>

namespace brisk::cli {

/// Milliseconds since the kernel started this process (exec), from /proc/self/stat and the boot clock. The start is
/// known to a clock tick (10 ms) and rounded down, so the result is at most a tick too large, never too small. -1: not
/// known.
double process_age_ms();

/// Largest resident set so far.
int64_t peak_bytes();

}  // namespace brisk::cli
