// What each function of the emulated runtime API begins and ends with, and the state they share.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <mutex>

#include "simt/emulated_device.h"

namespace brisk::simt::cudart {

/// One call of the runtime API: one at a time, counted, failed when a test has asked for it.
class Call {
 public:
  explicit Call(const char* name);

  /// It must do nothing but give back: a test wants it to fail, or the device is lost.
  bool failed() const { return error_ != cudaSuccess; }
  /// What the function returns: the failure asked for, else `error`; remembered for cudaGetLastError.
  cudaError_t end(cudaError_t error = cudaSuccess);

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  cudaError_t error_;
};

/// The error of a kernel or of a lost device, which all later calls return; cudaSuccess: none.
cudaError_t lasting_error();
void set_lasting_error(cudaError_t error);
/// Remembers an error of work that runs later than its call.
void remember_error(cudaError_t error);
/// A random number below `bound` of the schedule (seeds from 2 on).
uint64_t random_below(uint64_t bound);

}  // namespace brisk::simt::cudart
