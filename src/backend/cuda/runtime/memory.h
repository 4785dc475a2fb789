// A device's memory behind the seam.
#pragma once

#include "backend/backend.h"
#include "backend/cuda/runtime/device.h"

namespace brisk::backend::cuda {

class DeviceMemory : public Memory {
 public:
  explicit DeviceMemory(const OpenDevice& device) : device_(device) {}
  void* allocate(int64_t bytes, const std::string& what) override;
  void release(void* address) noexcept override;
  void write(void* to, const void* from, int64_t bytes) override;
  void read(void* to, const void* from, int64_t bytes) override;
  int64_t available_bytes() const override;

 private:
  const OpenDevice& device_;
};

}  // namespace brisk::backend::cuda
