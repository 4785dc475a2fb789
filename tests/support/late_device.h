// A device for tests: the CPU's kernels in memory that the host cannot touch, with runs that end some time after run()
// has returned.
#pragma once

#include <cstdint>
#include <memory>

#include "exec/devices.h"

namespace brisk::test {

/// Stands in for gpu(0) while it lives; what was made on it must be gone before. The host's access to its memory ends
/// the program. How late a run is computed, up to two runs, is drawn from the seed.
class LateDevice {
 public:
  explicit LateDevice(uint64_t seed, int64_t memory_bytes = int64_t{1} << 32);
  ~LateDevice();
  /// Of its memory.
  int64_t held_bytes() const;
  /// Runs that were queued, and how many of them were computed after run() had returned.
  int64_t runs() const;
  int64_t late_runs() const;

  class Backend;

 private:
  std::unique_ptr<Backend> backend_;
  exec::StandIn stand_in_;
};

}  // namespace brisk::test
