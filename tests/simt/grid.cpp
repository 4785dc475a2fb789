// Running a grid: the order of its blocks, the workers that share them, and what happens when a block fails.
#include <atomic>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <numeric>
#include <thread>

#include "simt/block.h"
#include "simt/sanitizer.h"
#include "simt/touched_bytes.h"

extern "C" void __sanitizer_print_stack_trace() __attribute__((weak));

namespace brisk::simt {
namespace {

std::mutex run_mutex;  // one grid at a time
std::mutex error_mutex;
char error_text[8192];
std::atomic<bool> grid_failed{false};
Stats total;

uint64_t number_from(const char* variable, uint64_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::strtoull(text, nullptr, 0) : otherwise;
}

/// The blocks of a grid in the order of the schedule, handed to whoever asks.
class Blocks {
 public:
  explicit Blocks(uint64_t count) : count_(count) {
    uint64_t random = seed_;
    if (seed_ >= 2) step_ = next_random(random) % 1000003 + 1;
    while (std::gcd(step_, count_) != 1) ++step_;  // then its multiples reach each block once
  }

  bool next(uint64_t& block) {
    const uint64_t i = handed_out_.fetch_add(1, std::memory_order_relaxed);
    if (i >= count_ || grid_failed.load(std::memory_order_relaxed)) return false;
    block = seed_ == 0 ? i : seed_ == 1 ? count_ - 1 - i : (i * step_ + seed_) % count_;
    return true;
  }

 private:
  uint64_t count_;
  uint64_t seed_ = config().seed;
  uint64_t step_ = 1;
  std::atomic<uint64_t> handed_out_{0};
};

struct Job {
  const Launch& launch;
  Blocks blocks;
  char started[8];
  char ended[8];
};

void work(Job& job) {
  Worker& self = worker();
  self.begin(job.launch, job.started, job.ended);
  uint64_t block = 0;
  while (job.blocks.next(block) && self.run_block(block)) {
  }
  const std::lock_guard lock(error_mutex);
  total.blocks += self.statistics.blocks;
  total.threads += self.statistics.threads;
  total.ldmatrix_phases += self.statistics.ldmatrix_phases;
  total.ldmatrix_conflicts += self.statistics.ldmatrix_conflicts;
  self.statistics = {};
}

/// OS threads beside the calling one; they are kept, for fibers cannot move.
class Helpers {
 public:
  void run(Job& job, int helpers) {
    std::unique_lock lock(mutex_);
    for (; threads_ < helpers; ++threads_) std::thread([this, number = threads_] { serve(number); }).detach();
    job_ = &job;
    wanted_ = busy_ = helpers;
    ++jobs_;
    changed_.notify_all();
    lock.unlock();
    work(job);
    lock.lock();
    changed_.wait(lock, [&] { return busy_ == 0; });
  }

 private:
  void serve(int number) {
    std::unique_lock lock(mutex_);
    for (uint64_t seen = 0;;) {
      changed_.wait(lock, [&] { return jobs_ != seen; });
      seen = jobs_;
      if (number >= wanted_) continue;
      Job& job = *job_;
      lock.unlock();
      work(job);
      lock.lock();
      if (--busy_ == 0) changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Job* job_ = nullptr;
  uint64_t jobs_ = 0;
  int wanted_ = 0;
  int busy_ = 0;
  int threads_ = 0;
};

}  // namespace

Config& config() {
  static Config config{number_from("SIMT_SEED", 0), static_cast<int>(number_from("SIMT_WORKERS", 1)), true};
  return config;
}

Stats& stats() { return total; }

const char* last_error() { return error_text; }

void fail(const char* format, ...) {
  {
    const std::lock_guard lock(error_mutex);
    char* out = error_text;
    const char* end = error_text + sizeof error_text;
    out += std::snprintf(out, sizeof error_text, "simt: ");
    va_list arguments;
    va_start(arguments, format);
    out += std::vsnprintf(out, static_cast<size_t>(end - out) / 2, format, arguments);
    va_end(arguments);
    out += std::snprintf(out, static_cast<size_t>(end - out), "\n");
    if (current_thread) worker().describe(out, end);
  }
  if (config().abort_on_error || !current_thread) {
    std::fputs(error_text, stderr);
    if (__sanitizer_print_stack_trace) __sanitizer_print_stack_trace();
    std::abort();
  }
  grid_failed = true;
  worker().abandon();
}

cudaError_t run_grid(const Launch& launch) {
  const std::lock_guard lock(run_mutex);
  grid_failed = false;
  const uint64_t blocks = uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z;
  Job job{launch, Blocks(blocks), {}, {}};
  const int helpers = kThreadSanitizer || kTraced ? 0 : config().workers - 1;
  begin_trace(launch.site);
  if (helpers > 0 && blocks > 1) {
    static Helpers* pool = new Helpers;
    pool->run(job, helpers);
  } else {
    work(job);
  }
  end_trace();
  acquire(job.ended);
  return grid_failed ? cudaErrorLaunchFailure : cudaSuccess;
}

}  // namespace brisk::simt
