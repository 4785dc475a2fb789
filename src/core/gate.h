// A counter that threads wait on: first by spinning for a short time, then asleep in the kernel.
#pragma once

#include <atomic>
#include <cstdint>

namespace brisk {

/// Spinning longer than this costs other programs more than a wake-up costs us.
constexpr int64_t kSpinNs = 50'000;
/// With more threads than processors the one waited for may need this very processor.
constexpr int64_t kOversubscribedSpinNs = 1'000;

class alignas(64) Gate {
 public:
  uint32_t value() const { return value_.load(std::memory_order_acquire); }
  /// Returns once the value is no longer `old`; what was written before the advance() that changed it is visible.
  void wait_while(uint32_t old, int64_t spin_ns);
  /// Adds one and wakes all who wait.
  void advance();

 private:
  std::atomic<uint32_t> value_{0};
  std::atomic<uint32_t> sleepers_{0};
};

/// All workers of a pool meet here; reusable at once.
class Barrier {
 public:
  Barrier(int workers, int64_t spin_ns) : spin_ns_(spin_ns), workers_(workers) {}

  /// Returns when all workers have called it; what each wrote before is visible to all after.
  void wait() {
    if (workers_ == 1) return;
    const uint32_t phase = gate_.value();
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == workers_) {
      arrived_.store(0, std::memory_order_relaxed);
      gate_.advance();
    } else {
      gate_.wait_while(phase, spin_ns_);
    }
  }

 private:
  Gate gate_;
  alignas(64) std::atomic<int> arrived_{0};
  const int64_t spin_ns_;
  const int workers_;
};

}  // namespace brisk
