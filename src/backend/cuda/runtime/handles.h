// Objects of the CUDA runtime that are destroyed with their owner, and errors of its calls as exceptions.
#pragma once

#include <cuda_runtime_api.h>

#include <string>
#include <utility>

namespace brisk::backend::cuda {

/// Throws Error [backend], or [memory] when the device has none left, unless the call succeeded: what was being done
/// ("copying inputs"), what went wrong and what to do. The error is taken off the thread's record.
void check(cudaError_t error, const char* doing);

template <class T, cudaError_t (*kDestroy)(T)>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T value) : value_(value) {}
  ~Handle() {
    if (value_ && kDestroy(value_) != cudaSuccess) cudaGetLastError();
  }
  Handle(Handle&& other) noexcept : value_(std::exchange(other.value_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }

  T get() const { return value_; }
  T release() { return std::exchange(value_, nullptr); }
  char* bytes() const { return static_cast<char*>(value_); }
  explicit operator bool() const { return value_ != nullptr; }

 private:
  T value_ = nullptr;
};

using Stream = Handle<cudaStream_t, cudaStreamDestroy>;
using Event = Handle<cudaEvent_t, cudaEventDestroy>;
using GraphHandle = Handle<cudaGraph_t, cudaGraphDestroy>;
using GraphExec = Handle<cudaGraphExec_t, cudaGraphExecDestroy>;
using DeviceBlock = Handle<void*, cudaFree>;
using PinnedBlock = Handle<void*, cudaFreeHost>;

/// Independent of the default stream.
Stream make_stream();
/// For order, not for time.
Event make_event();
/// Host memory that a device copies from and to on its own; zeroed; nothing for 0 bytes.
PinnedBlock make_pinned(int64_t bytes);

/// While it lives, the thread's current device is this one.
class Current {
 public:
  explicit Current(int index);
  ~Current();
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

}  // namespace brisk::backend::cuda
