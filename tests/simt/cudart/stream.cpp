// Streams and events. With seed 0 everything runs at once. From 1 on work runs only when a synchronisation, a query or
// another stream's wait needs it, from 2 on some of it earlier: a synchronisation that is missing shows as stale data.
#include "simt/cudart/stream.h"

#include "simt/block.h"
#include "simt/core.h"
#include "simt/cudart/call.h"
#include "simt/cudart/memory.h"

namespace brisk::simt {
namespace {

struct State {
  std::set<cudaStream_t> streams;
  std::set<cudaEvent_t> events;
  CUstream_st default_stream;
  CUstream_st thread_stream;
  bool capturing = false;
};

State& state() {
  static auto* state = new State;
  return *state;
}

using cudart::Work;

void run(const cudart::Action& action) {
  if (cudart::lasting_error()) return;
  cudaError_t error;
  {
    const cudart::DeviceAccess access;
    error = action();
  }
  if (error == cudaErrorLaunchFailure) cudart::set_lasting_error(error);
  if (error) cudart::remember_error(error);
}

// Runs the oldest work of the stream. forced: what it waits for first; else it may not be possible (false).
bool step(CUstream_st& stream, bool forced) {
  if (stream.work.empty()) return false;
  const Work& oldest = stream.work.front();
  if (oldest.kind == Work::Kind::wait && oldest.event->reached < oldest.recording) {
    if (!forced) return false;
    while (oldest.event->reached < oldest.recording && step(*oldest.event->stream, true)) {
    }
  }
  const Work work = std::move(stream.work.front());
  stream.work.pop_front();
  if (work.kind == Work::Kind::action) run(work.action);
  if (work.kind == Work::Kind::record) {
    work.event->reached = work.recording;
    work.event->time = std::chrono::steady_clock::now();
  }
  return true;
}

void finish_blocking_streams() {
  for (cudaStream_t stream : state().streams) {
    if (stream->blocking) cudart::finish(*stream);
  }
  cudart::finish(state().default_stream);
}

}  // namespace

Live live() {
  Live live;
  live.streams = static_cast<int64_t>(state().streams.size());
  live.events = static_cast<int64_t>(state().events.size());
  count_live_memory(live);
  count_live_graphs(live);
  return live;
}

namespace cudart {

void finish(CUstream_st& stream) {
  while (step(stream, true)) {
  }
}

void finish_all() {
  for (cudaStream_t stream : state().streams) finish(*stream);
  finish(state().default_stream);
  finish(state().thread_stream);
}

bool capturing() { return state().capturing; }

void set_capturing(bool capturing) { state().capturing = capturing; }

CUstream_st& stream_of(cudaStream_t stream) {
  if (stream == nullptr || stream == cudaStreamLegacy) return state().default_stream;
  return stream == cudaStreamPerThread ? state().thread_stream : *stream;
}

cudaError_t push(CUstream_st& stream, Work work) {
  const bool is_default = &stream == &state().default_stream;
  if (is_default) finish_blocking_streams();
  stream.work.push_back(std::move(work));
  const uint64_t seed = config().seed;
  if (seed == 0 || is_default) {
    finish(stream);
  } else if (seed >= 2) {
    for (cudaStream_t other : state().streams) {
      if (random_below(3) == 0) step(*other, false);
    }
  }
  return lasting_error();
}

cudaError_t submit(cudaStream_t to, cudaGraphNodeType type, Action action) {
  CUstream_st& stream = stream_of(to);
  if (stream.capture) {
    stream.capture->nodes.push_back({type, std::move(action), stream.after});
    stream.after = {stream.capture->nodes.size() - 1};
    return cudaSuccess;
  }
  if (&stream == &state().default_stream && capturing()) return cudaErrorStreamCaptureImplicit;
  return push(stream, {Work::Kind::action, std::move(action)});
}

}  // namespace cudart

cudaError_t enqueue_launch(cudaStream_t stream, const Launch& launch) {
  cudart::Call call("launch");
  if (call.failed()) return call.end();
  const dim3 grid = launch.grid, block = launch.block;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  const bool empty = threads == 0 || grid.x == 0 || grid.y == 0 || grid.z == 0;
  if (empty || threads > kMaxThreads || block.z > 64 || grid.x > 0x7fffffffu || grid.y > 65535 || grid.z > 65535) {
    return call.end(cudaErrorInvalidConfiguration);
  }
  if (launch.shared_bytes > SharedMemory::kMostBytes || launch.parameter_bytes > 4096) {
    return call.end(cudaErrorInvalidValue);
  }
  return call.end(cudart::submit(stream, cudaGraphNodeTypeKernel, [launch] { return run_grid(launch); }));
}

}  // namespace brisk::simt

using namespace brisk::simt;
using namespace brisk::simt::cudart;

