// Allocation, copies and memsets of the emulated runtime API.
#include "simt/cudart/memory.h"

#include <sys/mman.h>

#include <cstring>
#include <map>

#include "simt/cudart/call.h"
#include "simt/cudart/stream.h"
#include "simt/sanitizer.h"

namespace brisk::simt {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kAlignment = 256;

struct Mapping {
  size_t bytes;  // what was asked for
  void* pages;
  size_t page_bytes;
};

/// Allocations of one kind, by their first byte.
class Allocations {
 public:
  // The block ends where its pages end, but for the alignment; behind them lies a page that may not be touched.
  void* add(size_t bytes) {
    const size_t page_bytes = (bytes + kPage - 1) / kPage * kPage + kPage;
    void* pages = mmap(nullptr, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) return nullptr;
    char* end = static_cast<char*>(pages) + page_bytes - kPage;
    mprotect(end, kPage, PROT_NONE);
    char* begin = end - (bytes + kAlignment - 1) / kAlignment * kAlignment;
    std::memset(pages, 0xFF, page_bytes - kPage);  // fresh memory is NaN
    forbid(pages, page_bytes - kPage);
    allow(begin, bytes);
    blocks_[begin] = {bytes, pages, page_bytes};
    bytes_ += static_cast<int64_t>(bytes);
    return begin;
  }

  bool remove(void* begin) {
    const auto found = blocks_.find(static_cast<char*>(begin));
    if (found == blocks_.end()) return false;
    const Mapping block = found->second;
    allow(block.pages, block.page_bytes);
    munmap(block.pages, block.page_bytes);
    bytes_ -= static_cast<int64_t>(block.bytes);
    blocks_.erase(found);
    return true;
  }

  bool find(const void* address, Allocation& found) const {
    auto after = blocks_.upper_bound(static_cast<char*>(const_cast<void*>(address)));
    if (after == blocks_.begin()) return false;
    --after;
    found = {after->first, after->second.bytes};
    return found.contains(address);
  }

  void set_allowed(bool allowed) const {
    for (const auto& [begin, block] : blocks_) allowed ? allow(begin, block.bytes) : forbid(begin, block.bytes);
  }

  int64_t count() const { return static_cast<int64_t>(blocks_.size()); }
  int64_t bytes() const { return bytes_; }

 private:
  std::map<char*, Mapping> blocks_;
  int64_t bytes_ = 0;
};

Allocations& device_memory() {
  static auto* memory = new Allocations;  // statics of tests may free theirs late
  return *memory;
}

Allocations& pinned_memory() {
  static auto* memory = new Allocations;
  return *memory;
}

int open_accesses = 0;

bool is_inside(const void* begin, size_t bytes) {
  Allocation found;
  if (!device_memory().find(begin, found) && !pinned_memory().find(begin, found)) return true;  // not ours to know
  return static_cast<const char*>(begin) + bytes <= static_cast<const char*>(found.begin) + found.bytes;
}

bool is_device_memory(const void* address) {
  Allocation found;
  return device_memory().find(address, found);
}

cudaError_t allocate(Allocations& memory, void** result, size_t bytes) {
  *result = nullptr;
  if (bytes == 0) return cudaSuccess;
  *result = memory.add(bytes);
  return *result ? cudaSuccess : cudaErrorMemoryAllocation;
}

}  // namespace

bool find_device_allocation(const void* address, Allocation& found) { return device_memory().find(address, found); }

void count_live_memory(Live& live) {
  live.allocations = device_memory().count();
  live.bytes = device_memory().bytes();
  live.pinned_allocations = pinned_memory().count();
  live.pinned_bytes = pinned_memory().bytes();
}

namespace cudart {

DeviceAccess::DeviceAccess(bool open) : open_(open) {
  open_accesses += open_ ? 1 : -1;
  if (kAddressSanitizer) device_memory().set_allowed(open_accesses > 0);
}

DeviceAccess::~DeviceAccess() {
  open_accesses -= open_ ? 1 : -1;
  if (kAddressSanitizer) device_memory().set_allowed(open_accesses > 0);
}

// Stricter than a device, which would take a wrong direction and find out by the addresses.
cudaError_t check_copy(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  if (!is_inside(to, bytes) || !is_inside(from, bytes)) return cudaErrorInvalidValue;
  if (kind == cudaMemcpyDefault) return cudaSuccess;
  const bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
  const bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
  if (bytes > 0 && (to_device != is_device_memory(to) || from_device != is_device_memory(from))) {
    return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

cudaError_t check_device_range(const void* begin, size_t bytes) {
  return bytes == 0 || (is_device_memory(begin) && is_inside(begin, bytes)) ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace cudart
}  // namespace brisk::simt

using namespace brisk::simt;
using namespace brisk::simt::cudart;

extern "C" {

cudaError_t cudaMalloc(void** result, size_t bytes) {
  Call call("cudaMalloc");
  if (call.failed()) return call.end();
  if (capturing()) return call.end(cudaErrorStreamCaptureUnsupported);
  if (static_cast<uint64_t>(device_memory().bytes()) + bytes > emulated_device().memory_bytes) {
    return call.end(cudaErrorMemoryAllocation);
  }
  const cudaError_t error = allocate(device_memory(), result, bytes);
  if (kAddressSanitizer) device_memory().set_allowed(open_accesses > 0);
  return call.end(error);
}

cudaError_t cudaFree(void* memory) {
  Call call("cudaFree");
  if (capturing()) return call.end(cudaErrorStreamCaptureUnsupported);
  finish_all();
  return call.end(!memory || device_memory().remove(memory) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaHostAlloc(void** result, size_t bytes, unsigned) {
  Call call("cudaHostAlloc");
  return call.failed() ? call.end() : call.end(allocate(pinned_memory(), result, bytes));
}

cudaError_t cudaMallocHost(void** result, size_t bytes) { return cudaHostAlloc(result, bytes, 0); }

cudaError_t cudaFreeHost(void* memory) {
  Call call("cudaFreeHost");
  finish_all();
  return call.end(!memory || pinned_memory().remove(memory) ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  Call call("cudaMemGetInfo");
  if (call.failed()) return call.end();
  *total = emulated_device().memory_bytes;
  *free = *total - static_cast<size_t>(device_memory().bytes());
  return call.end();
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  Call call("cudaMemcpyAsync");
  if (call.failed()) return call.end();
  if (const cudaError_t error = check_copy(to, from, bytes, kind)) return call.end(error);
  return call.end(submit(stream, cudaGraphNodeTypeMemcpy, [=] {
    std::memcpy(to, from, bytes);
    return cudaSuccess;
  }));
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  Call call("cudaMemcpy");
  if (call.failed()) return call.end();
  if (capturing()) return call.end(cudaErrorStreamCaptureUnsupported);
  if (const cudaError_t error = check_copy(to, from, bytes, kind)) return call.end(error);
  return call.end(submit(nullptr, cudaGraphNodeTypeMemcpy, [=] {
    std::memcpy(to, from, bytes);
    return cudaSuccess;
  }));
}

cudaError_t cudaMemsetAsync(void* memory, int value, size_t bytes, cudaStream_t stream) {
  Call call("cudaMemsetAsync");
  if (call.failed()) return call.end();
  if (const cudaError_t error = check_device_range(memory, bytes)) return call.end(error);
  return call.end(submit(stream, cudaGraphNodeTypeMemset, [=] {
    std::memset(memory, value, bytes);
    return cudaSuccess;
  }));
}

cudaError_t cudaMemset(void* memory, int value, size_t bytes) { return cudaMemsetAsync(memory, value, bytes, nullptr); }
}
