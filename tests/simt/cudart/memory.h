// Device memory and pinned memory: each allocation a mapping of its own, so that what follows it and what was freed is
// not there.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace brisk::simt {

struct Allocation {
  const void* begin = nullptr;
  uint64_t bytes = 0;

  bool contains(const void* address) const {
    return address >= begin && static_cast<const char*>(address) < static_cast<const char*>(begin) + bytes;
  }
};

/// The device allocation that holds `address`.
bool find_device_allocation(const void* address, Allocation& found);

namespace cudart {

/// While one lives, device memory may be touched; else, under AddressSanitizer, only by kernels and copies.
class DeviceAccess {
 public:
  explicit DeviceAccess(bool open = true);
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;

 private:
  bool open_;
};

/// What a copy of these bytes in this direction must not be: across the end of an allocation, or between other kinds of
/// memory than it says.
cudaError_t check_copy(const void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t check_device_range(const void* begin, size_t bytes);

}  // namespace cudart
}  // namespace brisk::simt
