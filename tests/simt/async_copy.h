// Asynchronous copies of kernels/common/async_copy.h: done at once or only when waited for, by the schedule.
#pragma once

#include "simt/device.h"

namespace brisk::simt {
inline void cp_do(const CpAsync& c) {  // the copy itself, as instrumented accesses of the issuing thread
  auto* d = static_cast<unsigned char*>(c.dst);
#ifdef SIMT_ASAN
  __asan_unpoison_memory_region(d, c.bytes);
#endif
  for (uint32_t i = 0; i < c.bytes; i += 4) {
    uint32_t v = 0;
    auto* from = static_cast<const unsigned char*>(c.src);
    if (i + 4 <= c.valid)
      v = *reinterpret_cast<const uint32_t*>(from + i);
    else
      for (uint32_t j = i; j < c.valid; ++j) v |= uint32_t(from[j]) << (j - i) * 8;
    *reinterpret_cast<uint32_t*>(d + i) = v;
  }
}
inline void cp_async(void* dst, const void* src, uint32_t bytes, uint32_t valid, Site s) {
  auto* d = static_cast<unsigned char*>(dst);
  Thread* t = tl_thr;
  if ((reinterpret_cast<uintptr_t>(dst) | (valid ? reinterpret_cast<uintptr_t>(src) : 0)) & (bytes - 1))
    fail("cp.async at %s:%d: %p <- %p not %u-byte aligned", s.file, s.line, dst, src, bytes);
  if (d < tl_blk->arena || d >= tl_blk->arena + 300 * 1024)
    fail("cp.async at %s:%d: destination %p is not shared memory", s.file, s.line, dst);
  CpAsync c{dst, src, bytes, valid, t->cp_group};
  if (t->cp_eager) {
    cp_do(c);
    return;
  }  // earliest legal completion
  for (uint32_t i = 0; i < valid; ++i) {
    volatile unsigned char x = static_cast<const volatile unsigned char*>(src)[i];
    (void)x;
  }
  for (uint32_t i = 0; i < bytes; i += 4)
    *reinterpret_cast<uint32_t*>(d + i) = 0xFFFFFFFFu;  // latest: garbage until waited for
#ifdef SIMT_ASAN
  __asan_poison_memory_region(d, bytes);
#endif
  if (t->cp_n == t->cp_cap) cp_grow(t);
  t->cp[t->cp_n++] = c;
}
inline void cp_wait(uint32_t leave) {
  Thread* t = tl_thr;
  uint32_t k = 0;
  for (uint32_t i = 0; i < t->cp_n; ++i)
    if (t->cp[i].group + leave < t->cp_group || leave == ~0u)
      cp_do(t->cp[i]);
    else
      t->cp[k++] = t->cp[i];
  t->cp_n = k;
}
}  // namespace brisk::simt

namespace brisk::kernels {
template <int Bytes>
inline void async_copy(void* shared, const void* global, int valid_bytes = Bytes, SIMT_SITE) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp.async copies 4, 8 or 16 bytes");
  simt::cp_async(shared, global, Bytes, uint32_t(valid_bytes), SIMT_HERE);
}
inline void async_copy_commit() { ++simt::tl_thr->cp_group; }
template <int N>
inline void async_copy_wait() {
  simt::cp_wait(N);
}
}  // namespace brisk::kernels
