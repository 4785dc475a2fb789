#include "memory/traps.h"

#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace brisk::test {
namespace {

std::atomic<int64_t> calls{0}, heap{0}, mapped{0}, largest{0};

void note(int64_t bytes) {
  calls.fetch_add(1, std::memory_order_relaxed);
  int64_t seen = largest.load(std::memory_order_relaxed);
  while (bytes > seen && !largest.compare_exchange_weak(seen, bytes, std::memory_order_relaxed)) {
  }
}

[[maybe_unused]] void* taken(void* block) {
  if (block != nullptr) {
    const auto bytes = static_cast<int64_t>(malloc_usable_size(block));
    heap.fetch_add(bytes, std::memory_order_relaxed);
    note(bytes);
  }
  return block;
}

[[maybe_unused]] void given_back(void* block) {
  if (block != nullptr) heap.fetch_sub(static_cast<int64_t>(malloc_usable_size(block)), std::memory_order_relaxed);
}

}  // namespace

HeldMemory held_memory() { return {calls.load(), heap.load(), mapped.load(), largest.load()}; }
void reset_largest_call() { largest = 0; }

bool traps_work() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return true;
#endif
}

}  // namespace brisk::test

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
using brisk::test::given_back;
using brisk::test::taken;

extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* block, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void __libc_free(void* block);

void* malloc(size_t size) { return taken(__libc_malloc(size)); }
void* calloc(size_t count, size_t size) { return taken(__libc_calloc(count, size)); }
void* realloc(void* block, size_t size) {
  given_back(block);
  return taken(__libc_realloc(block, size));
}
void* memalign(size_t alignment, size_t size) { return taken(__libc_memalign(alignment, size)); }
void* aligned_alloc(size_t alignment, size_t size) { return taken(__libc_memalign(alignment, size)); }
int posix_memalign(void** block, size_t alignment, size_t size) {
  void* const made = taken(__libc_memalign(alignment, size));
  if (made == nullptr) return ENOMEM;
  *block = made;
  return 0;
}
void free(void* block) {
  given_back(block);
  __libc_free(block);
}
void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) noexcept {
  void* const made = reinterpret_cast<void*>(syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
  if (made != MAP_FAILED) {
    brisk::test::mapped.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    brisk::test::note(static_cast<int64_t>(bytes));
  }
  return made;
}
int munmap(void* address, size_t bytes) noexcept {
  const int failed = static_cast<int>(syscall(SYS_munmap, address, bytes));
  if (failed == 0) brisk::test::mapped.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  return failed;
}
}
#endif