extern "C" {

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* result, unsigned flags) {
  Call call("cudaStreamCreateWithFlags");
  if (call.failed()) return call.end();
  *result = new CUstream_st;
  (*result)->blocking = !(flags & cudaStreamNonBlocking);
  state().streams.insert(*result);
  return call.end();
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t* result, unsigned flags, int) {
  return cudaStreamCreateWithFlags(result, flags);
}

cudaError_t cudaStreamCreate(cudaStream_t* result) { return cudaStreamCreateWithFlags(result, cudaStreamDefault); }

cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  Call call("cudaStreamDestroy");
  finish(*stream);
  state().streams.erase(stream);
  delete stream;
  return call.end();
}

cudaError_t cudaStreamSynchronize(cudaStream_t to) {
  Call call("cudaStreamSynchronize");
  if (call.failed()) return call.end();
  CUstream_st& stream = stream_of(to);
  if (stream.capture) return call.end(cudaErrorStreamCaptureUnsupported);
  if (&stream == &state().default_stream) finish_blocking_streams();
  finish(stream);
  return call.end();
}

cudaError_t cudaStreamQuery(cudaStream_t to) {
  Call call("cudaStreamQuery");
  if (call.failed()) return call.end();
  CUstream_st& stream = stream_of(to);
  step(stream, true);
  return call.end(stream.work.empty() ? cudaSuccess : cudaErrorNotReady);
}

cudaError_t cudaDeviceSynchronize() {
  Call call("cudaDeviceSynchronize");
  if (call.failed()) return call.end();
  if (capturing()) return call.end(cudaErrorStreamCaptureUnsupported);
  finish_all();
  return call.end();
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument) {
  Call call("cudaLaunchHostFunc");
  if (call.failed()) return call.end();
  return call.end(submit(stream, cudaGraphNodeTypeHost, [=] {
    const DeviceAccess none(false);
    function(argument);
    return cudaSuccess;
  }));
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* result, unsigned) {
  Call call("cudaEventCreateWithFlags");
  if (call.failed()) return call.end();
  *result = new CUevent_st;
  state().events.insert(*result);
  return call.end();
}

cudaError_t cudaEventCreate(cudaEvent_t* result) { return cudaEventCreateWithFlags(result, cudaEventDefault); }

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  Call call("cudaEventDestroy");
  finish_all();
  state().events.erase(event);
  delete event;
  return call.end();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t to) {
  Call call("cudaEventRecord");
  if (call.failed()) return call.end();
  CUstream_st& stream = stream_of(to);
  event->stream = &stream == &state().default_stream ? cudaStreamLegacy : to;
  event->capture = stream.capture;
  event->captured_after = stream.after;
  if (stream.capture) return call.end();
  return call.end(push(stream, {Work::Kind::record, nullptr, event, ++event->recorded}));
}

cudaError_t cudaStreamWaitEvent(cudaStream_t to, cudaEvent_t event, unsigned) {
  Call call("cudaStreamWaitEvent");
  if (call.failed()) return call.end();
  CUstream_st& stream = stream_of(to);
  if (!event->capture) {
    if (stream.capture) return call.end(cudaErrorStreamCaptureIsolation);
    if (event->recorded == 0) return call.end();
    return call.end(push(stream, {Work::Kind::wait, nullptr, event, event->recorded}));
  }
  if (stream.capture && stream.capture != event->capture) return call.end(cudaErrorStreamCaptureMerge);
  if (!stream.capture) {  // the stream joins the capture
    stream.capture = event->capture;
    stream.after.clear();
    stream.capture->streams.insert(&stream);
  }
  for (size_t node : event->captured_after) {
    bool known = false;
    for (size_t other : stream.after) known = known || other == node;
    if (!known) stream.after.push_back(node);
  }
  return call.end();
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  Call call("cudaEventSynchronize");
  if (call.failed()) return call.end();
  if (event->capture) return call.end(cudaErrorCapturedEvent);
  while (event->reached < event->recorded && step(stream_of(event->stream), true)) {
  }
  return call.end();
}

cudaError_t cudaEventQuery(cudaEvent_t event) {
  Call call("cudaEventQuery");
  if (call.failed()) return call.end();
  if (event->capture) return call.end(cudaErrorCapturedEvent);
  if (event->reached < event->recorded) step(stream_of(event->stream), true);
  return call.end(event->reached < event->recorded ? cudaErrorNotReady : cudaSuccess);
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  Call call("cudaEventElapsedTime");
  if (call.failed()) return call.end();
  if (begin->reached < begin->recorded || end->reached < end->recorded) return call.end(cudaErrorNotReady);
  *milliseconds = std::chrono::duration<float, std::milli>(end->time - begin->time).count();
  return call.end();
}
}
