// Link-time replacement for libcudart (the part a training program uses): device memory, streams, events, graph
// capture. SIMT_SEED=0: every operation runs at once. SIMT_SEED>=1: lazy streams - work runs only when a sync, query or
// event dependency forces it (>=2: plus random early progress), so a missing synchronisation shows as stale data. Under
// ASan device memory stays poisoned while host code runs, so host dereferences of device pointers are reported.
#include <cuda_runtime_api.h>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <vector>
#include "simt/core.h"
#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
#include <sanitizer/asan_interface.h>
#define EMU_ASAN 1
#endif
using Fn = std::function<cudaError_t()>;
struct Node {
  Fn fn;
  std::vector<int> deps;
};
struct CUgraph_st {
  std::vector<Node> nodes;
  CUstream_st* origin = nullptr;
  std::set<CUstream_st*> streams;
};
struct CUgraphExec_st {
  std::vector<Node> nodes;
};
struct CUevent_st {
  uint64_t gen = 0, done = 0;
  CUstream_st* s = nullptr;
  CUgraph_st* cap = nullptr;
  std::vector<int> cap_deps;
  std::chrono::steady_clock::time_point t;
};
struct Op {
  Fn fn;
  CUevent_st* ev;
  uint64_t gen;
  int kind;
};  // kind 0 run, 1 wait event, 2 record event
struct CUstream_st {
  std::deque<Op> q;
  bool blocking = true;
  CUgraph_st* cap = nullptr;
  std::vector<int> deps;
};

