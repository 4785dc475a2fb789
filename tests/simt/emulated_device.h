// What tests ask of the emulated device beyond CUDA: which device it is, calls that fail, what has not been given back.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace brisk::simt {

/// The machine that the runtime API tells of. Tests change it and put it back (reset_device).
struct EmulatedDevice {
  int count = 1;                        ///< devices; 0: cudaErrorNoDevice
  int driver_version = CUDART_VERSION;  ///< 0: no driver is installed; below the runtime's: it is too old
  int major = 9;                        ///< compute capability
  int minor = 0;
  size_t memory_bytes = size_t{8} << 30;
  std::string name = "Emulated GPU";
  int processors = 4;  ///< streaming multiprocessors
};
EmulatedDevice& emulated_device();

/// A new device in a new process: no errors, default properties, calls counted from 0, nothing left to fail. Waits for
/// work under way; what is allocated stays so.
void reset_device();

/// The n-th call of the runtime API from now on (1: the next) fails with `error`; 0: none does. Launches count as
/// calls. A call that gives something back (cudaFree, cudaStreamDestroy...) does so even when it fails. lasting: as
/// when the device is lost, all calls after it fail as well.
void fail_call(int64_t n, cudaError_t error = cudaErrorUnknown, bool lasting = false);
/// Calls of the runtime API, launches among them, since the program or reset_device(). Not counted, for they cannot
/// fail: cudaGetLastError, cudaPeekAtLastError, cudaGetErrorName, cudaGetErrorString.
int64_t calls();
/// The name of the call that fail_call made fail; empty: none yet.
const std::string& failed_call();

/// What has been made and not been given back.
struct Live {
  int64_t allocations = 0;  ///< of device memory
  int64_t bytes = 0;
  int64_t pinned_allocations = 0;
  int64_t pinned_bytes = 0;
  int64_t streams = 0;
  int64_t events = 0;
  int64_t graphs = 0;
  int64_t executable_graphs = 0;

  bool operator==(const Live&) const = default;
};
Live live();

}  // namespace brisk::simt
