// What kernels, compiled with whatever sanitizer is asked for, and the emulation itself, which never is, know of each
// other.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>

namespace brisk::simt {

/// A line of a kernel or of its launch, as reports name it.
struct Site {
  const char* file;
  int line;

  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return {file, line}; }
};

/// The CUDA thread that runs now: threadIdx and its place in the warp.
struct ThreadView {
  uint3 index;
  uint32_t lane;
};

/// The block that it belongs to: blockIdx, blockDim, gridDim and the dynamic shared memory.
struct BlockView {
  uint3 index;
  dim3 size;
  dim3 grid;
  unsigned char* dynamic_shared;
};

// Null while no kernel runs on this OS thread.
extern constinit thread_local ThreadView* current_thread __attribute__((tls_model("initial-exec")));
extern constinit thread_local BlockView* current_block __attribute__((tls_model("initial-exec")));

// ---- called by kernels ----

/// What lanes of a warp do together once all of them have come: values[lane] is what each brought, `lanes` who is
/// there.
struct WarpOperation {
  const char* name;
  void (*run)(void* const values[32], uint32_t lanes);  ///< null: they only meet
  bool orders_memory;                                   ///< what was written before is seen after
  bool needs_whole_warp;                                ///< .sync.aligned
};
void warp_collective(uint32_t mask, const WarpOperation& operation, void* value, Site site);
extern const WarpOperation kWarpBarrier;

/// __syncthreads
void block_barrier(Site site);

/// The static shared array of this key (one for each variable of the source), made at its first use in a block: NaN in
/// each byte, with a gap behind it that may not be touched.
void* shared_array(const void* key, size_t bytes, const char* name);
/// Whether these bytes lie in the block's shared memory.
bool in_shared_memory(const void* address, size_t bytes);

/// A cp.async: `valid_bytes` of `bytes` are copied, the rest is zero.
struct AsyncCopy {
  void* shared;
  const void* global;
  uint32_t bytes;
  uint32_t valid_bytes;
};
/// Whether this thread's copies are done when issued or, the other extreme, when waited for.
bool copies_at_once();
void remember_copy(const AsyncCopy& copy);
void commit_copies();
/// Calls perform for the remembered copies of all but the youngest `groups_left` groups, oldest first.
void wait_for_copies(uint32_t groups_left, void (*perform)(const AsyncCopy&));

/// Orders this thread's memory accesses with those of all threads that call it.
void fence();
/// Counts the bank conflicts of one ldmatrix of eight 16-byte rows: `extra` accesses beyond the one it should take.
void count_ldmatrix_phase(int extra);

/// Reports an error of the running kernel, with the state of its block, and ends the program or, with
/// config().abort_on_error off, the launch.
[[noreturn]] void fail(const char* format, ...) __attribute__((format(printf, 1, 2)));

// ---- called by launch() and by tests ----

/// A launch with its arguments bound.
struct Launch {
  void (*call)(void* bound);  ///< runs the kernel once, for the current thread
  std::shared_ptr<void> bound;
  dim3 grid;
  dim3 block;
  size_t shared_bytes;
  Site site;
  size_t parameter_bytes;
};
/// Puts it into the stream: what launch() does.
cudaError_t enqueue_launch(cudaStream_t stream, const Launch& launch);
/// Runs it now.
cudaError_t run_grid(const Launch& launch);

/// Defaults come from the environment.
struct Config {
  uint64_t seed = 0;  ///< SIMT_SEED. 0: in order, at once; 1: in reverse, as late as possible; above: at random
  int workers = 1;    ///< SIMT_WORKERS. OS threads that run blocks; one under ThreadSanitizer and when traced
  bool abort_on_error = true;  ///< off: the launch fails with cudaErrorLaunchFailure, last_error() has the report
};
Config& config();
const char* last_error();

/// Counted since the program began.
struct Stats {
  int64_t blocks = 0;
  int64_t threads = 0;
  int64_t ldmatrix_phases = 0;     ///< eight rows of 16 bytes each
  int64_t ldmatrix_conflicts = 0;  ///< accesses that these took beyond one each
};
Stats& stats();

}  // namespace brisk::simt
