// Distinct bytes of device memory that launches touch: counted in the traced build, whose kernels are made so
// that they report each load and store.
#pragma once

#include <cstdint>
#include <vector>

#include "simt/core.h"

namespace brisk::simt {

#if defined(BRISK_SIMT_TRACED)
inline constexpr bool kTraced = true;
#else
inline constexpr bool kTraced = false;
#endif

struct TouchedBytes {
  Site launch;          ///< where launch() stands
  int64_t read = 0;     ///< distinct bytes read
  int64_t written = 0;  ///< distinct bytes written; a byte may be both
};

/// One entry for each launch since the last call, in the order in which they ran. Copies and memsets are none. Empty in
/// builds that are not traced.
std::vector<TouchedBytes> touched_bytes();

// ---- between the emulation's own parts ----
void begin_trace(Site launch);
void end_trace();
/// For atomics, whose writing is not reported.
void trace_update(const void* address, uint64_t bytes);

}  // namespace brisk::simt
