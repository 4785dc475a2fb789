// Running a block: which thread goes on, what waits for what, what is wrong when nothing can.
#include "simt/block.h"

#include <cstdarg>
#include <cstdio>
#include <utility>

#include "simt/sanitizer.h"

namespace brisk::simt {

constinit thread_local ThreadView* current_thread __attribute__((tls_model("initial-exec"))) = nullptr;
constinit thread_local BlockView* current_block __attribute__((tls_model("initial-exec"))) = nullptr;

Worker& worker() {
  constinit thread_local static Worker* own = nullptr;
  if (!own) own = new Worker;  // for good: its fibers would outlive it
  return *own;
}

uint64_t next_random(uint64_t& state) {
  state += 0x9E3779B97F4A7C15u;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

void Worker::begin(const Launch& launch, void* started, void* ended) {
  launch_ = &launch;
  started_ = started;
  ended_ = ended;
  failed_ = false;
  if (!kThreadSanitizer) return;
  // Made here and not by a thread of a block: making one orders the maker's past before it.
  adopt_os_thread(own_);
  const uint32_t threads = launch.block.x * launch.block.y * launch.block.z;
  for (size_t set = 0; set < identities_.size(); ++set) {
    for (uint32_t i = 0; i < threads; ++i) {
      if (identities_[set][i]) continue;
      identities_[set][i] = new_fiber(fibers_.size(), &fiber_main);
      fibers_.push_back(identities_[set][i]);
      char name[48];
      std::snprintf(name, sizeof name, "CUDA thread %u of an %s block", i, set == 0 ? "even" : "odd");
      name_fiber(*identities_[set][i], name);
    }
  }
}

bool Worker::run_block(uint64_t number) {
  start_block(number);
  current_block = &view_;
  release(started_);  // the host's past, and the launches before, are seen by the block's threads
  running_ = next_thread();
  Fiber& first = fiber_for(*running_);
  running_->state = State::running;
  switch_fiber(own_, first);
  current_thread = nullptr;
  current_block = nullptr;
  if (failed_) rearm_fibers();
  return !failed_;
}

void Worker::start_block(uint64_t number) {
  const dim3 grid = launch_->grid, block = launch_->block;
  parity_ ^= 1;
  size_ = block.x * block.y * block.z;
  exited_ = next_unstarted_ = 0;
  first_ready_ = ready_count_ = 0;
  random_ = config().seed * 0x2545F4914F6CDD1Du + number + 1;
  ++statistics.blocks;
  shared.clear(launch_->shared_bytes);
  view_.index = {static_cast<unsigned>(number % grid.x), static_cast<unsigned>(number / grid.x % grid.y),
                 static_cast<unsigned>(number / grid.x / grid.y)};
  view_.size = block;
  view_.grid = grid;
  view_.dynamic_shared = shared.dynamic();
  barrier.arrived = barrier.phase = 0;
  barrier.waiting.clear();
  for (uint32_t i = 0; i * 32 < size_; ++i) {
    const uint32_t lanes = size_ - i * 32;
    warps_[i].born = warps_[i].alive = lanes >= 32 ? ~0u : (1u << lanes) - 1;
    warps_[i].used = 0;
  }
  for (uint32_t i = 0; i < size_; ++i) {
    Thread& one = thread(i);
    one.index = {i % block.x, i / block.x % block.y, i / block.x / block.y};
    one.lane = i % 32;
    one.number = i;
    one.warp = i / 32;
    one.state = State::unstarted;
    one.fiber = nullptr;
    one.copies.clear();
    one.copy_group = 0;
    one.copies_at_once = config().seed >= 2 && next_random(random_) % 2 == 1;
    unstarted_[i] = config().seed == 1 ? size_ - 1 - i : i;
  }
}

void Worker::fiber_main() {
  fiber_entered();
  Worker& self = worker();
  self.run_threads(*self.running_->fiber);
}

// Threads that never wait follow each other on one stack, without a switch.
void Worker::run_threads(Fiber& self) {
  for (;;) {
    current_thread = running_;
    ++statistics.threads;
    acquire(started_);
    launch_->call(launch_->bound.get());
    exit_thread();
    Thread* next = next_thread();
    if (!next && exited_ != size_) fail("deadlock: all threads that are left wait");
    if (!kThreadSanitizer && next && next->state == State::unstarted) {
      next->state = State::running;
      next->fiber = &self;
      running_ = next;
      continue;
    }
    if (!kThreadSanitizer) idle_.push_back(&self);
    Fiber* to = &own_;
    if (next) {
      to = next->state == State::unstarted ? &fiber_for(*next) : next->fiber;
      next->state = State::running;
      running_ = next;
    }
    switch_fiber(self, *to);
  }
}

void Worker::exit_thread() {
  Thread& thread = *running_;
  thread.state = State::exited;
  ++exited_;
  release(ended_);
  for (const PendingCopy& pending : thread.copies) allow(pending.copy.shared, pending.copy.bytes);
  warps_[thread.warp].alive &= ~(1u << thread.lane);
  lane_exited(*this, thread);
}

Fiber& Worker::fiber_for(Thread& thread) {
  Fiber* fiber;
  if (kThreadSanitizer) {
    fiber = identities_[parity_][thread.number];
  } else if (!idle_.empty()) {
    fiber = idle_.back();
    idle_.pop_back();
  } else {
    fiber = new_fiber(fibers_.size(), &fiber_main);
    fibers_.push_back(fiber);
  }
  thread.fiber = fiber;
  return *fiber;
}

// In order, threads start one after the other and those that waited go on in the order in which they became ready.
Thread* Worker::next_thread() {
  const uint32_t unstarted = size_ - next_unstarted_;
  if (unstarted + ready_count_ == 0) return nullptr;
  const uint64_t seed = config().seed;
  if (seed >= 2) {
    const uint64_t pick = next_random(random_) % (unstarted + ready_count_);
    if (pick < unstarted) {
      std::swap(unstarted_[next_unstarted_], unstarted_[next_unstarted_ + pick]);
      return &thread(unstarted_[next_unstarted_++]);
    }
    std::swap(ready(0), ready(pick - unstarted));
  } else if (unstarted > 0) {
    return &thread(unstarted_[next_unstarted_++]);
  } else if (seed == 1) {
    return &thread(ready(--ready_count_));
  }
  Thread* first = &thread(ready(0));
  first_ready_ = (first_ready_ + 1) % kMaxThreads;
  --ready_count_;
  return first;
}

void Worker::make_ready(Thread& thread) {
  if (thread.state != State::waiting) return;
  thread.state = State::ready;
  ready(ready_count_++) = thread.number;
}

void Worker::wait(const char* operation, uint32_t mask, Site site) {
  Thread& self = *running_;
  self.state = State::waiting;
  self.waits_in = operation;
  self.wait_mask = mask;
  self.wait_site = site;
  release(ended_);  // in case the block fails and this thread never goes on
  Thread* next = next_thread();
  if (!next) fail("deadlock: no thread of the block can go on");
  Fiber* to = next->state == State::unstarted ? &fiber_for(*next) : next->fiber;
  next->state = State::running;
  running_ = next;
  if (next == &self) return;
  switch_fiber(*self.fiber, *to);
  current_thread = &self;
}

void Worker::abandon() {
  failed_ = true;
  release(ended_);
  for (uint32_t i = 0; i < size_; ++i) {
    for (const PendingCopy& pending : thread(i).copies) allow(pending.copy.shared, pending.copy.bytes);
  }
  switch_fiber(*running_->fiber, own_);
  __builtin_unreachable();
}

void Worker::rearm_fibers() {
  for (Fiber* fiber : fibers_) restart(*fiber, &fiber_main);
  if (!kThreadSanitizer) idle_ = fibers_;
}

namespace {

const char* name(State state) {
  switch (state) {
    case State::unstarted:
      return "not started";
    case State::ready:
      return "ready";
    case State::waiting:
      return "waiting";
    case State::running:
      return "running";
    case State::exited:
      return "exited";
  }
  return "";
}

bool does_the_same(const Thread& a, const Thread& b) {
  if (a.state != b.state) return false;
  return a.state != State::waiting ||
         (a.waits_in == b.waits_in && a.wait_site.line == b.wait_site.line && a.wait_mask == b.wait_mask);
}

__attribute__((format(printf, 3, 4))) void append(char*& out, const char* end, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = std::vsnprintf(out, static_cast<size_t>(end - out), format, arguments);
  va_end(arguments);
  if (length > 0) out += length < end - out ? length : end - out - 1;
}

}  // namespace

void Worker::describe(char*& out, const char* end) {
  const uint3 here = running_->index, block = view_.index;
  append(out, end, "  in thread (%u,%u,%u) of block (%u,%u,%u), grid (%u,%u,%u), %u threads a block\n", here.x, here.y,
         here.z, block.x, block.y, block.z, view_.grid.x, view_.grid.y, view_.grid.z, size_);
  append(out, end, "  launched at %s:%d, seed %llu\n", launch_->site.file, launch_->site.line,
         static_cast<unsigned long long>(config().seed));
  for (uint32_t i = 0, past; i < size_; i = past) {
    const Thread& first = thread(i);
    for (past = i + 1; past < size_ && does_the_same(first, thread(past)); ++past) {
    }
    append(out, end, "  threads %u to %u: %s", i, past - 1, name(first.state));
    if (first.state == State::waiting) {
      append(out, end, " in %s at %s:%d", first.waits_in, first.wait_site.file, first.wait_site.line);
      if (first.wait_mask) append(out, end, ", mask 0x%08x", first.wait_mask);
    }
    append(out, end, "\n");
  }
}

}  // namespace brisk::simt
