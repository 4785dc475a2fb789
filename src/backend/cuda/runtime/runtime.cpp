#include "backend/cuda/runtime/runtime.h"

#include <algorithm>
#include <cstring>

#include "backend/cuda/runtime/memory.h"
#include "backend/cuda/runtime/program.h"
#include "brisk/error.h"

namespace brisk::backend::cuda {
namespace {

constexpr int64_t kStateBytes = 64;  // counters, then the loss scale, behind a run's other results
constexpr int64_t kCounters = static_cast<int64_t>(Counter::count);
constexpr int64_t kScaleAt = kCounters * int64_t{sizeof(int64_t)};

Fault fault_of(const kernels::Status& status) {
  Fault fault;
  if (status.kind == kernels::Status::kLabel) fault.kind = Fault::Kind::label;
  if (status.kind == kernels::Status::kNonfiniteGradient) fault.kind = Fault::Kind::nonfinite_gradient;
  fault.node = status.node;
  fault.sample = status.sample;
  fault.value = status.value;
  return fault;
}

}  // namespace

CudaRuntime::CudaRuntime(const OpenDevice& device, const RuntimeOptions& options) : device_(device), options_(options) {
  const Current current(device.index);
  capture_ = make_stream();
  for (Event& event : sent_) event = make_event();
  for (Slot& slot : slots_) slot.done = make_event();
}

CudaRuntime::~CudaRuntime() { settle(); }

std::unique_ptr<Program> CudaRuntime::compile(const graph::Graph& graph, int64_t samples, const Bindings& bindings) {
  const Current current(device_.index);
  return std::make_unique<CudaProgram>(*this, graph, samples, bindings);
}

// ---- memory

void CudaRuntime::reserve(const RunLayout& layout) {
  const int64_t stride = (layout.results_bytes + 63) / 64 * 64 + kStateBytes;
  if (layout.bytes <= block_bytes_ && layout.upload_bytes <= staging_bytes_ && stride <= results_stride_) return;
  wait();
  if (layout.bytes > block_bytes_) move_block(layout.bytes);
  if (stride > results_stride_) move_results(stride);
  if (layout.upload_bytes <= staging_bytes_) return;
  PinnedBlock larger[2] = {make_pinned(layout.upload_bytes), make_pinned(layout.upload_bytes)};
  std::swap(staging_, larger);
  staging_bytes_ = layout.upload_bytes;
}

/// The old block goes first: both at once may be more than the device has.
void CudaRuntime::move_block(int64_t bytes) {
  DeviceMemory memory(device_);
  kernels::Status statuses[2];
  if (block_) memory.read(statuses, block_.bytes() + kernels::kCounterBytes, sizeof(statuses));
  block_ = DeviceBlock();
  block_bytes_ = 0;
  owner_ = nullptr;
  ++generation_;
  block_ = DeviceBlock(memory.allocate(bytes, "inputs, outputs and scalars"));
  memory.write(block_.bytes() + kernels::kCounterBytes, statuses, sizeof(statuses));
  block_bytes_ = bytes;
}

void CudaRuntime::move_results(int64_t stride) {
  PinnedBlock larger = make_pinned(stride * kRing);
  for (int64_t run = reported_; run < runs_; ++run) {  // of runs that are not reported yet
    std::memcpy(larger.bytes() + run % kRing * stride, home(run), static_cast<size_t>(results_stride_ - kStateBytes));
    std::memcpy(larger.bytes() + run % kRing * stride + stride - kStateBytes, home(run) + results_stride_ - kStateBytes,
                kStateBytes);
  }
  results_ = std::move(larger);
  results_stride_ = stride;
}

// ---- a run

char* CudaRuntime::staging() {
  if (runs_ - reported_ >= kRing)
    throw Error(ErrorCode::state, "Runtime::run", "four runs are unreported; take a report before the next run");
  const int use = parity();
  if (staged_run_[static_cast<size_t>(use)] >= reported_) {  // else that run is over
    const cudaError_t error = cudaEventQuery(sent_[use].get());
    if (error == cudaErrorNotReady) {
      cudaGetLastError();
      check(cudaEventSynchronize(sent_[use].get()), "waiting for an earlier run's inputs");
    } else {
      check(error, "asking for an earlier run's inputs");
    }
  }
  return staging_[use].bytes();
}

bool CudaRuntime::send(const CudaProgram* program, const RunLayout& layout, int64_t bytes) {
  const int use = parity();
  const bool others = owner_ != program;
  // The run that last read what is written now; all of them when the block had another form.
  const int64_t reader = others ? runs_ - 1 : staged_run_[static_cast<size_t>(use)];
  if (reader >= reported_)
    check(cudaStreamWaitEvent(device_.copies.get(), slot(reader).done.get(), 0), "ordering the inputs");
  check(cudaMemcpyAsync(block() + layout.uploads[use], staging_[use].get(), static_cast<size_t>(bytes),
                        cudaMemcpyHostToDevice, device_.copies.get()),
        "copying inputs");
  check(cudaEventRecord(sent_[use].get(), device_.copies.get()), "ordering the inputs");
  check(cudaStreamWaitEvent(device_.compute.get(), sent_[use].get(), 0), "ordering the inputs");
  owner_ = program;
  return others;
}

void CudaRuntime::finish(const Results& results) {
  const cudaStream_t stream = device_.compute.get();
  const auto fetch = [&](void* to, const void* from, int64_t bytes) {
    check(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream), "copying results");
  };
  char* const state = home(runs_) + results_stride_ - kStateBytes;
  fetch(home(runs_), block() + results.at, results.bytes);
  const bool together = results.counters && results.scale == static_cast<const void*>(results.counters + kCounters);
  if (results.counters) fetch(state, results.counters, kScaleAt + (together ? int64_t{sizeof(float)} : 0));
  if (results.scale && !together) fetch(state + kScaleAt, results.scale, sizeof(float));
  check(cudaEventRecord(slot(runs_).done.get(), stream), "ordering the results");
  slot(runs_).results = results;
  staged_run_[static_cast<size_t>(parity())] = runs_;
  ++runs_;
}

