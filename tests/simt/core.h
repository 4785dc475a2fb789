// Declarations shared by kernel code and the runtime (no inline code: the runtime is built without instrumentation).
#pragma once
#include <cuda_runtime_api.h>
#include <cstddef>
#include <cstdint>
#include <memory>
namespace brisk::simt {
struct Site {
  const char* file;
  int line;
};
struct CpAsync {
  void* dst;
  const void* src;
  uint32_t bytes, valid, group;
};
struct Thread {  // one CUDA thread of the block being run
  uint3 tid;
  uint32_t lin, lane, warp;
  CpAsync* cp;
  uint32_t cp_n, cp_cap, cp_group;
  bool cp_eager;
  // scheduler state
  struct Fiber* fiber;
  uint8_t state;
  const char* wait_op;
  uint32_t wait_mask;
  Site wait_site;
  int wait_val;
};
struct Block {
  uint3 bid;
  dim3 bdim, gdim;
  unsigned char* arena;
  void* dyn;
  size_t dyn_bytes;
};
extern __thread Thread* tl_thr __attribute__((tls_model("initial-exec")));
extern __thread Block* tl_blk __attribute__((tls_model("initial-exec")));

using OpFn = void (*)(void* const io[32], uint32_t arrived);
struct Op {
  const char* name;
  OpFn fn;
  bool memsync, aligned;
};
void warp_collective(uint32_t mask, const Op* op, void* io, Site s);
enum { RED_NONE, RED_COUNT, RED_AND, RED_OR };
int block_barrier(int id, int nthreads, bool wait, int red, int val, Site s);  // nthreads 0 = whole block
void* shared_alloc(const void* key, size_t bytes, size_t align, const char* name);
void cp_grow(Thread*);
void fence();
[[noreturn]] void fail(const char* fmt, ...) __attribute__((format(printf, 1, 2)));

struct LaunchDesc {
  void (*entry)(void*);
  std::shared_ptr<void> args;
  dim3 grid, block;
  size_t smem;
  const char* file;
  int line;
  size_t param_bytes;
};
cudaError_t run_grid(const LaunchDesc&);                      // run now, on the calling thread (+ workers)
cudaError_t enqueue_launch(cudaStream_t, const LaunchDesc&);  // through the emulated stream

struct Config {       // defaults come from the environment: SIMT_SEED, SIMT_WORKERS, SIMT_STACK_KB, SIMT_ON_ERROR
  uint64_t seed = 0;  // 0 in order, 1 reverse, >=2 random schedules (threads, blocks, streams, cp.async completion)
  int workers = 1;    // OS threads running blocks
  bool abort_on_error = true;  // false: launch returns cudaErrorLaunchFailure, last_error() has the report
  bool allow_exited = false;   // true: barriers and warp masks ignore exited threads, as hardware mostly does
};
Config& config();
const char* last_error();
struct Stats {
  unsigned long long threads, blocks, switches, collectives, barriers, ldmatrix_phases, ldmatrix_conflicts;
};
Stats& stats();
extern const Op op_syncwarp;
}  // namespace brisk::simt
