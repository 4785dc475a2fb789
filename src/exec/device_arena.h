// One block of a device's memory, zeroed; owned.
#pragma once

#include <string>
#include <utility>

#include "backend/backend.h"

namespace brisk::exec {

class DeviceArena {
 public:
  DeviceArena() = default;
  /// Exactly so many bytes; nothing is taken for 0. Throws Error [memory] naming `what`.
  DeviceArena(backend::Memory& memory, int64_t bytes, const std::string& what)
      : memory_(&memory), bytes_(bytes), data_(bytes == 0 ? nullptr : memory.allocate(bytes, what)) {}
  ~DeviceArena() {
    if (data_) memory_->release(data_);
  }
  DeviceArena(DeviceArena&& other) noexcept
      : memory_(other.memory_), bytes_(std::exchange(other.bytes_, 0)), data_(std::exchange(other.data_, nullptr)) {}
  DeviceArena& operator=(DeviceArena&& other) noexcept {
    DeviceArena taken(std::move(other));
    std::swap(memory_, taken.memory_);
    std::swap(bytes_, taken.bytes_);
    std::swap(data_, taken.data_);
    return *this;
  }

  /// An address of the device.
  char* data() const { return static_cast<char*>(data_); }
  float* floats() const { return static_cast<float*>(data_); }
  int64_t bytes() const { return bytes_; }

 private:
  backend::Memory* memory_ = nullptr;
  int64_t bytes_ = 0;
  void* data_ = nullptr;
};

}  // namespace brisk::exec
