// The runs of one Step or Predictor on a device: what they share. Runs are numbered from 0. Each sends its inputs
// through one of two staging blocks and brings its results home through one of a ring of four; the stream keeps them in
// order.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "backend/backend.h"
#include "backend/cuda/run_layout.h"
#include "backend/cuda/runtime/device.h"

namespace brisk::backend::cuda {

using LowerFunction = Lowering (*)(const graph::Graph& graph, const std::vector<int32_t>& nodes, int64_t samples,
                                   const Profile& profile, std::string_view implementation);

struct RuntimeOptions {
  bool graphs = true;  ///< false: kernels are launched one by one
  LowerFunction lower = &cuda::lower;
};

class CudaProgram;

class CudaRuntime : public Runtime {
 public:
  static constexpr int kRing = 4;

  CudaRuntime(const OpenDevice& device, const RuntimeOptions& options);
  ~CudaRuntime() override;
  std::unique_ptr<Program> compile(const graph::Graph& graph, int64_t samples, const Bindings& bindings) override;
  bool report(int in_flight, Report& report) override;
  int threads() const override { return 1; }
  int64_t scratch_bytes() const override { return block_bytes_; }
  int64_t entries() const override { return entries_; }

  // What programs use.

  /// What a run that has been queued brings, and where it lies on the device.
  struct Results {
    int64_t at = 0;     ///< RunLayout::results
    int64_t bytes = 0;  ///< RunLayout::results_bytes
    const int64_t* counters = nullptr;
    StepList list = StepList::micro_batch;
    const float* scale = nullptr;
    int64_t stats = -1;  ///< from the begin of the results, as totals; -1: the plan has none
    int64_t totals = 0;
    int64_t totals_bytes = 0;
  };
  const OpenDevice& device() const { return device_; }
  const RuntimeOptions& options() const { return options_; }
  cudaStream_t capture_stream() const { return capture_.get(); }
  /// Makes room for a plan. The block may move: programs compare `generation` with that of their addresses.
  void reserve(const RunLayout& layout);
  char* block() const { return block_.bytes(); }
  int64_t generation() const { return generation_; }
  /// Which of the two staging blocks the next run uses.
  int parity() const { return static_cast<int>(runs_ % 2); }
  /// The next run's staging block, once the device has taken what the last run that used it left there.
  char* staging();
  /// Queues the copy of the staging block's first bytes, in front of what is queued on the compute stream next.
  /// `program`: whose run it is; returns whether another program's was before, so that what it keeps in the block is to
  /// be sent again.
  bool send(const CudaProgram* program, const RunLayout& layout, int64_t bytes);
  /// Queues the copies of a run's results behind it, and counts it.
  void finish(const Results& results);
  /// Waits for all that is queued.
  void wait();
  /// After an error, and before a program is destroyed: waits for all that is queued, as far as the device still
  /// answers.
  void settle() noexcept;
  void count_entries(int64_t count) { entries_ += count; }

 private:
  struct Slot {
    Results results;
    Event done;
  };
  Slot& slot(int64_t run) { return slots_[static_cast<size_t>(run % kRing)]; }
  char* home(int64_t run) const { return results_.bytes() + run % kRing * results_stride_; }
  void move_block(int64_t bytes);
  void move_results(int64_t stride);

  const OpenDevice& device_;
  const RuntimeOptions options_;
  Stream capture_;
  DeviceBlock block_;
  int64_t block_bytes_ = 0, generation_ = 0;
  PinnedBlock staging_[2], results_;
  int64_t staging_bytes_ = 0, results_stride_ = 0;
  Event sent_[2];
  std::array<Slot, kRing> slots_;
  std::array<int64_t, 2> staged_run_ = {-1, -1};  // the last that used each staging block
  const CudaProgram* owner_ = nullptr;
  int64_t runs_ = 0, reported_ = 0;
  int64_t entries_ = 0;
};

}  // namespace brisk::backend::cuda
