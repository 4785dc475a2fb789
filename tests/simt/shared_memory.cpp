// Shared memory of a block: fresh and NaN for each, with gaps that AddressSanitizer watches.
#include <sys/mman.h>

#include <cstdlib>

#include "simt/block.h"
#include "simt/sanitizer.h"

namespace brisk::simt {
namespace {

// Not memset: the sanitizers would take it for an access of the running thread.
void fill_with_nan(void* memory, size_t bytes) {
  asm volatile("rep stosb" : "+D"(memory), "+c"(bytes) : "a"(0xFF) : "memory");
}

}  // namespace

SharedMemory::~SharedMemory() {
  if (window_) munmap(window_, kWindow + 8 * (kOrders + 2));
}

void SharedMemory::map() {
  const size_t bytes = kWindow + 8 * (kOrders + 2);
  if (window_) {
    allow(window_, kWindow);
    munmap(window_, bytes);
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  window_ = static_cast<unsigned char*>(memory);
  orders_ = window_ + kWindow;
}

void SharedMemory::clear(size_t dynamic_bytes) {
  // A new mapping makes ThreadSanitizer forget the accesses of the block before, without an order between the two.
  if (!window_ || kThreadSanitizer) map();
  dynamic_bytes_ = dynamic_bytes;
  arrays_.clear();
  next_ = kGap;
  static_bytes_ = 0;
  next_order_ = 0;
  allow(window_, kWindow);
  fill_with_nan(dynamic(), dynamic_bytes);
  forbid(window_, kWindow);
  allow(dynamic(), dynamic_bytes);
}

void* SharedMemory::array(const void* key, size_t bytes, const char* name) {
  for (const Array& known : arrays_) {
    if (known.key == key) return known.memory;
  }
  static_bytes_ += bytes;
  if (static_bytes_ > kMostStaticBytes) fail("static shared memory over 48 KiB at '%s'", name);
  if (static_bytes_ + dynamic_bytes_ > kMostBytes) fail("static and dynamic shared memory over 227 KiB at '%s'", name);
  void* memory = window_ + next_;
  next_ += (bytes + 15) / 16 * 16 + kGap;
  if (next_ > kWindow - dynamic_span()) fail("no room left for the shared array '%s'", name);
  allow(memory, bytes);
  fill_with_nan(memory, bytes);
  arrays_.push_back({key, memory});
  return memory;
}

bool SharedMemory::contains(const void* address, size_t bytes) const {
  auto* begin = static_cast<const unsigned char*>(address);
  return begin >= window_ && begin + bytes <= window_ + kWindow;
}

void* shared_array(const void* key, size_t bytes, const char* name) { return worker().shared.array(key, bytes, name); }

bool in_shared_memory(const void* address, size_t bytes) { return worker().shared.contains(address, bytes); }

}  // namespace brisk::simt
