// The copies of kernels/common/async_copy.h at their two extremes, by schedule and thread: done when issued, or done
// when waited for and garbage until then.
#pragma once

#include "simt/device.h"
#include "simt/sanitizer.h"

namespace brisk::simt {

/// The copy itself, as accesses of the thread that issued it.
inline void perform_copy(const AsyncCopy& copy) {
  auto* to = static_cast<uint32_t*>(copy.shared);
  auto* from = static_cast<const unsigned char*>(copy.global);
  allow(to, copy.bytes);
  for (uint32_t i = 0; i < copy.bytes; i += 4) {
    uint32_t word = 0;
    if (i + 4 <= copy.valid_bytes) {
      word = *reinterpret_cast<const uint32_t*>(from + i);
    } else {
      for (uint32_t j = i; j < copy.valid_bytes; ++j) word |= uint32_t{from[j]} << (j - i) * 8;
    }
    to[i / 4] = word;
  }
}

inline void issue_copy(const AsyncCopy& copy, Site site) {
  auto is_misaligned = [&](const void* address) { return reinterpret_cast<uintptr_t>(address) % copy.bytes != 0; };
  if (is_misaligned(copy.shared) || (copy.valid_bytes && is_misaligned(copy.global))) {
    fail("cp.async at %s:%d: %p <- %p is not %u-byte aligned", site.file, site.line, copy.shared, copy.global,
         copy.bytes);
  }
  if (copy.valid_bytes > copy.bytes) {
    fail("cp.async at %s:%d: %u valid bytes of %u", site.file, site.line, copy.valid_bytes, copy.bytes);
  }
  if (!in_shared_memory(copy.shared, copy.bytes)) {
    fail("cp.async at %s:%d: the destination %p is not shared memory", site.file, site.line, copy.shared);
  }
  if (copies_at_once()) {
    perform_copy(copy);
    return;
  }
  for (uint32_t i = 0; i < copy.valid_bytes; ++i) {  // the source may be read now
    static_cast<void>(static_cast<const volatile unsigned char*>(copy.global)[i]);
  }
  for (uint32_t i = 0; i < copy.bytes / 4; ++i) static_cast<uint32_t*>(copy.shared)[i] = ~0u;
  forbid(copy.shared, copy.bytes);
  remember_copy(copy);
}

}  // namespace brisk::simt

namespace brisk::kernels {

template <int Bytes>
inline void async_copy(void* shared, const void* global, int valid_bytes = Bytes,
                       simt::Site site = simt::Site::here()) {
  static_assert(Bytes == 4 || Bytes == 8 || Bytes == 16, "cp.async copies 4, 8 or 16 bytes");
  simt::issue_copy({shared, global, Bytes, static_cast<uint32_t>(valid_bytes)}, site);
}
inline void async_copy_commit() { simt::commit_copies(); }
template <int N>
inline void async_copy_wait() {
  simt::wait_for_copies(N, &simt::perform_copy);
}

}  // namespace brisk::kernels
