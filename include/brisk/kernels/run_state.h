// brisk/kernels/run_state.h: what changes from run to run, read by kernels from device memory, so that a step captured
// as a CUDA graph is replayed as it is.
#pragma once

#include <cstdint>

namespace brisk::kernels {

/// Lies in device memory; written before a run starts.
struct RunState {
  int64_t attempt = 0;  ///< windows begun: counter of random numbers
  int64_t first_sample =
      0;                   ///< index of this micro-batch's first sample in the global window: counter of random numbers
  int64_t accumulate = 0;  ///< not 0: gradients add to what the window's earlier micro-batches left
};

}  // namespace brisk::kernels
