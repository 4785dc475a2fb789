// SIMT-on-CPU runtime: runs the threads of a block as fibers (Boost.Context fcontext), blocks on OS workers.
// Built WITHOUT sanitizer instrumentation in every flavour; -DRT_ASAN / -DRT_TSAN add the sanitizers' fiber API.
#include <sys/mman.h>
#include <atomic>
#include <condition_variable>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>
#include "simt/core.h"
#ifdef RT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define POISON(p, n) __asan_poison_memory_region(p, n)
#define UNPOISON(p, n) __asan_unpoison_memory_region(p, n)
#else
#define POISON(p, n) (void)0
#define UNPOISON(p, n) (void)0
#endif
#ifdef RT_TSAN
#include <sanitizer/tsan_interface.h>
#endif
extern "C" void __sanitizer_print_stack_trace() __attribute__((weak));

namespace brisk::simt {
// Saves the callee-saved registers and the stack pointer of the running fiber, and goes on with another.
extern "C" void brisk_simt_switch_stack(void** save, void* load);
asm(R"(
.text
.globl brisk_simt_switch_stack
.type brisk_simt_switch_stack, @function
brisk_simt_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size brisk_simt_switch_stack, .-brisk_simt_switch_stack
)");
__thread Thread* tl_thr __attribute__((tls_model("initial-exec")));
__thread Block* tl_blk __attribute__((tls_model("initial-exec")));

struct Fiber {
  void* sp;
  char* stk;
  size_t sz, colour;
  void* fake;
  void* tsan;
  Thread* thr;
  Fiber *next_idle, *next_all;
};

namespace {
constexpr int MAXT = 1024, NBAR = 16, NGRP = 8, NSTATIC = 64, NSYNC = 4096;
constexpr size_t WINDOW = 256 * 1024, ARENA = WINDOW + 1024,
                 /* shared addresses fit 18 bits, as wgmma descriptors need */ STATIC_MAX = 48 * 1024,
                 SMEM_MAX = 232448;
enum : uint8_t { UNSTARTED, READY, WAITING, RUNNING, DONE };

Config make_config() {
  Config c;
  const char* e;
  if ((e = getenv("SIMT_SEED"))) c.seed = strtoull(e, nullptr, 0);
  if ((e = getenv("SIMT_WORKERS"))) c.workers = atoi(e);
  if ((e = getenv("SIMT_ON_ERROR"))) c.abort_on_error = strcmp(e, "status") != 0;
  return c;
}
size_t stack_bytes() {
  const char* e = getenv("SIMT_STACK_KB");
  return size_t(e ? atoi(e) : 256) * 1024;
}

struct Group {
  uint32_t mask, arrived;
  const Op* op;
  Site site;
  void* sync;
  void* io[32];
};
struct Warp {
  uint32_t full, alive, used;
  Group g[NGRP];
};  // used: bit per group in flight
struct Barrier {
  int arrived, expect, red, acc;
  Site site;
  uint32_t parity;
  Thread* waiters[MAXT];
  int nwait;
  int result[2];
};
struct StaticVar {
  const void* key;
  void* p;
  size_t bytes;
};

struct Worker {
  Fiber main{};
  Fiber* cur = nullptr;
  Fiber* prev = nullptr;
  Fiber *idle = nullptr, *all = nullptr;
  Fiber* set[2][MAXT] = {};
  int parity = 0;
  Thread thr[2][MAXT] = {};
  Thread* T = nullptr;
  Block blk{};
  const LaunchDesc* L = nullptr;
  void* launch_sync[2] = {};
  uint32_t n = 0, next_unstarted = 0, done = 0;
  uint32_t order[MAXT];
  uint32_t ready[MAXT], rhead = 0, rcount = 0;
  Warp warp[32];
  Barrier bar[NBAR];
  StaticVar st[NSTATIC];
  int nst = 0;
  size_t st_bytes = 0, bump = 0;
  unsigned char* arena = nullptr;
  unsigned char* sync = nullptr;
  uint32_t nsync = 0;
  uint64_t rng = 1;
  size_t nfib = 0;
  bool failed = false;
  Stats s{};
};
__thread Worker* W;
char g_err[8192];
std::mutex g_err_mu;
std::atomic<bool> g_failed{false};
Stats g_stats;
std::mutex g_run_mu;

void raw_fill(void* p, size_t n) {
  asm volatile("rep stosb" : "+D"(p), "+c"(n) : "a"(0xFF) : "memory");
}  // memset would be intercepted by TSan/ASan
uint64_t gcd(uint64_t a, uint64_t b) {
  while (b) {
    uint64_t t = a % b;
    a = b;
    b = t;
  }
  return a;
}
uint64_t rnd(uint64_t& x) {
  x += 0x9E3779B97F4A7C15ull;
  uint64_t z = x;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

void jump(Fiber* from, Fiber* to) {
  ++W->s.switches;
  W->cur = to;
#ifdef RT_TSAN
  __tsan_switch_to_fiber(to->tsan, __tsan_switch_to_fiber_no_sync);
#endif
#ifdef RT_ASAN
  __sanitizer_start_switch_fiber(&from->fake, to->stk, to->sz);
#endif
  W->prev = from;
  brisk_simt_switch_stack(&from->sp, to->sp);
#ifdef RT_ASAN
  const void* b;
  size_t z;
  __sanitizer_finish_switch_fiber(from->fake, &b, &z);
#endif
}
void fiber_main();
void arm(Fiber* f) {
  UNPOISON(f->stk, f->sz);
  void** top = reinterpret_cast<void**>(f->stk + f->sz - f->colour) - 8;
  for (int i = 0; i < 8; ++i) top[i] = nullptr;
  top[6] = reinterpret_cast<void*>(&fiber_main);  // where the first switch returns to
  f->sp = top;
  f->fake = nullptr;
#ifdef RT_TSAN
  if (f->tsan) __tsan_destroy_fiber(f->tsan);
  f->tsan = __tsan_create_fiber(0);
#endif
}
Fiber* new_fiber() {
  static const size_t sz = stack_bytes();
  char* m = static_cast<char*>(
      mmap(nullptr, sz + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (m == MAP_FAILED) {
    perror("simt: mmap stack");
    abort();
  }
  mprotect(m, 4096, PROT_NONE);  // guard page: kernel stack overflow = SEGV here, not corruption
  Fiber* f = new Fiber{};
  f->stk = m + 4096;
  f->sz = sz;
  f->colour = W->nfib++ * 448 % 4096; /* else all stacks share the same cache sets */
  f->next_all = W->all;
  W->all = f;
  arm(f);
  return f;
}
Fiber* fiber_for(Thread* t) {  // give an unstarted thread a fiber
#ifdef RT_TSAN
  Fiber* f = W->set[W->parity][t->lin];  // one identity per thread, alternating between consecutive blocks
#else
  Fiber* f = W->idle;
  if (f)
    W->idle = f->next_idle;
  else
    f = new_fiber();
#endif
  f->thr = t;
  t->fiber = f;
  return f;
}
Thread* pick() {  // next thread to run: unstarted or ready
  Worker& w = *W;
  uint64_t seed = config().seed;
  uint32_t un = w.n - w.next_unstarted;
  if (!un && !w.rcount) return nullptr;
  bool start;
  uint32_t i = 0;
  if (seed < 2)
    start = un != 0;
  else {
    uint64_t r = rnd(w.rng) % (un + w.rcount);
    start = r < un;
    i = uint32_t(start ? r : r - un);
  }
  if (start) {
    if (seed >= 2) {
      uint32_t a = w.next_unstarted, b = a + i, t = w.order[a];
      w.order[a] = w.order[b];
      w.order[b] = t;
    }
    return &w.T[w.order[w.next_unstarted++]];
  }
  auto at = [&](uint32_t k) -> uint32_t& { return w.ready[(w.rhead + k) % MAXT]; };
  if (seed >= 2) {
    uint32_t t = at(0);
    at(0) = at(i);
    at(i) = t;
  }
  if (seed == 1) {
    --w.rcount;
    return &w.T[at(w.rcount)];
  }
  Thread* t = &w.T[at(0)];
  w.rhead = (w.rhead + 1) % MAXT;
  --w.rcount;
  return t;
}
void make_ready(Thread* t) {
  if (t->state == WAITING) {
    t->state = READY;
    W->ready[(W->rhead + W->rcount++) % MAXT] = t->lin;
  }
}

void describe(char*& o, char* e) {
  Worker& w = *W;
  auto put = [&](const char* f, auto... a) {
    int k = snprintf(o, size_t(e - o), f, a...);
    if (k > 0) o += k < e - o ? k : e - o - 1;
  };
  put("  block (%u,%u,%u) of grid (%u,%u,%u), %u threads, launched at %s:%d, seed %llu\n", w.blk.bid.x, w.blk.bid.y,
      w.blk.bid.z, w.blk.gdim.x, w.blk.gdim.y, w.blk.gdim.z, w.n, w.L->file, w.L->line,
      (unsigned long long)config().seed);
  static const char* names[] = {"not started", "ready", "waiting", "running", "exited"};
  for (uint32_t i = 0, j; i < w.n; i = j) {  // runs of threads in the same state
    Thread& a = w.T[i];
    for (j = i + 1; j < w.n; ++j) {
      Thread& b = w.T[j];
      if (b.state != a.state ||
          (a.state == WAITING &&
           (b.wait_op != a.wait_op || b.wait_site.line != a.wait_site.line || b.wait_mask != a.wait_mask)))
        break;
    }
    put("  threads %u..%u: %s", i, j - 1, names[a.state]);
    if (a.state == WAITING) {
      put(" in %s at %s:%d", a.wait_op, a.wait_site.file, a.wait_site.line);
      if (a.wait_mask) put(" mask 0x%08x", a.wait_mask);
    }
    put("%s", "\n");
  }
}
// Block the running thread until make_ready(it).
void wait_here(Thread* t, const char* op, uint32_t mask, Site s) {
  t->state = WAITING;
  t->wait_op = op;
  t->wait_mask = mask;
  t->wait_site = s;
  Thread* nx = pick();
  if (!nx) fail("deadlock: no thread of the block can run");
  Fiber* f = nx->state == UNSTARTED ? fiber_for(nx) : nx->fiber;
  nx->state = RUNNING;
  if (nx != t) jump(t->fiber, f);
  tl_thr = t;
}
void tsan_release(void* p) {
  (void)p;
#ifdef RT_TSAN
  __tsan_release(p);
#endif
}
void tsan_acquire(void* p) {
  (void)p;
#ifdef RT_TSAN
  __tsan_acquire(p);
#endif
}
void* sync_word() { return W->sync + 8 * (W->nsync++ % NSYNC); }

void complete_group(Warp& wp, Group& g, uint32_t wi) {
  if (g.op->aligned && g.arrived != 0xffffffffu)
    fail("%s needs all 32 lanes, but only 0x%08x take part (%s:%d)", g.op->name, g.arrived, g.site.file, g.site.line);
  uint32_t gone = g.mask & wp.full & ~wp.alive;
  if (gone && !config().allow_exited)
    fail("%s mask 0x%08x names lanes 0x%08x that have exited (%s:%d)", g.op->name, g.mask, gone, g.site.file,
         g.site.line);
  if (g.op->fn) g.op->fn(g.io, g.arrived);
  wp.used &= ~(1u << (&g - wp.g));
  for (uint32_t a = g.arrived; a; a &= a - 1) make_ready(&W->T[wi * 32 + uint32_t(__builtin_ctz(a))]);
}
void complete_barrier(Barrier& b) {
  b.result[b.parity & 1] = b.red == RED_AND ? b.acc == b.arrived : b.red == RED_OR ? b.acc != 0 : b.acc;
  ++W->s.barriers;
  ++b.parity;
  int k = b.nwait;
  b.arrived = b.nwait = b.acc = 0;
  for (int i = 0; i < k; ++i) make_ready(b.waiters[i]);
}
void thread_exit(Thread* t) {
  Worker& w = *W;
  t->state = DONE;
  ++w.done;
  tsan_release(w.launch_sync[1]);
  for (uint32_t i = 0; i < t->cp_n; ++i) UNPOISON(t->cp[i].dst, t->cp[i].bytes);
  Warp& wp = w.warp[t->warp];
  wp.alive &= ~(1u << t->lane);
  for (uint32_t u = wp.used; u; u &= u - 1) {
    Group& g = wp.g[__builtin_ctz(u)];
    if (g.op->aligned && g.mask >> t->lane & 1)
      fail("thread %u exited while its warp waits in %s (%s:%d)", t->lin, g.op->name, g.site.file, g.site.line);
    if (g.arrived == (g.mask & wp.alive)) complete_group(wp, g, t->warp);
  }
  Barrier& b = w.bar[0];
  if (b.arrived && b.expect == 0) {
    if (!config().allow_exited)
      fail("divergent __syncthreads: thread %u exited while %d threads wait at %s:%d", t->lin, b.arrived, b.site.file,
           b.site.line);
    if (b.arrived == int(w.n - w.done)) complete_barrier(b);
  }
}
void fiber_main() {
  Fiber* self = W->cur;
#ifdef RT_ASAN
  const void* b;
  size_t z;
  __sanitizer_finish_switch_fiber(nullptr, &b, &z);
  Fiber* prev = W->prev;
  if (prev == &W->main) {
    prev->stk = const_cast<char*>(static_cast<const char*>(b));
    prev->sz = z;
  }
#endif
  for (;;) {
    Worker& w = *W;
    Thread* t = self->thr;
    tl_thr = t;
    t->state = RUNNING;
    ++w.s.threads;
    tsan_acquire(w.launch_sync[0]);
    w.L->entry(w.L->args.get());
    thread_exit(t);
    Thread* nx = pick();
    if (!nx) {
      if (w.done != w.n) fail("deadlock: every remaining thread waits");
#ifndef RT_TSAN
      self->next_idle = w.idle;
      w.idle = self;
#endif
      jump(self, &w.main);
    } else {
#ifndef RT_TSAN
      if (nx->state == UNSTARTED) {
        self->thr = nx;
        nx->fiber = self;
        continue;
      }  // same stack, no switch
      self->next_idle = w.idle;
      w.idle = self;
#endif
      Fiber* f = nx->state == UNSTARTED ? fiber_for(nx) : nx->fiber;
      nx->state = RUNNING;
      jump(self, f);
    }
  }
}
void run_block(uint64_t lin) {
  Worker& w = *W;
  const LaunchDesc& L = *w.L;
  w.blk.bid = {unsigned(lin % L.grid.x), unsigned(lin / L.grid.x % L.grid.y), unsigned(lin / L.grid.x / L.grid.y)};
  w.blk.bdim = L.block;
  w.blk.gdim = L.grid;
  w.parity ^= 1;
  w.T = w.thr[w.parity];
  w.n = L.block.x * L.block.y * L.block.z;
  w.next_unstarted = w.done = w.rhead = w.rcount = 0;
  w.nst = 0;
  w.st_bytes = 0;
  w.nsync = 0;
  w.rng = config().seed * 0x2545F4914F6CDD1Dull + lin + 1;
  ++w.s.blocks;
#ifdef RT_TSAN  // a fresh mapping per block: munmap drops the old shadow and sync objects, without a happens-before
                // edge
  if (w.arena) munmap(w.arena, ARENA + NSYNC * 8 + NBAR * 16);
  w.arena = static_cast<unsigned char*>(
      mmap(nullptr, ARENA + NSYNC * 8 + NBAR * 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  w.sync = w.arena + ARENA;
#else
  if (!w.arena) {
    w.arena = static_cast<unsigned char*>(aligned_alloc(1024, ARENA));
    w.sync = static_cast<unsigned char*>(malloc(NSYNC * 8 + NBAR * 16));
  }
#endif
  const size_t dyn = (WINDOW - L.smem) & ~size_t(1023);  // dynamic part at the end, 1024-aligned; static grows from 0
  UNPOISON(w.arena, ARENA);
  raw_fill(w.arena + dyn, L.smem);
  POISON(w.arena, ARENA);
  UNPOISON(w.arena + dyn, L.smem);
  w.blk.arena = w.arena;
  w.blk.dyn = w.arena + dyn;
  w.blk.dyn_bytes = L.smem;
  w.bump = 64;
  uint32_t nw = (w.n + 31) / 32;
  for (uint32_t i = 0; i < nw; ++i) {
    uint32_t k = w.n - i * 32;
    w.warp[i].full = w.warp[i].alive = k >= 32 ? ~0u : (1u << k) - 1;
    w.warp[i].used = 0;
  }
  for (Barrier& b : w.bar) b.arrived = b.nwait = b.acc = 0, b.parity = 0;
  uint3 t{0, 0, 0};
  for (uint32_t i = 0; i < w.n; ++i) {
    Thread& x = w.T[i];
    x.tid = t;
    x.lin = i;
    x.lane = i & 31;
    x.warp = i >> 5;
    x.fiber = nullptr;
    x.state = UNSTARTED;
    x.cp_n = x.cp_group = 0;
    x.cp_eager = config().seed >= 2 && (rnd(w.rng) & 1);
    w.order[i] = config().seed == 1 ? w.n - 1 - i : i;
    if (++t.x == L.block.x) {
      t.x = 0;
      if (++t.y == L.block.y) {
        t.y = 0;
        ++t.z;
      }
    }
  }
  tl_blk = &w.blk;
  tsan_release(w.launch_sync[0]);  // host and runtime -> threads of this block; never block -> block
  Thread* first = pick();
  Fiber* f = fiber_for(first);
  first->state = RUNNING;
  jump(&w.main, f);
  tl_thr = nullptr;
  tl_blk = nullptr;
}
void reset_after_failure() {
  Worker& w = *W;
  w.idle = nullptr;  // abandon every fiber of the broken block: re-arm its stack from scratch
  for (Fiber* f = w.all; f; f = f->next_all) {
    arm(f);
#ifndef RT_TSAN
    f->next_idle = w.idle;
    w.idle = f;
#endif
  }
}
struct Job {
  const LaunchDesc* L;
  std::atomic<uint64_t> next;
  uint64_t total;
  void* sync[2];
  uint64_t step;
};
void work(Job& j) {
  if (!W) W = new Worker;
  Worker& w = *W;
  w.L = j.L;
  w.failed = false;
  w.launch_sync[0] = j.sync[0];
  w.launch_sync[1] = j.sync[1];
#ifdef RT_TSAN
  w.main.tsan = __tsan_get_current_fiber();
  uint32_t nt = j.L->block.x * j.L->block.y *
                j.L->block.z;  // create here, not from a CUDA thread: creation is a happens-before edge
  for (auto& st : w.set)
    for (uint32_t i = 0; i < nt; ++i)
      if (!st[i]) {
        st[i] = new_fiber();
        char nm[48];
        snprintf(nm, sizeof nm, "cuda thread %u, %s block", i, &st == &w.set[0] ? "even" : "odd");
        __tsan_set_fiber_name(st[i]->tsan, nm);
      }
#endif
  uint64_t seed = config().seed;
  for (;;) {
    uint64_t i = j.next.fetch_add(1, std::memory_order_relaxed);
    if (i >= j.total || g_failed.load(std::memory_order_relaxed)) break;
    if (seed == 1) i = j.total - 1 - i;
    if (seed >= 2) i = (i * j.step + seed) % j.total;  // step is coprime with total: a permutation
    run_block(i);
    if (w.failed) {
      reset_after_failure();
      break;
    }
  }
}
struct Pool {  // persistent OS workers (fibers must stay on the OS thread that made them)
  std::mutex mu;
  std::condition_variable cv, cv_done;
  Job* job = nullptr;
  uint64_t gen = 0;
  int want = 0, busy = 0, nthreads = 0;
  void run(Job& j, int extra) {
    std::unique_lock<std::mutex> l(mu);
    while (nthreads < extra) {
      int id = nthreads++;
      std::thread([this, id] { loop(id); }).detach();
    }
    job = &j;
    want = busy = extra;
    ++gen;
    cv.notify_all();
    l.unlock();
    work(j);
    l.lock();
    cv_done.wait(l, [&] { return busy == 0; });
  }
  void loop(int id) {
    uint64_t seen = 0;
    std::unique_lock<std::mutex> l(mu);
    for (;;) {
      cv.wait(l, [&] { return gen != seen; });
      seen = gen;
      if (id >= want) continue;
      Job* j = job;
      l.unlock();
      work(*j);
      l.lock();
      if (--busy == 0) cv_done.notify_all();
    }
  }
};
Pool* g_pool = new Pool;
}  // namespace

Config& config() {
  static Config c = make_config();
  return c;
}
const char* last_error() { return g_err; }
Stats& stats() { return tl_thr ? W->s : g_stats; }

void fail(const char* fmt, ...) {
  {
    std::lock_guard<std::mutex> l(g_err_mu);
    char *o = g_err, *e = g_err + sizeof g_err;
    va_list ap;
    va_start(ap, fmt);
    o += snprintf(o, size_t(e - o), "simt: ERROR: ");
    o += vsnprintf(o, size_t(e - o), fmt, ap);
    va_end(ap);
    o += snprintf(o, size_t(e - o), "\n");
    if (tl_thr) {
      o += snprintf(o, size_t(e - o), "  in thread (%u,%u,%u)\n", tl_thr->tid.x, tl_thr->tid.y, tl_thr->tid.z);
      describe(o, e);
    }
  }
  if (config().abort_on_error || !tl_thr) {
    fputs(g_err, stderr);
    if (__sanitizer_print_stack_trace) __sanitizer_print_stack_trace();
    fflush(stdout);
    abort();
  }
  W->failed = true;
  g_failed.store(true);
  for (uint32_t i = 0; i < W->n; ++i)
    for (uint32_t k = 0; k < W->T[i].cp_n; ++k) UNPOISON(W->T[i].cp[k].dst, W->T[i].cp[k].bytes);
  jump(W->cur, &W->main);
  __builtin_unreachable();
}
void warp_collective(uint32_t mask, const Op* op, void* io, Site s) {
  Worker& w = *W;
  Thread* t = tl_thr;
  if (!t) {
    fprintf(stderr, "simt: %s outside a kernel\n", op->name);
    abort();
  }
  Warp& wp = w.warp[t->warp];
  ++w.s.collectives;
  if (!(mask >> t->lane & 1))
    fail("%s at %s:%d: mask 0x%08x does not name the calling lane %u", op->name, s.file, s.line, mask, t->lane);
  Group* g = nullptr;
  for (uint32_t u = wp.used; u; u &= u - 1) {
    Group& c = wp.g[__builtin_ctz(u)];
    if (c.mask == mask) {
      g = &c;
      break;
    }
  }
  if (!g) {
    for (uint32_t u = wp.used; u; u &= u - 1) {
      Group& c = wp.g[__builtin_ctz(u)];
      if (c.mask & mask)
        fail(
            "warp divergence: lane %u calls %s mask 0x%08x at %s:%d while lanes 0x%08x wait in %s mask 0x%08x at %s:%d",
            t->lane, op->name, mask, s.file, s.line, c.arrived, c.op->name, c.mask, c.site.file, c.site.line);
    }
    if (wp.used == (1u << NGRP) - 1) fail("too many warp subgroups");
    g = &wp.g[__builtin_ctz(~wp.used)];
    wp.used |= 1u << (g - wp.g);
    g->mask = mask;
    g->arrived = 0;
    g->op = op;
    g->site = s;
    g->sync = op->memsync ? sync_word() : nullptr;
  } else if (g->op != op ||
             (!op->memsync && (g->site.line != s.line || (g->site.file != s.file && strcmp(g->site.file, s.file)))))
    fail("warp divergence: lane %u calls %s at %s:%d while lanes 0x%08x of its warp wait in %s at %s:%d", t->lane,
         op->name, s.file, s.line, g->arrived, g->op->name, g->site.file, g->site.line);
  g->arrived |= 1u << t->lane;
  g->io[t->lane] = io;
  void* sy = g->sync;
  if (sy) tsan_release(sy);
  if (g->arrived == (mask & wp.alive))
    complete_group(wp, *g, t->warp);
  else
    wait_here(t, op->name, mask, s);
  if (sy) tsan_acquire(sy);
}
int block_barrier(int id, int nthreads, bool wait, int red, int val, Site s) {
  Worker& w = *W;
  Thread* t = tl_thr;
  Barrier& b = w.bar[id];
  const char* nm = id == 0 && !nthreads ? "__syncthreads" : "named barrier";
  if (id == 0 && !nthreads && w.done && !config().allow_exited)
    fail("divergent __syncthreads at %s:%d: %u threads of the block have already exited", s.file, s.line, w.done);
  if (b.arrived == 0) {
    b.site = s;
    b.expect = nthreads;
    b.red = red;
  } else if (b.expect != nthreads || b.red != red)
    fail("barrier %d: called with different counts or kinds (%s:%d and %s:%d)", id, b.site.file, b.site.line, s.file,
         s.line);
  else if (!nthreads && (b.site.line != s.line || (b.site.file != s.file && strcmp(b.site.file, s.file))))
    fail("divergent __syncthreads: thread %u is at %s:%d while %d threads wait at %s:%d", t->lin, s.file, s.line,
         b.arrived, b.site.file, b.site.line);
  void* sy = w.sync + 8 * NSYNC + 16 * id + 8 * (b.parity & 1);
  uint32_t par = b.parity & 1;
  tsan_release(sy);
  ++b.arrived;
  b.acc += red == RED_NONE ? 0 : red == RED_COUNT || red == RED_AND ? val != 0 : val != 0;
  bool last = b.arrived == (nthreads ? nthreads : int(w.n - w.done));
  if (wait && !last) b.waiters[b.nwait++] = t;
  if (last)
    complete_barrier(b);
  else if (wait)
    wait_here(t, nm, 0, s);
  if (wait) tsan_acquire(sy);
  return b.result[par];
}
void* shared_alloc(const void* key, size_t bytes, size_t align, const char* name) {
  Worker& w = *W;
  for (int i = 0; i < w.nst; ++i)
    if (w.st[i].key == key) return w.st[i].p;
  if (align < 16) align = 16;
  size_t o = (w.bump + align - 1) & ~(align - 1);
  if (w.nst == NSTATIC) fail("too many static shared arrays");
  if ((w.st_bytes += bytes) > STATIC_MAX) fail("static shared memory over 48 KiB at '%s'", name);
  if (w.st_bytes + w.blk.dyn_bytes > SMEM_MAX) fail("static + dynamic shared memory over 227 KiB");
  void* p = w.arena + o;
  UNPOISON(p, bytes);
  raw_fill(p, bytes);
  w.bump = o + ((bytes + 15) & ~size_t(15)) + 64;  // 64-byte redzone
  w.st[w.nst++] = {key, p, bytes};
  return p;
}
void cp_grow(Thread* t) {
  t->cp_cap = t->cp_cap ? 2 * t->cp_cap : 16;
  t->cp = static_cast<CpAsync*>(realloc(t->cp, t->cp_cap * sizeof(CpAsync)));
}
void fence() {
  static char obj[8];
  tsan_release(obj);
  tsan_acquire(obj);
}

const Op op_syncwarp{"__syncwarp", nullptr, true, false};

cudaError_t run_grid(const LaunchDesc& L) {
  std::lock_guard<std::mutex> lock(g_run_mu);
  uint64_t n = uint64_t(L.block.x) * L.block.y * L.block.z, total = uint64_t(L.grid.x) * L.grid.y * L.grid.z;
  if (n == 0 || n > 1024 || L.block.z > 64 || total == 0 || L.grid.x > 0x7fffffffu || L.grid.y > 65535 ||
      L.grid.z > 65535)
    return cudaErrorInvalidConfiguration;
  if (L.smem > SMEM_MAX || L.param_bytes > 32764) return cudaErrorInvalidValue;
  g_failed = false;
  Job j{&L, {0}, total, {nullptr, nullptr}, 1};
  if (config().seed >= 2) {
    uint64_t r = config().seed;
    j.step = rnd(r) % 1000003 + 1;
    while (gcd(j.step, total) != 1) ++j.step;
  }
  j.sync[0] = malloc(64);
  j.sync[1] = malloc(64);
  int extra = config().workers - 1;
#ifdef RT_TSAN
  extra = 0;
#endif
  if (extra > 0 && total > 1)
    g_pool->run(j, extra);
  else
    work(j);
  tsan_acquire(j.sync[1]);
  free(j.sync[0]);
  free(j.sync[1]);
  Stats& a = W->s;
  g_stats.threads += a.threads;
  g_stats.blocks += a.blocks;
  g_stats.switches += a.switches;
  g_stats.collectives += a.collectives;
  g_stats.barriers += a.barriers;
  g_stats.ldmatrix_phases += a.ldmatrix_phases;
  g_stats.ldmatrix_conflicts += a.ldmatrix_conflicts;
  a = Stats{};
  return g_failed ? cudaErrorLaunchFailure : cudaSuccess;
}
}  // namespace brisk::simt
