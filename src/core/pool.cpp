// The thread pool.
#include "core/pool.h"

#include <unistd.h>

#include <system_error>

#include "brisk/error.h"
#include "core/denormals.h"
#include "core/machine.h"
#include "core/signals.h"
#include "core/text.h"

namespace brisk {
namespace {

int checked_threads(int threads) {
  if (threads < 0 || threads > Pool::kMaximumThreads) {
    throw Error(ErrorCode::option, cat("threads = ", threads),
                cat("must be 0 (all allowed processors) to ", Pool::kMaximumThreads));
  }
  return threads == 0 ? allowed_threads() : threads;
}

}  // namespace

Pool::Pool(int threads)
    : threads_(checked_threads(threads)),
      spin_ns_(threads_ > allowed_threads() ? kOversubscribedSpinNs : kSpinNs),
      process_(getpid()),
      barrier_(threads_, spin_ns_) {
  workers_.reserve(static_cast<size_t>(threads_ - 1));
  const SignalsBlocked blocked;
  for (int worker = 1; worker < threads_; ++worker) {
    try {
      workers_.emplace_back([this, worker] { serve(worker); });
    } catch (const std::system_error& error) {
      stop();
      throw Error(ErrorCode::state, cat("threads = ", threads_),
                  cat("the system did not start worker ", worker, ": ", error.what(), "; ask for fewer"));
    }
  }
}

Pool::~Pool() {
  if (getpid() == process_) {
    stop();
  } else {
    // After fork the threads are not in this process: there is nothing to join, and a joinable thread must not die.
    for (std::thread& worker : workers_) new std::thread(std::move(worker));
  }
}

void Pool::stop() noexcept {
  stopping_ = true;
  started_.advance();
  for (std::thread& worker : workers_) worker.join();
}

void Pool::call(int worker) noexcept {
  try {
    function_(context_, worker);
  } catch (...) {
    if (!failed_.exchange(true, std::memory_order_acq_rel)) failure_ = std::current_exception();
  }
}

void Pool::serve(int worker) {
  const FlushDenormals flush;
  uint32_t seen = 0;
  for (;;) {
    started_.wait_while(seen, spin_ns_);
    ++seen;  // run() starts the next round only after this worker has finished the last
    if (stopping_) return;
    call(worker);
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) finished_.advance();
  }
}

void Pool::run_erased(Function function, void* context) {
  if (getpid() != process_) {
    throw Error(ErrorCode::state, "threads",
                "used after fork in the child process, which has no copy of the workers; "
                "create the object after fork");
  }
  if (running_.exchange(true, std::memory_order_acquire)) {
    throw Error(ErrorCode::state, "threads", "run() while another run() is active; one thread at a time");
  }
  entries_.fetch_add(1, std::memory_order_relaxed);
  function_ = function;
  context_ = context;
  {
    const FlushDenormals flush;
    if (threads_ == 1) {
      call(0);
    } else {
      const uint32_t round = finished_.value();
      unfinished_.store(threads_ - 1, std::memory_order_relaxed);
      started_.advance();
      call(0);
      finished_.wait_while(round, spin_ns_);
    }
  }
  std::exception_ptr failure;
  if (failed_.load(std::memory_order_relaxed)) {
    failure = std::move(failure_);
    failure_ = nullptr;
    failed_.store(false, std::memory_order_relaxed);
  }
  running_.store(false, std::memory_order_release);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace brisk
