// The thread pool: one per Step or Predictor. run(f) executes f(worker) on every worker; the caller is worker 0.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <thread>
#include <type_traits>
#include <vector>

#include "core/gate.h"

namespace brisk {

class Pool {
 public:
  /// threads: workers including the caller; 0: all this process may use (affinity and cgroup quota). Throws
  /// Error [option] outside 0..kMaximumThreads, Error [state] when the system starts no more threads.
  explicit Pool(int threads = 0);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  static constexpr int kMaximumThreads = 4096;

  int threads() const { return threads_; }
  /// How long a worker that waits stays awake.
  int64_t spin_ns() const { return spin_ns_; }

  /// Calls f(worker) for worker = 0 .. threads() - 1 at once, each in its thread, and returns when all have returned.
  /// Denormals are flushed to zero inside; the caller's mode is put back. Allocates nothing. The first exception of f
  /// is rethrown here; f must not throw between two barriers, since the others would wait for it at the next one.
  /// Throws Error [state] after fork in the child, and when called while another run() is active.
  template <class F>
  void run(F&& f) {
    using Callable = std::remove_reference_t<F>;
    run_erased([](void* function, int worker) { (*static_cast<Callable*>(function))(worker); },
               const_cast<void*>(static_cast<const void*>(std::addressof(f))));
  }

  /// Inside run(): all workers must come as often as each other.
  Barrier& barrier() { return barrier_; }

  /// How often run() was entered.
  int64_t entries() const { return entries_.load(std::memory_order_relaxed); }

 private:
  using Function = void (*)(void* function, int worker);
  void run_erased(Function function, void* context);
  void call(int worker) noexcept;
  void serve(int worker);
  void stop() noexcept;

  const int threads_;
  const int64_t spin_ns_;
  const int process_;
  std::atomic<int64_t> entries_{0};
  std::atomic<bool> running_{false};
  std::atomic<bool> failed_{false};
  bool stopping_ = false;
  Function function_ = nullptr;
  void* context_ = nullptr;
  std::exception_ptr failure_;
  Gate started_;
  Gate finished_;
  alignas(64) std::atomic<int> unfinished_{0};
  Barrier barrier_;
  std::vector<std::thread> workers_;
};

}  // namespace brisk
