// Errors of the runtime API: remembered, lasting, asked for.
#include "simt/cudart/call.h"

#include "simt/block.h"
#include "simt/core.h"
#include "simt/cudart/stream.h"

namespace brisk::simt {
namespace {

struct State {
  int64_t calls = 0;
  int64_t calls_to_failure = 0;  // 0: none is to fail
  cudaError_t failure = cudaSuccess;
  bool failure_lasts = false;
  std::string failed_call;
  cudaError_t lasting = cudaSuccess;
  uint64_t random = 1;
};

std::recursive_mutex mutex;
State state;
thread_local cudaError_t last = cudaSuccess;

}  // namespace

namespace cudart {

Call::Call(const char* name) : lock_(mutex), error_(state.lasting) {
  ++state.calls;
  if (state.calls_to_failure == 0 || --state.calls_to_failure > 0) return;
  error_ = state.failure;
  state.failed_call = name;
  if (state.failure_lasts) state.lasting = state.failure;
}

cudaError_t Call::end(cudaError_t error) {
  if (error_ != cudaSuccess) error = error_;
  if (error == cudaSuccess) error = state.lasting;  // what ran in this call may have lost the device
  if (error != cudaSuccess && error != cudaErrorNotReady) last = error;
  return error;
}

cudaError_t lasting_error() { return state.lasting; }

void set_lasting_error(cudaError_t error) { state.lasting = error; }

void remember_error(cudaError_t error) { last = error; }

uint64_t random_below(uint64_t bound) { return next_random(state.random) % bound; }

}  // namespace cudart

EmulatedDevice& emulated_device() {
  static EmulatedDevice device;
  return device;
}

void reset_device() {
  const std::lock_guard lock(mutex);
  cudart::finish_all();
  state = {};
  last = cudaSuccess;
  emulated_device() = {};
}

void fail_call(int64_t n, cudaError_t error, bool lasting) {
  const std::lock_guard lock(mutex);
  state.calls_to_failure = n;
  state.failure = error;
  state.failure_lasts = lasting;
  state.failed_call.clear();
}

int64_t calls() { return state.calls; }

const std::string& failed_call() { return state.failed_call; }

}  // namespace brisk::simt

using brisk::simt::last;

extern "C" {

cudaError_t cudaPeekAtLastError() { return brisk::simt::state.lasting ? brisk::simt::state.lasting : last; }

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  last = cudaSuccess;
  return error;
}

const char* cudaGetErrorName(cudaError_t error) {
#define BRISK_SIMT_NAME(name) \
  case name:                  \
    return #name;
  switch (error) {
    BRISK_SIMT_NAME(cudaSuccess)
    BRISK_SIMT_NAME(cudaErrorInvalidValue)
    BRISK_SIMT_NAME(cudaErrorMemoryAllocation)
    BRISK_SIMT_NAME(cudaErrorInvalidConfiguration)
    BRISK_SIMT_NAME(cudaErrorInsufficientDriver)
    BRISK_SIMT_NAME(cudaErrorNoDevice)
    BRISK_SIMT_NAME(cudaErrorInvalidDevice)
    BRISK_SIMT_NAME(cudaErrorNotReady)
    BRISK_SIMT_NAME(cudaErrorLaunchFailure)
    BRISK_SIMT_NAME(cudaErrorStreamCaptureUnsupported)
    BRISK_SIMT_NAME(cudaErrorStreamCaptureUnjoined)
    BRISK_SIMT_NAME(cudaErrorUnknown)
    default:
      return "cudaError";
  }
#undef BRISK_SIMT_NAME
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaErrorLaunchFailure:
      return brisk::simt::last_error();
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorNoDevice:
      return "no CUDA-capable device is detected";
    case cudaErrorInsufficientDriver:
      return "CUDA driver version is insufficient for CUDA runtime version";
    default:
      return cudaGetErrorName(error);
  }
}
}
