// A worker: an OS thread that runs blocks, one at a time, the block's threads as fibers. Internal to the emulation.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "simt/core.h"
#include "simt/fiber.h"

namespace brisk::simt {

inline constexpr uint32_t kMaxThreads = 1024;

enum class State : uint8_t { unstarted, ready, waiting, running, exited };

struct PendingCopy {
  AsyncCopy copy;
  uint32_t group;
};

/// One thread of the block.
struct Thread : ThreadView {
  uint32_t number = 0;  ///< in the block, x fastest
  uint32_t warp = 0;
  State state = State::unstarted;
  Fiber* fiber = nullptr;
  const char* waits_in = "";
  uint32_t wait_mask = 0;  ///< 0: not a warp's operation
  Site wait_site{};
  std::vector<PendingCopy> copies;
  uint32_t copy_group = 0;  ///< the one that is open
  bool copies_at_once = false;
};

/// Lanes of a warp that meet in one operation.
struct WarpGroup {
  uint32_t mask;
  uint32_t arrived;
  const WarpOperation* operation;
  Site site;
  void* order;  ///< what ThreadSanitizer orders memory by; null: the operation orders none
  void* values[32];
};

struct Warp {
  uint32_t born;                    ///< lanes that the block has
  uint32_t alive;                   ///< lanes that have not exited
  uint32_t used;                    ///< which groups have lanes that wait
  std::array<WarpGroup, 8> groups;  ///< disjoint masks
};

struct Barrier {
  uint32_t arrived = 0;
  Site site{};
  uint32_t phase = 0;
  std::vector<Thread*> waiting;
};

/// The shared memory of a block: static arrays from the bottom with gaps between them, the dynamic part at the top.
class SharedMemory {
 public:
  static constexpr size_t kMostBytes = 232448;  ///< 227 KiB, the most of any device
  static constexpr size_t kMostStaticBytes = 48 * 1024;

  SharedMemory() { arrays_.reserve(64); }
  ~SharedMemory();
  /// Empty but for the dynamic part, all NaN.
  void clear(size_t dynamic_bytes);
  unsigned char* dynamic() const { return window_ + kWindow - dynamic_span(); }
  void* array(const void* key, size_t bytes, const char* name);
  bool contains(const void* address, size_t bytes) const;
  /// The n-th object of this block for ThreadSanitizer to order memory by; used in turn.
  void* next_order() { return orders_ + 8 * (next_order_++ % kOrders); }
  void* barrier_order(uint32_t phase) { return orders_ + 8 * (kOrders + phase % 2); }

 private:
  static constexpr size_t kWindow = 256 * 1024;
  static constexpr size_t kOrders = 4096;
  static constexpr size_t kGap = 64;
  struct Array {
    const void* key;
    void* memory;
  };

  size_t dynamic_span() const { return (dynamic_bytes_ + 1023) / 1024 * 1024; }
  void map();

  unsigned char* window_ = nullptr;
  unsigned char* orders_ = nullptr;
  size_t dynamic_bytes_ = 0;
  size_t next_ = 0;
  size_t static_bytes_ = 0;
  size_t next_order_ = 0;
  std::vector<Array> arrays_;
};

class Worker {
 public:
  Worker() { barrier.waiting.reserve(kMaxThreads); }
  /// What a launch needs once on each worker. started, ended: what ThreadSanitizer orders it by, before and after.
  void begin(const Launch& launch, void* started, void* ended);
  /// False: the block failed and was left where it was.
  bool run_block(uint64_t number);

  Thread& thread(uint32_t number) { return threads_[parity_][number]; }
  Thread& running() { return *running_; }
  Warp& warp(uint32_t number) { return warps_[number]; }
  uint32_t alive() const { return size_ - exited_; }
  uint32_t exited() const { return exited_; }
  void wait(const char* operation, uint32_t mask, Site site);
  void make_ready(Thread& thread);
  /// Leaves the block at once, from within it.
  [[noreturn]] void abandon();
  /// What each thread of the block is doing, for reports.
  void describe(char*& out, const char* end);

  SharedMemory shared;
  Barrier barrier;
  Stats statistics;

 private:
  static void fiber_main();
  void start_block(uint64_t number);
  void run_threads(Fiber& self);
  void exit_thread();
  Thread* next_thread();
  Fiber& fiber_for(Thread& thread);
  uint32_t& ready(size_t i) { return ready_[(first_ready_ + i) % kMaxThreads]; }
  void rearm_fibers();

  Fiber own_;                   // the OS thread's stack
  std::vector<Fiber*> fibers_;  // all
  std::vector<Fiber*> idle_;
  // Under ThreadSanitizer each thread has a fiber of its own in even blocks and one in odd blocks: what two blocks do
  // to the same memory is a race, and one fiber cannot race with itself.
  std::array<std::array<Fiber*, kMaxThreads>, 2> identities_{};
  std::array<std::array<Thread, kMaxThreads>, 2> threads_;
  uint32_t parity_ = 0;
  std::array<Warp, kMaxThreads / 32> warps_;
  BlockView view_{};
  const Launch* launch_ = nullptr;
  void* started_ = nullptr;
  void* ended_ = nullptr;
  Thread* running_ = nullptr;
  uint32_t size_ = 0;
  uint32_t exited_ = 0;
  std::array<uint32_t, kMaxThreads> unstarted_;  // from next_unstarted_ on
  uint32_t next_unstarted_ = 0;
  // Rings and reserved vectors: what grew while a block runs, ThreadSanitizer would take for a race between its
  // threads.
  std::array<uint32_t, kMaxThreads> ready_;  // a ring of ready_count_ from first_ready_ on
  size_t first_ready_ = 0;
  size_t ready_count_ = 0;
  uint64_t random_ = 0;
  bool failed_ = false;
};

/// The worker of this OS thread.
Worker& worker();
/// The next number of a sequence (SplitMix64).
uint64_t next_random(uint64_t& state);
/// An operation of the warp has lost a lane for good: completes it, or says what is wrong.
void lane_exited(Worker& worker, Thread& thread);

}  // namespace brisk::simt