namespace {
std::map<uintptr_t, size_t> g_dev, g_pin;
std::set<CUstream_st*> g_streams;
CUstream_st g_default, g_perthread;
CUgraph_st* g_capturing;
cudaError_t g_last, g_sticky;
uint64_t g_rng = 88172645463325252ull;
uint64_t rnd() {
  g_rng ^= g_rng << 13;
  g_rng ^= g_rng >> 7;
  return g_rng ^= g_rng << 17;
}
cudaError_t err(cudaError_t e) {
  if (e != cudaSuccess) g_last = e;
  return e;
}
void poison(bool on) {
  (void)on;
#ifdef EMU_ASAN
  static const bool enabled = !getenv("SIMT_POISON") || atoi(getenv("SIMT_POISON"));
  if (enabled)
    for (auto& [p, n] : g_dev)
      on ? __asan_poison_memory_region(reinterpret_cast<void*>(p), n)
         : __asan_unpoison_memory_region(reinterpret_cast<void*>(p), n);
#endif
}
cudaError_t exec(const Fn& f) {
  if (g_sticky) return g_sticky;
  poison(false);
  cudaError_t e = f();
  poison(true);
  if (e == cudaErrorLaunchFailure) g_sticky = e;
  return err(e);
}
CUstream_st* S(cudaStream_t s) {
  return s == nullptr || s == cudaStreamLegacy ? &g_default : s == cudaStreamPerThread ? &g_perthread : s;
}
bool step(CUstream_st* s, bool force) {  // run the head operation; force: first run what it waits for
  if (s->q.empty()) return false;
  Op& o = s->q.front();
  if (o.kind == 1 && o.ev->done < o.gen) {
    if (!force) return false;
    CUstream_st* t = o.ev->s;
    while (o.ev->done < o.gen && step(t, true)) {
    }
  }
  Op op = std::move(s->q.front());
  s->q.pop_front();
  if (op.kind == 0) exec(op.fn);
  if (op.kind == 2) {
    op.ev->done = op.gen;
    op.ev->t = std::chrono::steady_clock::now();
  }
  return true;
}
void drain(CUstream_st* s) {
  while (step(s, true)) {
  }
}
void drain_blocking() {
  for (auto* s : g_streams)
    if (s->blocking) drain(s);
  drain(&g_default);
}
void drain_all() {
  for (auto* s : g_streams) drain(s);
  drain(&g_default);
  drain(&g_perthread);
}
cudaError_t push(CUstream_st* s, Op op) {
  if (g_sticky) return err(g_sticky);
  if (s == &g_default) drain_blocking();
  s->q.push_back(std::move(op));
  uint64_t seed = brisk::simt::config().seed;
  if (seed == 0 || s == &g_default)
    drain(s);
  else if (seed >= 2)
    for (auto* t : g_streams)
      if (rnd() % 3 == 0) step(t, false);
  return seed == 0 ? g_last == cudaErrorInvalidConfiguration || g_sticky ? g_last : cudaSuccess : cudaSuccess;
}
cudaError_t submit(cudaStream_t st, Fn f) {
  CUstream_st* s = S(st);
  if (s->cap) {
    s->cap->nodes.push_back({std::move(f), s->deps});
    s->deps = {int(s->cap->nodes.size()) - 1};
    return cudaSuccess;
  }
  if (s == &g_default && g_capturing) return err(cudaErrorStreamCaptureImplicit);
  return push(s, {std::move(f), nullptr, 0, 0});
}
bool inside(const void* p, size_t n) {  // false: p is in a known allocation but the range leaves it
  for (auto* m : {&g_dev, &g_pin}) {
    auto it = m->upper_bound(reinterpret_cast<uintptr_t>(p));
    if (it == m->begin()) continue;
    --it;
    uintptr_t o = reinterpret_cast<uintptr_t>(p) - it->first;
    if (o < it->second) return o + n <= it->second;
  }
  return true;
}
bool is_dev(const void* p) {
  auto it = g_dev.upper_bound(reinterpret_cast<uintptr_t>(p));
  if (it == g_dev.begin()) return false;
  --it;
  return reinterpret_cast<uintptr_t>(p) - it->first < it->second;
}
cudaError_t check(const void* d, const void* s, size_t n, cudaMemcpyKind k) {
  if (!inside(d, n) || !inside(s, n)) return cudaErrorInvalidValue;
  if (k == cudaMemcpyDefault) return cudaSuccess;
  bool dd = k == cudaMemcpyHostToDevice || k == cudaMemcpyDeviceToDevice,
       sd = k == cudaMemcpyDeviceToHost || k == cudaMemcpyDeviceToDevice;
  return dd == is_dev(d) && sd == is_dev(s) ? cudaSuccess
                                            : cudaErrorInvalidValue;  // stricter than the real one on purpose
}
cudaError_t no_capture() {
  if (!g_capturing) return cudaSuccess;
  return err(cudaErrorStreamCaptureUnsupported);
}
cudaError_t run_nodes(const std::vector<Node>& ns) {  // topological order, randomised for seeds >= 2
  std::vector<int> left(ns.size()), ready;
  for (size_t i = 0; i < ns.size(); ++i)
    if ((left[i] = int(ns[i].deps.size())) == 0) ready.push_back(int(i));
  for (size_t k = 0; k < ns.size(); ++k) {
    size_t j = brisk::simt::config().seed >= 2 ? rnd() % ready.size() : 0;
    int i = ready[j];
    ready.erase(ready.begin() + long(j));
    if (cudaError_t e = ns[size_t(i)].fn()) return e;
    for (size_t m = 0; m < ns.size(); ++m)
      for (int d : ns[m].deps)
        if (d == i && --left[m] == 0) ready.push_back(int(m));
  }
  return cudaSuccess;
}
cudaError_t alloc(std::map<uintptr_t, size_t>& m, void** p, size_t n) {
  *p = nullptr;
  if (n == 0) return cudaSuccess;
  void* q = aligned_alloc(256, (n + 255) / 256 * 256);
  if (!q) return err(cudaErrorMemoryAllocation);
  memset(q, 0xFF, n);  // fresh device memory is garbage
  if (n % 256) {
    free(q);
    if (posix_memalign(&q, 256, n)) return err(cudaErrorMemoryAllocation);
    memset(q, 0xFF, n);
  }  // exact size: redzone right after it
  m[reinterpret_cast<uintptr_t>(q)] = n;
  poison(true);
  *p = q;
  return cudaSuccess;
}
cudaError_t release(std::map<uintptr_t, size_t>& m, void* p) {
  if (!p) return cudaSuccess;
  auto it = m.find(reinterpret_cast<uintptr_t>(p));
  if (it == m.end()) return err(cudaErrorInvalidValue);
  poison(false);
  m.erase(it);
  free(p);
  poison(true);
  return cudaSuccess;
}
}  // namespace
cudaError_t brisk::simt::enqueue_launch(cudaStream_t s, const LaunchDesc& d) {
  size_t n = size_t(d.block.x) * d.block.y * d.block.z;
  if (n == 0 || n > 1024 || !d.grid.x || !d.grid.y || !d.grid.z || d.grid.y > 65535 || d.grid.z > 65535)
    return err(cudaErrorInvalidConfiguration);
  if (d.smem > 232448) return err(cudaErrorInvalidValue);
  return submit(s, [d] { return run_grid(d); });
}
extern "C" {
cudaError_t cudaMalloc(void** p, size_t n) {
  if (auto e = no_capture()) return e;
  return alloc(g_dev, p, n);
}
cudaError_t cudaFree(void* p) {
  if (auto e = no_capture()) return e;
  drain_all();
  return release(g_dev, p);
}
cudaError_t cudaMallocAsync(void** p, size_t n, cudaStream_t) { return alloc(g_dev, p, n); }
cudaError_t cudaFreeAsync(void* p, cudaStream_t s) {
  return submit(s, [p] { return release(g_dev, p); });
}
cudaError_t cudaMallocHost(void** p, size_t n) { return alloc(g_pin, p, n); }
cudaError_t cudaHostAlloc(void** p, size_t n, unsigned) { return alloc(g_pin, p, n); }
cudaError_t cudaFreeHost(void* p) {
  drain_all();
  return release(g_pin, p);
}
cudaError_t cudaMemGetInfo(size_t* f, size_t* t) {
  *t = size_t(8) << 30;
  size_t u = 0;
  for (auto& a : g_dev) u += a.second;
  *f = *t - u;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* d, const void* s, size_t n, cudaMemcpyKind k, cudaStream_t st) {
  if (auto e = check(d, s, n, k)) return err(e);
  return submit(st, [=] {
    memcpy(d, s, n);
    return cudaSuccess;
  });
}
cudaError_t cudaMemcpy(void* d, const void* s, size_t n, cudaMemcpyKind k) {
  if (auto e = no_capture()) return e;
  return cudaMemcpyAsync(d, s, n, k, nullptr);
}
cudaError_t cudaMemcpy2DAsync(void* d, size_t dp, const void* s, size_t sp, size_t w, size_t h, cudaMemcpyKind,
                              cudaStream_t st) {
  if (w > dp || w > sp) return err(cudaErrorInvalidPitchValue);
  return submit(st, [=] {
    for (size_t i = 0; i < h; ++i) memcpy(static_cast<char*>(d) + i * dp, static_cast<const char*>(s) + i * sp, w);
    return cudaSuccess;
  });
}
cudaError_t cudaMemsetAsync(void* d, int v, size_t n, cudaStream_t st) {
  if (!is_dev(d) || !inside(d, n)) return n ? err(cudaErrorInvalidValue) : cudaSuccess;
  return submit(st, [=] {
    memset(d, v, n);
    return cudaSuccess;
  });
}
cudaError_t cudaMemcpyToSymbolAsync(const void* y, const void* s, size_t n, size_t o, cudaMemcpyKind, cudaStream_t st) {
  return submit(st, [=] {
    memcpy(static_cast<char*>(const_cast<void*>(y)) + o, s, n);
    return cudaSuccess;
  });
}
cudaError_t cudaMemcpyToSymbol(const void* y, const void* s, size_t n, size_t o, cudaMemcpyKind k) {
  return cudaMemcpyToSymbolAsync(y, s, n, o, k, nullptr);
}
cudaError_t cudaGetSymbolAddress(void** p, const void* y) {
  *p = const_cast<void*>(y);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* d, int v, size_t n) { return cudaMemsetAsync(d, v, n, nullptr); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned f) {
  *s = new CUstream_st;
  (*s)->blocking = !(f & cudaStreamNonBlocking);
  g_streams.insert(*s);
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* s) { return cudaStreamCreateWithFlags(s, 0); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned f, int) { return cudaStreamCreateWithFlags(s, f); }
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  drain(s);
  g_streams.erase(s);
  delete s;
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  if (S(s)->cap) return no_capture();
  if (S(s) == &g_default) drain_blocking();
  drain(S(s));
  return err(g_sticky);
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
  step(S(s), true);
  return S(s)->q.empty() ? g_sticky : cudaErrorNotReady;
}
cudaError_t cudaDeviceSynchronize() {
  if (auto e = no_capture()) return e;
  drain_all();
  return err(g_sticky);
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) {
  *e = new CUevent_st;
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* e) { return cudaEventCreateWithFlags(e, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  drain_all();
  delete e;
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t st) {
  CUstream_st* s = S(st);
  e->s = s;
  if (s->cap) {
    e->cap = s->cap;
    e->cap_deps = s->deps;
    return cudaSuccess;
  }
  e->cap = nullptr;
  return push(s, {nullptr, e, ++e->gen, 2});
}
cudaError_t cudaStreamWaitEvent(cudaStream_t st, cudaEvent_t e, unsigned) {
  CUstream_st* s = S(st);
  if (e->cap) {  // captured event: the waiting stream joins the capture
    if (s->cap && s->cap != e->cap) return err(cudaErrorStreamCaptureMerge);
    if (!s->cap) {
      s->cap = e->cap;
      s->deps.clear();
      s->cap->streams.insert(s);
    }
    for (int d : e->cap_deps) {
      bool have = false;
      for (int x : s->deps) have |= x == d;
      if (!have) s->deps.push_back(d);
    }
    return cudaSuccess;
  }
  if (s->cap) return err(cudaErrorStreamCaptureIsolation);
  return e->gen == 0 ? cudaSuccess : push(s, {nullptr, e, e->gen, 1});
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  if (e->cap) return err(cudaErrorCapturedEvent);
  while (e->s && e->done < e->gen && step(e->s, true)) {
  }
  return err(g_sticky);
}
cudaError_t cudaEventQuery(cudaEvent_t e) {
  if (e->s) step(e->s, true);
  return e->done < e->gen ? cudaErrorNotReady : cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) {
  if (a->done < a->gen || b->done < b->gen) return err(cudaErrorNotReady);
  *ms = std::chrono::duration<float, std::milli>(b->t - a->t).count();
  return cudaSuccess;
}
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void* u) {
  return submit(s, [=] {
    poison(true);
    f(u);
    poison(false);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamBeginCapture(cudaStream_t st, cudaStreamCaptureMode) {
  CUstream_st* s = S(st);
  if (s == &g_default) return err(cudaErrorStreamCaptureUnsupported);
  if (s->cap) return err(cudaErrorIllegalState);
  s->cap = g_capturing = new CUgraph_st;
  s->cap->origin = s;
  s->cap->streams = {s};
  s->deps.clear();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t* g) {
  if (!s->cap || s->cap->origin != s) return err(cudaErrorStreamCaptureUnmatched);
  CUgraph_st* c = s->cap;
  g_capturing = nullptr;
  std::vector<bool> reach(c->nodes.size());
  std::vector<int> todo = s->deps;
  while (!todo.empty()) {
    int i = todo.back();
    todo.pop_back();
    if (reach[size_t(i)]) continue;
    reach[size_t(i)] = true;
    for (int d : c->nodes[size_t(i)].deps) todo.push_back(d);
  }
  for (auto* t : c->streams) {
    t->cap = nullptr;
    t->deps.clear();
  }
  for (bool r : reach)
    if (!r) {
      delete c;
      *g = nullptr;
      return err(cudaErrorStreamCaptureUnjoined);
    }
  *g = c;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* st) {
  *st = S(s)->cap ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* x, cudaGraph_t g, unsigned long long) {
  *x = new CUgraphExec_st{g->nodes};
  return cudaSuccess;
}
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t x, cudaGraph_t g, cudaGraphExecUpdateResultInfo* r) {
  if (x->nodes.size() != g->nodes.size()) {
    if (r) r->result = cudaGraphExecUpdateErrorTopologyChanged;
    return err(cudaErrorGraphExecUpdateFailure);
  }
  x->nodes = g->nodes;
  if (r) r->result = cudaGraphExecUpdateSuccess;
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t x, cudaStream_t s) {
  auto n = x->nodes;
  return submit(s, [n] { return run_nodes(n); });
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t x) {
  delete x;
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t g) {
  delete g;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* n) {
  *n = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* d) {
  *d = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int d) { return d ? err(cudaErrorInvalidDevice) : cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  *p = {};
  strcpy(p->name, "SIMT CPU emulation");
  p->major = 9;
  p->multiProcessorCount = 4;
  p->warpSize = 32;
  p->maxThreadsPerBlock = 1024;
  p->sharedMemPerBlock = 49152;
  p->sharedMemPerBlockOptin = 232448;
  p->sharedMemPerMultiprocessor = 233472;
  p->regsPerBlock = 65536;
  p->totalGlobalMem = size_t(8) << 30;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* v, cudaDeviceAttr a, int) {
  *v = a == cudaDevAttrMultiProcessorCount            ? 4
       : a == cudaDevAttrComputeCapabilityMajor       ? 9
       : a == cudaDevAttrMaxSharedMemoryPerBlockOptin ? 232448
       : a == cudaDevAttrWarpSize                     ? 32
                                                      : 0;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* v) {
  *v = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* v) {
  *v = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* n, const void*, int, size_t) {
  *n = 1;
  return cudaSuccess;
}
cudaError_t cudaPeekAtLastError() { return g_sticky ? g_sticky : g_last; }
cudaError_t cudaGetLastError() {
  cudaError_t e = cudaPeekAtLastError();
  g_last = cudaSuccess;
  return e;
}
const char* cudaGetErrorName(cudaError_t e) {
  return e == cudaSuccess ? "cudaSuccess" : e == cudaErrorLaunchFailure ? "cudaErrorLaunchFailure" : "cudaError";
}
const char* cudaGetErrorString(cudaError_t e) {
  return e == cudaErrorLaunchFailure ? brisk::simt::last_error() : cudaGetErrorName(e);
}
cudaError_t cudaDeviceReset() {
  drain_all();
  g_sticky = g_last = cudaSuccess;
  return cudaSuccess;
}
}
