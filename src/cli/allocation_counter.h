// Heap allocations of the whole process, all threads, while a counter lives.
#pragma once

#include <cstdint>

namespace brisk::cli {

struct Allocations {
  int64_t external = 0;  ///< with a function of an optional library (oneDNN) among their callers
  int64_t own = 0;       ///< all others
};

/// Counts from its construction. One at a time.
class AllocationCounter {
 public:
  AllocationCounter();
  ~AllocationCounter();
  AllocationCounter(const AllocationCounter&) = delete;
  AllocationCounter& operator=(const AllocationCounter&) = delete;
  Allocations counted() const;
  /// False where a sanitizer owns malloc: nothing is counted.
  static bool works();
};

}  // namespace brisk::cli
