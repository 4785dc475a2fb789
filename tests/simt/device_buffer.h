// What tests of kernels share: memory of the (emulated) device, and schedules.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "simt/core.h"

namespace brisk::simt {

inline void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(error));
}

/// Device memory of exactly `count` elements. What lies beyond its ends, and the host's use of its pointer, is reported
/// by the ASan flavour. Fresh memory is 0xFF in each byte: NaN.
template <class T>
class DeviceBuffer {
 public:
  explicit DeviceBuffer(std::size_t count) : count_(count) {
    void* memory = nullptr;
    check(cudaMalloc(&memory, count * sizeof(T)));
    data_ = static_cast<T*>(memory);
  }
  explicit DeviceBuffer(const std::vector<T>& values) : DeviceBuffer(values.size()) { upload(values); }
  ~DeviceBuffer() { cudaFree(data_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  T* data() const { return data_; }
  std::size_t size() const { return count_; }
  void upload(const std::vector<T>& values) {
    if (values.size() != count_) throw std::invalid_argument("DeviceBuffer: as many values as elements");
    check(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  /// Waits for the device first.
  std::vector<T> download() const {
    check(cudaDeviceSynchronize());
    std::vector<T> values(count_);
    check(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// Calls body() once for each schedule: threads and blocks in order, in reverse, and at random; asynchronous work as
/// early and as late as allowed. The results must not depend on it.
template <class Body>
void for_each_schedule(Body body, std::uint64_t schedules = 4) {
  const std::uint64_t before = config().seed;
  for (std::uint64_t seed = 0; seed < schedules; ++seed) {
    SCOPED_TRACE("schedule " + std::to_string(seed));
    config().seed = seed;
    body();
  }
  config().seed = before;
}

}  // namespace brisk::simt
