// One block of zeroed memory, aligned for vector loads; where a plan's tensors lie.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace brisk {

class Arena {
 public:
  static constexpr int64_t kAlignment = 64;
  /// From this size on the block is mapped by itself and asks for huge pages.
  static constexpr int64_t kMappedFrom = int64_t{2} << 20;

  Arena() = default;
  /// Zeros. field: what the memory is for, named in the message. Throws Error [memory] with the bytes requested and
  /// available, before any of it is touched; Error [memory] for a negative size.
  explicit Arena(int64_t bytes, const std::string& field = "arena");
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;

  std::byte* data() const { return data_; }
  /// Exactly what was asked for; also exactly what is taken from the system or the heap, but that a block from the
  /// heap is rounded up to a multiple of kAlignment.
  int64_t bytes() const { return bytes_; }
  void zero();

 private:
  void release() noexcept;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace brisk
