// Loops of one thread that others help with: how the workers of a step share what an operation of the user's asks for.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

#include "core/gate.h"

namespace brisk {

class Team {
 public:
  using Piece = void (*)(void* function, int64_t first, int64_t last);
  /// Into how many pieces a loop over [0, count) is cut, however many help: sizes are even, the larger ones first.
  static constexpr int64_t pieces(int64_t count) { return count < 256 ? count : 256; }
  static constexpr int64_t piece_begin(int64_t index, int64_t count) {
    const int64_t larger = count % pieces(count);
    return index * (count / pieces(count)) + (index < larger ? index : larger);
  }

  /// Before the threads come: help() will wait for loops.
  void open(int64_t spin_ns);
  /// One thread's loop over [0, count), cut by count alone; returns when all pieces are done and no helper is inside.
  /// The first exception of a piece is rethrown, later pieces may then be left out. Inside a piece: runs serially.
  void run(Piece piece, void* function, int64_t count);
  /// After that thread's last loop: helpers leave.
  void close();
  /// Other threads: works on the loops until close().
  void help();

 private:
  void work();

  struct Loop {
    Piece piece = nullptr;
    void* function = nullptr;
    int64_t count = 0;
  };
  Loop loop_;
  int64_t spin_ns_ = kOversubscribedSpinNs;
  std::exception_ptr failure_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> closed_{true};
  std::atomic<bool> running_{false};
  Gate news_;  // a loop has begun, or the team is closed
  Gate left_;  // the last helper has left a loop that takes no more
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<int64_t> inside_{0};  // helpers in the loop; plus kTaking while it takes more
};

}  // namespace brisk
