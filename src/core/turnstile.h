// Lets a fixed number of callers in at a time, in the order in which they came.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "core/gate.h"

namespace brisk {

class Turnstile {
 public:
  explicit Turnstile(int width) : width_(static_cast<uint64_t>(width)) {}

  /// Returns when fewer than `width` of those who came earlier are still inside. Allocates nothing, takes no lock.
  void enter();
  /// Lets the next one in.
  void leave();
  /// Callers so far, waiting ones included.
  int64_t came() const { return static_cast<int64_t>(came_.load(std::memory_order_relaxed)); }

 private:
  static constexpr size_t kGates = 64;  ///< more who wait share gates: some are woken in vain and wait again

  Gate& gate_of(uint64_t ticket) { return gates_[ticket % kGates]; }

  const uint64_t width_;
  alignas(64) std::atomic<uint64_t> came_{0};
  alignas(64) std::atomic<uint64_t> left_{0};
  std::array<Gate, kGates> gates_;
};

}  // namespace brisk
