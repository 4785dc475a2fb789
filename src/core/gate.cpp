// Waiting: pause, then give way to other processes, then sleep.
#include "core/gate.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <climits>

namespace brisk {
namespace {

// From here on a waiting thread offers its processor to others at each look at the clock.
constexpr int64_t kYieldAfterNs = 5'000;
constexpr int kPausesPerLook = 32;

int64_t now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

void futex(std::atomic<uint32_t>& word, int operation, uint32_t value) {
  static_assert(sizeof(word) == 4, "the kernel compares four bytes");
  // Errors are early returns (changed value, signal): the callers look at the value again.
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

}  // namespace

void Gate::wait_while(uint32_t old, int64_t spin_ns) {
  const int64_t start = now_ns();
  for (int64_t spent = 0; spent < spin_ns; spent = now_ns() - start) {
    for (int i = 0; i < kPausesPerLook; ++i) {
      if (value_.load(std::memory_order_acquire) != old) return;
      pause();
    }
    if (spent > kYieldAfterNs) sched_yield();
  }
  // Either advance() sees this count and wakes us, or we (and the kernel) see its new value: both orders are total.
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (value_.load(std::memory_order_seq_cst) == old) futex(value_, FUTEX_WAIT, old);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void Gate::advance() {
  value_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) > 0) futex(value_, FUTEX_WAKE, INT_MAX);
}

}  // namespace brisk
