// Who works on a loop is free; how it is cut is not.
#include "core/team.h"

#include <utility>

namespace brisk {
namespace {

constexpr int64_t kTaking = int64_t{1} << 32;

}  // namespace

void Team::open(int64_t spin_ns) {
  spin_ns_ = spin_ns;
  closed_.store(false, std::memory_order_release);
}

void Team::close() {
  closed_.store(true, std::memory_order_release);
  news_.advance();
}

void Team::run(Piece piece, void* function, int64_t count) {
  if (count <= 0) return;
  if (count == 1 || running_.exchange(true, std::memory_order_acquire)) {
    for (int64_t i = 0; i < pieces(count); ++i) piece(function, piece_begin(i, count), piece_begin(i + 1, count));
    return;
  }
  loop_ = {piece, function, count};
  failed_.store(false, std::memory_order_relaxed);
  next_.store(0, std::memory_order_relaxed);
  inside_.store(kTaking, std::memory_order_release);
  news_.advance();
  work();
  inside_.fetch_sub(kTaking, std::memory_order_acq_rel);
  for (;;) {
    const uint32_t seen = left_.value();
    if (inside_.load(std::memory_order_acquire) == 0) break;
    left_.wait_while(seen, spin_ns_);
  }
  const std::exception_ptr failure = std::exchange(failure_, nullptr);
  running_.store(false, std::memory_order_release);
  if (failure) std::rethrow_exception(failure);
}

void Team::help() {
  for (;;) {
    const uint32_t seen = news_.value();
    if (closed_.load(std::memory_order_acquire)) return;
    bool entered = false;
    for (int64_t inside = inside_.load(std::memory_order_relaxed); inside >= kTaking && !entered;)
      entered = inside_.compare_exchange_weak(inside, inside + 1, std::memory_order_acquire);
    if (entered) {
      work();
      if (inside_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.advance();
    }
    news_.wait_while(seen, spin_ns_);
  }
}

void Team::work() {
  for (int64_t i; (i = next_.fetch_add(1, std::memory_order_relaxed)) < pieces(loop_.count);) {
    if (failed_.load(std::memory_order_relaxed)) return;
    try {
      loop_.piece(loop_.function, piece_begin(i, loop_.count), piece_begin(i + 1, loop_.count));
    } catch (...) {
      if (!failed_.exchange(true, std::memory_order_acq_rel)) failure_ = std::current_exception();
    }
  }
}

}  // namespace brisk