void CudaRuntime::wait() {
  check(cudaStreamSynchronize(device_.copies.get()), "waiting for the device");
  check(cudaStreamSynchronize(device_.compute.get()), "waiting for the device");
}

void CudaRuntime::settle() noexcept {
  for (const Stream* stream : {&device_.copies, &device_.compute})
    if (cudaStreamSynchronize(stream->get()) != cudaSuccess) cudaGetLastError();
  owner_ = nullptr;
}

// ---- reports

bool CudaRuntime::report(int in_flight, Report& report) {
  if (reported_ == runs_) return false;
  const Current current(device_.index);
  const Slot& oldest = slot(reported_);
  if (runs_ - reported_ > in_flight) {
    check(cudaEventSynchronize(oldest.done.get()), "waiting for a run");
  } else {
    const cudaError_t error = cudaEventQuery(oldest.done.get());
    if (error == cudaErrorNotReady) {
      cudaGetLastError();
      return false;
    }
    check(error, "asking for a run");
  }
  const Results& results = oldest.results;
  char* const at = home(reported_);
  const char* const state = at + results_stride_ - kStateBytes;
  kernels::Status status;
  std::memcpy(&status, at, sizeof(status));
  const bool updates = results.list != StepList::micro_batch, computes = results.list != StepList::update;
  if (!computes) std::memset(at + results.totals, 0, static_cast<size_t>(results.totals_bytes));
  report = Report();
  report.fault = fault_of(status);
  report.totals = reinterpret_cast<const double*>(at + results.totals);
  if (updates && results.stats >= 0) report.stats = reinterpret_cast<const float*>(at + results.stats);
  if (results.counters) report.counters = reinterpret_cast<const int64_t*>(state);
  if (results.scale) report.scale = reinterpret_cast<const float*>(state + kScaleAt);
  ++reported_;
  return true;
}

}  // namespace brisk::backend::cuda
