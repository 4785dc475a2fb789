// SIMT-on-CPU shim: lets CUDA kernel sources compile as ordinary C++17 (g++ >= 9 / clang++ >= 9).
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <vector_functions.h>
#include <vector_types.h>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <type_traits>
#include "simt/core.h"

#undef __shared__
#undef __launch_bounds__
#undef __grid_constant__
#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __launch_bounds__(...)
#define __shared__ use_BRISK_SHARED_instead

#if defined(__SANITIZE_ADDRESS__)
#define SIMT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIMT_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define SIMT_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define SIMT_TSAN 1
#endif
#ifdef SIMT_ASAN
#include <sanitizer/asan_interface.h>
#endif
#define SIMT_NOSAN __attribute__((no_sanitize("thread"), no_sanitize("address"), noinline))
#define SIMT_SITE const char *simt_f = __builtin_FILE(), int simt_l = __builtin_LINE()
#define SIMT_HERE \
  ::brisk::simt::Site { simt_f, simt_l }

namespace brisk::simt {
inline uint32_t lane() { return tl_thr->lane; }
template <class T>
struct ShflIo {
  T in, out;
  int src;
};
template <class T>
SIMT_NOSAN void shfl_fn(void* const io[32], uint32_t arrived) {
  for (int l = 0; l < 32; ++l)
    if (arrived >> l & 1) {
      auto* me = static_cast<ShflIo<T>*>(io[l]);
      if (arrived >> me->src & 1)
        __builtin_memcpy(&me->out, &static_cast<ShflIo<T>*>(io[me->src])->in, sizeof(T));
      else
        __builtin_memset(&me->out, 0xFF, sizeof(T));  // reading an inactive lane: garbage, on purpose
    }
}
template <class T>
inline T shfl(uint32_t mask, T v, int src, Site s) {
  static_assert(std::is_trivially_copyable<T>::value && sizeof(T) <= 8, "type not shuffled by CUDA");
  static const Op op{"__shfl_sync", &shfl_fn<T>, false, false};
  ShflIo<T> io{v, v, src};
  warp_collective(mask, &op, &io, s);
  return io.out;
}
struct VoteIo {
  uint64_t in;
  uint32_t out;
};
SIMT_NOSAN inline void ballot_fn(void* const io[32], uint32_t a) {
  uint32_t r = 0;
  for (int l = 0; l < 32; ++l)
    if (a >> l & 1 && static_cast<VoteIo*>(io[l])->in) r |= 1u << l;
  for (int l = 0; l < 32; ++l)
    if (a >> l & 1) static_cast<VoteIo*>(io[l])->out = r;
}
SIMT_NOSAN inline void match_fn(void* const io[32], uint32_t a) {
  for (int l = 0; l < 32; ++l)
    if (a >> l & 1) {
      uint32_t r = 0;
      for (int k = 0; k < 32; ++k)
        if (a >> k & 1 && static_cast<VoteIo*>(io[k])->in == static_cast<VoteIo*>(io[l])->in) r |= 1u << k;
      static_cast<VoteIo*>(io[l])->out = r;
    }
}
inline uint32_t vote(const Op* op, uint32_t mask, uint64_t v, Site s) {
  VoteIo io{v, 0};
  warp_collective(mask, op, &io, s);
  return io.out;
}
inline const Op op_ballot{"__ballot_sync", &ballot_fn, false, false}, op_any{"__any_sync", &ballot_fn, false, false},
    op_all{"__all_sync", &ballot_fn, false, false}, op_match{"__match_any_sync", &match_fn, false, false};
template <class T>
struct RedIo {
  T v;
  int op;
};
template <class T>
SIMT_NOSAN void red_fn(void* const io[32], uint32_t a) {
  bool first = true;
  T r{};
  int op = 0;
  for (int l = 0; l < 32; ++l)
    if (a >> l & 1) {
      auto* p = static_cast<RedIo<T>*>(io[l]);
      op = p->op;
      if (first) {
        r = p->v;
        first = false;
        continue;
      }
      switch (op) {
        case 0:
          r = T(r + p->v);
          break;
        case 1:
          r = p->v < r ? p->v : r;
          break;
        case 2:
          r = p->v > r ? p->v : r;
          break;
        case 3:
          r = T(r & p->v);
          break;
        case 4:
          r = T(r | p->v);
          break;
        default:
          r = T(r ^ p->v);
      }
    }
  for (int l = 0; l < 32; ++l)
    if (a >> l & 1) static_cast<RedIo<T>*>(io[l])->v = r;
}
template <class T>
inline T reduce(uint32_t m, T v, int o, Site s) {
  static const Op op{"__reduce_sync", &red_fn<T>, false, false};
  RedIo<T> io{v, o};
  warp_collective(m, &op, &io, s);
  return io.v;
}
template <class T, class F>
inline T rmw(T* p, F f) {  // CAS loop; relaxed, so no happens-before edge
  using U = std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;
  U* q = reinterpret_cast<U*>(p);
  U o = __atomic_load_n(q, __ATOMIC_RELAXED), n;
  T ov, nv;
  if (reinterpret_cast<uintptr_t>(p) % sizeof(T)) fail("misaligned atomic address %p", static_cast<void*>(p));
  do {
    __builtin_memcpy(static_cast<void*>(&ov), &o, sizeof o);
    nv = f(ov);
    __builtin_memcpy(&n, static_cast<const void*>(&nv), sizeof n);
  } while (!__atomic_compare_exchange_n(q, &o, n, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return ov;
}
template <class T>
using identity_t = typename std::common_type<T>::type;
}  // namespace brisk::simt

// ---- built-in variables --------------------------------------------------------------------------------------
#define threadIdx (static_cast<const uint3&>(::brisk::simt::tl_thr->tid))
#define blockIdx (static_cast<const uint3&>(::brisk::simt::tl_blk->bid))
#define blockDim (static_cast<const dim3&>(::brisk::simt::tl_blk->bdim))
#define gridDim (static_cast<const dim3&>(::brisk::simt::tl_blk->gdim))
constexpr int warpSize = 32;
#define BRISK_SHARED(T, name, ...)                         \
  typedef T simt_t_##name __VA_ARGS__;                     \
  static char simt_k_##name = 0;                           \
  simt_t_##name& name = *reinterpret_cast<simt_t_##name*>( \
      ::brisk::simt::shared_alloc(&simt_k_##name, sizeof(simt_t_##name), alignof(simt_t_##name), #name))
#define BRISK_DYNAMIC_SHARED(T, name) T* const name = reinterpret_cast<T*>(::brisk::simt::tl_blk->dyn)

// ---- barriers, votes, shuffles -------------------------------------------------------------------------------
inline void __syncthreads(SIMT_SITE) { brisk::simt::block_barrier(0, 0, true, brisk::simt::RED_NONE, 0, SIMT_HERE); }
inline int __syncthreads_count(int p, SIMT_SITE) {
  return brisk::simt::block_barrier(0, 0, true, brisk::simt::RED_COUNT, p, SIMT_HERE);
}
inline int __syncthreads_and(int p, SIMT_SITE) {
  return brisk::simt::block_barrier(0, 0, true, brisk::simt::RED_AND, p, SIMT_HERE);
}
inline int __syncthreads_or(int p, SIMT_SITE) {
  return brisk::simt::block_barrier(0, 0, true, brisk::simt::RED_OR, p, SIMT_HERE);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, SIMT_SITE) {
  brisk::simt::warp_collective(mask, &brisk::simt::op_syncwarp, nullptr, SIMT_HERE);
}
template <class T>
inline T __shfl_sync(unsigned m, T v, int src, int w = 32, SIMT_SITE) {
  int l = int(brisk::simt::lane());
  return brisk::simt::shfl(m, v, (l & ~(w - 1)) | (src & (w - 1)), SIMT_HERE);
}
template <class T>
inline T __shfl_xor_sync(unsigned m, T v, int x, int w = 32, SIMT_SITE) {
  int l = int(brisk::simt::lane()), j = l ^ x;
  return brisk::simt::shfl(m, v, j > (l | (w - 1)) ? l : j, SIMT_HERE);
}
template <class T>
inline T __shfl_down_sync(unsigned m, T v, unsigned d, int w = 32, SIMT_SITE) {
  int l = int(brisk::simt::lane()), j = l + int(d);
  return brisk::simt::shfl(m, v, j > (l | (w - 1)) ? l : j, SIMT_HERE);
}
template <class T>
inline T __shfl_up_sync(unsigned m, T v, unsigned d, int w = 32, SIMT_SITE) {
  int l = int(brisk::simt::lane()), j = l - int(d);
  return brisk::simt::shfl(m, v, j < (l & ~(w - 1)) ? l : j, SIMT_HERE);
}
inline unsigned __ballot_sync(unsigned m, int p, SIMT_SITE) {
  return brisk::simt::vote(&brisk::simt::op_ballot, m, p != 0, SIMT_HERE);
}
inline int __any_sync(unsigned m, int p, SIMT_SITE) {
  return brisk::simt::vote(&brisk::simt::op_any, m, p != 0, SIMT_HERE) != 0;
}
inline int __all_sync(unsigned m, int p, SIMT_SITE) {
  return brisk::simt::vote(&brisk::simt::op_all, m, p == 0, SIMT_HERE) == 0;
}
template <class T>
inline unsigned __match_any_sync(unsigned m, T v, SIMT_SITE) {
  uint64_t u = 0;
  std::memcpy(&u, &v, sizeof v);
  return brisk::simt::vote(&brisk::simt::op_match, m, u, SIMT_HERE);
}
inline unsigned __activemask(SIMT_SITE) {
  brisk::simt::fail("__activemask() at %s:%d: not emulated; pass masks explicitly", simt_f, simt_l);
}
template <class T>
inline T __reduce_add_sync(unsigned m, T v, SIMT_SITE) {
  return brisk::simt::reduce(m, v, 0, SIMT_HERE);
}
template <class T>
inline T __reduce_min_sync(unsigned m, T v, SIMT_SITE) {
  return brisk::simt::reduce(m, v, 1, SIMT_HERE);
}
template <class T>
inline T __reduce_max_sync(unsigned m, T v, SIMT_SITE) {
  return brisk::simt::reduce(m, v, 2, SIMT_HERE);
}
inline unsigned __reduce_and_sync(unsigned m, unsigned v, SIMT_SITE) { return brisk::simt::reduce(m, v, 3, SIMT_HERE); }
inline unsigned __reduce_or_sync(unsigned m, unsigned v, SIMT_SITE) { return brisk::simt::reduce(m, v, 4, SIMT_HERE); }
inline void __threadfence() { brisk::simt::fence(); }
inline void __threadfence_block() { brisk::simt::fence(); }
inline void __threadfence_system() { brisk::simt::fence(); }

// ---- atomics -------------------------------------------------------------------------------------------------
template <class T>
inline T atomicAdd(T* p, brisk::simt::identity_t<T> v) {
  static_assert(std::is_integral<T>::value, "sums of floats by atomics depend on the schedule");
  return brisk::simt::rmw(p, [v](T o) { return T(o + v); });
}
template <class T>
inline T atomicSub(T* p, brisk::simt::identity_t<T> v) {
  return brisk::simt::rmw(p, [v](T o) { return T(o - v); });
}
template <class T>
inline T atomicMax(T* p, brisk::simt::identity_t<T> v) {
  static_assert(std::is_integral<T>::value, "CUDA has no float atomicMax");
  return brisk::simt::rmw(p, [v](T o) { return o < v ? v : o; });
}
template <class T>
inline T atomicMin(T* p, brisk::simt::identity_t<T> v) {
  static_assert(std::is_integral<T>::value, "CUDA has no float atomicMin");
  return brisk::simt::rmw(p, [v](T o) { return v < o ? v : o; });
}
template <class T>
inline T atomicExch(T* p, brisk::simt::identity_t<T> v) {
  return brisk::simt::rmw(p, [v](T) { return v; });
}
template <class T>
inline T atomicCAS(T* p, brisk::simt::identity_t<T> c, brisk::simt::identity_t<T> v) {
  return brisk::simt::rmw(p, [c, v](T o) { return o == c ? v : o; });
}
template <class T>
inline T atomicAnd(T* p, brisk::simt::identity_t<T> v) {
  return brisk::simt::rmw(p, [v](T o) { return T(o & v); });
}
template <class T>
inline T atomicOr(T* p, brisk::simt::identity_t<T> v) {
  return brisk::simt::rmw(p, [v](T o) { return T(o | v); });
}
template <class T>
inline T atomicXor(T* p, brisk::simt::identity_t<T> v) {
  return brisk::simt::rmw(p, [v](T o) { return T(o ^ v); });
}
inline unsigned atomicInc(unsigned* p, unsigned v) {
  return brisk::simt::rmw(p, [v](unsigned o) { return o >= v ? 0u : o + 1; });
}
inline unsigned atomicDec(unsigned* p, unsigned v) {
  return brisk::simt::rmw(p, [v](unsigned o) { return (o == 0 || o > v) ? v : o - 1; });
}

// ---- cached loads/stores -------------------------------------------------------------------------------------
template <class T>
inline T __ldg(const T* p) {
  return *p;
}
template <class T>
inline T __ldca(const T* p) {
  return *p;
}
template <class T>
inline T __ldcg(const T* p) {
  return *p;
}
template <class T>
inline T __ldcs(const T* p) {
  return *p;
}
template <class T>
inline T __ldcv(const T* p) {
  return *p;
}
template <class T>
inline T __ldlu(const T* p) {
  return *p;
}
template <class T>
inline void __stcg(T* p, brisk::simt::identity_t<T> v) {
  *p = v;
}
template <class T>
inline void __stcs(T* p, brisk::simt::identity_t<T> v) {
  *p = v;
}
template <class T>
inline void __stwb(T* p, brisk::simt::identity_t<T> v) {
  *p = v;
}
template <class T>
inline void __stwt(T* p, brisk::simt::identity_t<T> v) {
  *p = v;
}

// ---- scalar maths --------------------------------------------------------------------------------------------
#define SIMT_BITS(name, From, To)  \
  inline To name(From x) {         \
    To r;                          \
    std::memcpy(&r, &x, sizeof r); \
    return r;                      \
  }
SIMT_BITS(__float_as_int, float, int)
SIMT_BITS(__float_as_uint, float, unsigned)
SIMT_BITS(__int_as_float, int, float)
SIMT_BITS(__uint_as_float, unsigned, float)
SIMT_BITS(__double_as_longlong, double, long long)
SIMT_BITS(__longlong_as_double, long long, double) inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __brev(unsigned x) {
  unsigned r = 0;
  for (int i = 0; i < 32; ++i) r |= (x >> i & 1u) << (31 - i);
  return r;
}
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((uint64_t(a) * b) >> 32); }
inline unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) {
  return unsigned(((uint64_t(hi) << 32 | lo) << (s & 31)) >> 32);
}
inline unsigned __funnelshift_r(unsigned lo, unsigned hi, unsigned s) {
  return unsigned((uint64_t(hi) << 32 | lo) >> (s & 31));
}
inline float rsqrtf(float x) { return 1.f / std::sqrt(x); }
inline double rsqrt(double x) { return 1. / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __exp10f(float x) { return std::pow(10.f, x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __tanhf(float x) { return std::tanh(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.f / a; }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fadd_rn(float a, float b) {
  volatile float r = a + b;
  return r;
}
inline float __fmul_rn(float a, float b) {
  volatile float r = a * b;
  return r;
}
inline int __float2int_rn(float x) { return int(std::nearbyint(x)); }
inline int __float2int_rz(float x) { return int(x); }
inline float __int2float_rn(int x) { return float(x); }
inline float __saturatef(float x) { return x != x ? 0.f : x < 0 ? 0.f : x > 1 ? 1.f : x; }
#define SIMT_MINMAX(T)                             \
  inline T min(T a, T b) { return b < a ? b : a; } \
  inline T max(T a, T b) { return a < b ? b : a; }
SIMT_MINMAX(int)
SIMT_MINMAX(unsigned)
SIMT_MINMAX(long)
SIMT_MINMAX(unsigned long) SIMT_MINMAX(long long) SIMT_MINMAX(unsigned long long) inline float min(float a, float b) {
  return std::fmin(a, b);
}
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }
inline void __trap() { brisk::simt::fail("__trap()"); }
inline void __nanosleep(unsigned) {}
inline long long clock64() { return 0; }

// ---- what cuda_fp16.h / cuda_bf16.h declare for nvcc only -----------------------------------------------------
inline __half __hfma(__half a, __half b, __half c) {
  return __double2half(double(__half2float(a)) * __half2float(b) + __half2float(c));
}
inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c) {
  return __double2bfloat16(double(__bfloat162float(a)) * __bfloat162float(b) + __bfloat162float(c));
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return __halves2half2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
inline __nv_bfloat162 __hfma2(__nv_bfloat162 a, __nv_bfloat162 b, __nv_bfloat162 c) {
  return __halves2bfloat162(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
}
#define SIMT_HMATH(name, expr)                                                              \
  inline __half h##name(__half a) {                                                         \
    float x = __half2float(a);                                                              \
    return __float2half(expr);                                                              \
  }                                                                                         \
  inline __nv_bfloat16 h##name(__nv_bfloat16 a) {                                           \
    float x = __bfloat162float(a);                                                          \
    return __float2bfloat16(expr);                                                          \
  }                                                                                         \
  inline __half2 h2##name(__half2 a) { return __halves2half2(h##name(a.x), h##name(a.y)); } \
  inline __nv_bfloat162 h2##name(__nv_bfloat162 a) { return __halves2bfloat162(h##name(a.x), h##name(a.y)); }
SIMT_HMATH(exp, std::exp(x))
SIMT_HMATH(exp2, std::exp2(x))
SIMT_HMATH(log, std::log(x))
SIMT_HMATH(log2, std::log2(x))
SIMT_HMATH(sqrt, std::sqrt(x))
SIMT_HMATH(rsqrt, 1.f / std::sqrt(x))
SIMT_HMATH(rcp, 1.f / x) SIMT_HMATH(tanh, std::tanh(x)) SIMT_HMATH(sin, std::sin(x)) SIMT_HMATH(cos, std::cos(x))
    SIMT_HMATH(floor, std::floor(x)) SIMT_HMATH(ceil, std::ceil(x)) SIMT_HMATH(rint, std::nearbyint(x))
        SIMT_HMATH(trunc, std::trunc(x))
