// What the kernels' tests use of the emulation, for a real device: it has schedules of its own and no counters of
// banks.
#pragma once

#include <cstdint>

namespace brisk::simt {

struct Config {
  uint64_t seed = 0;  ///< without effect
};
inline Config& config() {
  static Config config;
  return config;
}

}  // namespace brisk::simt
