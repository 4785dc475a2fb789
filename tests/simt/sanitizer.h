// AddressSanitizer and ThreadSanitizer as the emulation uses them; nothing where the build has neither. The macros are
// set for whole builds, not taken from the compiler: the emulation's own sources are compiled without instrumentation.
#pragma once

#include <cstddef>

#if defined(BRISK_SIMT_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(BRISK_SIMT_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

// For functions that stand for hardware: their accesses are not those of a thread of the kernel.
#define BRISK_SIMT_HARDWARE __attribute__((no_sanitize("thread"), no_sanitize("address"), noinline))

namespace brisk::simt {

#if defined(BRISK_SIMT_ASAN)
inline constexpr bool kAddressSanitizer = true;
inline void forbid(const volatile void* begin, size_t bytes) { __asan_poison_memory_region(begin, bytes); }
inline void allow(const volatile void* begin, size_t bytes) { __asan_unpoison_memory_region(begin, bytes); }
#else
inline constexpr bool kAddressSanitizer = false;
inline void forbid(const volatile void*, size_t) {}
inline void allow(const volatile void*, size_t) {}
#endif

// What was done before release(object) is ordered before what is done after acquire(object).
#if defined(BRISK_SIMT_TSAN)
inline constexpr bool kThreadSanitizer = true;
inline void release(void* object) { __tsan_release(object); }
inline void acquire(void* object) { __tsan_acquire(object); }
#else
inline constexpr bool kThreadSanitizer = false;
inline void release(void*) {}
inline void acquire(void*) {}
#endif

}  // namespace brisk::simt
