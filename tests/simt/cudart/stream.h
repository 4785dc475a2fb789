// Streams, events and graphs: work that runs when something waits for it.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <vector>

#include "simt/emulated_device.h"

namespace brisk::simt::cudart {

using Action = std::function<cudaError_t()>;

/// Something in a stream: an action, an event to record, or one to wait for.
struct Work {
  enum class Kind : uint8_t { action, record, wait };

  Kind kind;
  Action action;
  cudaEvent_t event = nullptr;
  uint64_t recording = 0;  ///< which record of the event
};

}  // namespace brisk::simt::cudart

// CUDA's opaque types.
struct CUgraphNode_st {
  cudaGraphNodeType type;
  brisk::simt::cudart::Action action;
  std::vector<size_t> after;  ///< nodes that come first
};

struct CUgraph_st {
  std::vector<CUgraphNode_st> nodes;
  cudaStream_t origin = nullptr;  ///< where the capture began
  std::set<cudaStream_t> streams;
};

struct CUgraphExec_st {
  std::shared_ptr<const std::vector<CUgraphNode_st>> nodes;
};

struct CUevent_st {
  uint64_t recorded = 0;  ///< records asked for
  uint64_t reached = 0;   ///< records that have run
  cudaStream_t stream = nullptr;
  std::chrono::steady_clock::time_point time;
  cudaGraph_t capture = nullptr;  ///< recorded while capturing
  std::vector<size_t> captured_after;
};

struct CUstream_st {
  std::deque<brisk::simt::cudart::Work> work;
  bool blocking = true;  ///< waits for the default stream, and it for this one
  cudaGraph_t capture = nullptr;
  std::vector<size_t> after;  ///< captured nodes that the next one follows
};

namespace brisk::simt::cudart {

/// An action at the end of the stream or, while it captures, a node of its graph.
cudaError_t submit(cudaStream_t stream, cudaGraphNodeType type, Action action);
/// The stream itself: CUDA has several names for the default one.
CUstream_st& stream_of(cudaStream_t stream);
cudaError_t push(CUstream_st& stream, Work work);
/// Runs all work that is under way.
void finish_all();
void finish(CUstream_st& stream);
/// Whether any stream captures.
bool capturing();
void set_capturing(bool capturing);
cudaError_t run_nodes(const std::vector<CUgraphNode_st>& nodes);

}  // namespace brisk::simt::cudart

namespace brisk::simt {
void count_live_memory(Live& live);
void count_live_graphs(Live& live);
}  // namespace brisk::simt
