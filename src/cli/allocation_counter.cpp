// Stands in front of malloc: the program's symbols come before the C library's, so every caller in the process,
// operator new included, arrives here and is passed on to glibc's own functions. Which library asked is found by
// walking the stack.
#include "cli/allocation_counter.h"

#include <errno.h>
#include <link.h>
#include <unwind.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BRISK_MALLOC_IS_TAKEN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define BRISK_MALLOC_IS_TAKEN 1
#endif
#endif

namespace brisk::cli {
namespace {

struct CodeRange {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};
constexpr size_t kMaximumRanges = 16;

std::atomic<bool> counting{false};
std::atomic<int64_t> own_count{0};
std::atomic<int64_t> external_count{0};
std::array<CodeRange, kMaximumRanges> external_code;
size_t external_ranges = 0;

int add_external_code(dl_phdr_info* info, size_t, void*) {
  if (std::strstr(info->dlpi_name, "libdnnl") == nullptr) return 0;
  for (int i = 0; i < info->dlpi_phnum && external_ranges < kMaximumRanges; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    const uintptr_t begin = info->dlpi_addr + header.p_vaddr;
    external_code[external_ranges++] = {begin, begin + header.p_memsz};
  }
  return 0;
}

#ifndef BRISK_MALLOC_IS_TAKEN
_Unwind_Reason_Code visit_frame(_Unwind_Context* context, void* found) {
  const uintptr_t address = _Unwind_GetIP(context);
  for (size_t i = 0; i < external_ranges; ++i) {
    if (address < external_code[i].begin || address >= external_code[i].end) continue;
    *static_cast<bool*>(found) = true;
    return _URC_END_OF_STACK;
  }
  return _URC_NO_REASON;
}

void note_allocation() {
  static thread_local bool inside = false;  // the unwinder may allocate itself
  if (!counting.load(std::memory_order_relaxed) || inside) return;
  inside = true;
  bool external = false;
  if (external_ranges > 0) _Unwind_Backtrace(visit_frame, &external);
  (external ? external_count : own_count).fetch_add(1, std::memory_order_relaxed);
  inside = false;
}
#endif

}  // namespace

AllocationCounter::AllocationCounter() {
  external_ranges = 0;
  dl_iterate_phdr(add_external_code, nullptr);
  own_count = 0;
  external_count = 0;
  counting = true;
}
AllocationCounter::~AllocationCounter() { counting = false; }
Allocations AllocationCounter::counted() const { return {external_count.load(), own_count.load()}; }

bool AllocationCounter::works() {
#ifdef BRISK_MALLOC_IS_TAKEN
  return false;
#else
  return true;
#endif
}

}  // namespace brisk::cli

#ifndef BRISK_MALLOC_IS_TAKEN
#define BRISK_IN_FRONT extern "C" __attribute__((visibility("default")))

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

BRISK_IN_FRONT void* malloc(size_t size) {
  brisk::cli::note_allocation();
  return __libc_malloc(size);
}
BRISK_IN_FRONT void* calloc(size_t count, size_t size) {
  brisk::cli::note_allocation();
  return __libc_calloc(count, size);
}
BRISK_IN_FRONT void* realloc(void* block, size_t size) {
  brisk::cli::note_allocation();
  return __libc_realloc(block, size);
}
BRISK_IN_FRONT void* memalign(size_t alignment, size_t size) {
  brisk::cli::note_allocation();
  return __libc_memalign(alignment, size);
}
BRISK_IN_FRONT void* aligned_alloc(size_t alignment, size_t size) {
  brisk::cli::note_allocation();
  return __libc_memalign(alignment, size);
}
BRISK_IN_FRONT int posix_memalign(void** block, size_t alignment, size_t size) {
  const bool power_of_two = alignment != 0 && (alignment & (alignment - 1)) == 0;
  if (!power_of_two || alignment % sizeof(void*) != 0) return EINVAL;
  brisk::cli::note_allocation();
  void* const made = __libc_memalign(alignment, size);
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}
#endif
