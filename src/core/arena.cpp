// Arenas: small ones from the heap, large ones mapped.
#include "core/arena.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "brisk/error.h"
#include "core/machine.h"
#include "core/text.h"

namespace brisk {

Arena::Arena(int64_t bytes, const std::string& field) : bytes_(bytes) {
  if (bytes < 0) throw Error(ErrorCode::memory, field, cat("a size of ", bytes, " bytes is negative"));
  if (bytes == 0) return;
  if (bytes < kMappedFrom) {
    const size_t rounded = static_cast<size_t>((bytes + kAlignment - 1) / kAlignment * kAlignment);
    data_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
    if (!data_) throw_no_memory(field, bytes);
    std::memset(data_, 0, rounded);
    return;
  }
  check_memory(field, bytes);
  void* block = mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (block == MAP_FAILED) throw_no_memory(field, bytes);
  data_ = static_cast<std::byte*>(block);
  madvise(block, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // advice: without it the block works as well, slower
}

Arena::~Arena() { release(); }

Arena::Arena(Arena&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Arena& Arena::operator=(Arena&& other) noexcept {
  if (this != &other) {
    release();
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void Arena::zero() {
  if (data_) std::memset(data_, 0, static_cast<size_t>(bytes_));
}

void Arena::release() noexcept {
  if (!data_) return;
  if (bytes_ < kMappedFrom) {
    std::free(data_);
  } else {
    munmap(data_, static_cast<size_t>(bytes_));
  }
}

}  // namespace brisk
