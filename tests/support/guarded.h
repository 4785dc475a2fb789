// A buffer between two guards: writing past either end is found, and reading too where AddressSanitizer watches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BRISK_TEST_ADDRESS_SANITIZER
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define BRISK_TEST_ADDRESS_SANITIZER
#endif
#if defined(BRISK_TEST_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#endif

namespace brisk::test {

class Guarded {
 public:
  static constexpr size_t kGuard = 128;
  static constexpr std::byte kPattern{0x5A};
  /// As floats of any width: NaN with a payload that no operation makes, so that it is recognised where it arrives.
  static constexpr std::byte kPoison{0xFF};

  /// `bytes` of poison, aligned to 64 bytes and then moved by `shift`.
  explicit Guarded(int64_t bytes, size_t shift = 0)
      : size_(static_cast<size_t>(bytes)),
        shift_(shift),
        block_(static_cast<std::byte*>(::operator new (total(), std::align_val_t{64}))) {
    std::fill_n(block_.get(), total(), kPattern);
    std::fill_n(data(), size_, kPoison);
    fence(true);
  }
  Guarded(const Guarded& other) : Guarded(static_cast<int64_t>(other.size_), other.shift_) {
    std::copy_n(other.data(), size_, data());
  }
  Guarded(Guarded&&) noexcept = default;
  Guarded& operator=(Guarded other) noexcept {
    std::swap(size_, other.size_);
    std::swap(shift_, other.shift_);
    block_.swap(other.block_);
    return *this;
  }
  ~Guarded() {
    if (block_) fence(false);
  }

  std::byte* data() { return block_.get() + kGuard + shift_; }
  const std::byte* data() const { return block_.get() + kGuard + shift_; }
  size_t size() const { return size_; }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data());
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(data());
  }
  bool intact() const {
    fence(false);
    const auto untouched = [](const std::byte* first, const std::byte* last) {
      return std::all_of(first, last, [](std::byte b) { return b == kPattern; });
    };
    const bool good = untouched(block_.get(), data()) && untouched(data() + size_, block_.get() + total());
    fence(true);
    return good;
  }
  bool same_bytes(const Guarded& other) const {
    return size_ == other.size_ && std::equal(data(), data() + size_, other.data());
  }

 private:
  struct Free {
    void operator()(std::byte* block) const { ::operator delete (block, std::align_val_t{64}); }
  };
  size_t total() const { return kGuard + shift_ + size_ + kGuard; }
  void fence([[maybe_unused]] bool up) const {
#if defined(BRISK_TEST_ADDRESS_SANITIZER)
    if (up) {
      ASAN_POISON_MEMORY_REGION(block_.get(), kGuard);
      ASAN_POISON_MEMORY_REGION(data() + size_, kGuard);
    } else {
      ASAN_UNPOISON_MEMORY_REGION(block_.get(), total());
    }
#endif
  }

  size_t size_;
  size_t shift_;
  std::unique_ptr<std::byte, Free> block_;
};

}  // namespace brisk::test
