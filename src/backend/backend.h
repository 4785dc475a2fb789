// The seam below which devices differ. Passes ask a Target; the executor drives a Backend's Runtime.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "brisk/tensor.h"
#include "graph/graph.h"

namespace brisk::backend {

/// What `select` learns of one node (or fused group): the implementation and what it needs.
struct Choice {
  std::string implementation;         ///< empty: nothing supports it, see declined
  std::vector<std::string> declined;  ///< "onednn: would reorder ...", in order
  int64_t workspace_bytes = 0;
  int32_t launches = 0;  ///< kernels on a device
  double seconds = 0;    ///< modelled; 0: this target has no model
};

/// A device as the passes see it: constructible without the device.
class Target {
 public:
  virtual ~Target() = default;
  virtual std::string name() const = 0;  ///< "cpu avx512"
  virtual int lanes() const = 0;         ///< samples of a block in Layout::lanes
  /// First candidate that supports the nodes (several: run as one kernel) at this batch.
  virtual Choice choose(const graph::Graph&, const std::vector<int32_t>& nodes, int64_t samples) const = 0;
  /// Whether the plan's batched activations lie row-major (Layout::plain) instead of as layout() says.
  virtual bool plain(const graph::Graph&, int64_t /*samples*/) const { return false; }
  /// How a batched activation of this type lies.
  virtual graph::Layout layout(const graph::ValueType&) const { return graph::Layout::lanes; }
  /// Whether the node's kernels read and write activations of this 16-bit type; otherwise casts stand around it.
  virtual bool computes(const graph::Node&, DType) const { return false; }
  /// The 16-bit type that the device has matrix units for: what Precision::automatic chooses. f32: none.
  virtual DType matrix_type() const { return DType::f32; }
  /// Whether runs end later than run() returns. What a run decides (skips, the loss scale, which update's rates hold)
  /// is then decided by the plan itself from counters of its own, and matrices read low-precision shadows of the
  /// parameters, which the update keeps.
  virtual bool asynchronous() const { return false; }
  /// Whether output 0 of the node may overwrite its input i.
  virtual bool in_place(const graph::Graph&, int32_t node, int input) const = 0;
  virtual int64_t scratch_bytes(const graph::Graph&, int64_t samples) const = 0;  ///< of each worker
  virtual int64_t library_bound_bytes() const = 0;
};

/// The memory of a device. Addresses are the device's; contents are ordered behind what its runtimes have queued.
class Memory {
 public:
  virtual ~Memory() = default;
  /// Zeros, aligned for every kernel. Throws Error [memory] naming `what`, the bytes, what is free and what to do.
  virtual void* allocate(int64_t bytes, const std::string& what) = 0;
  virtual void release(void* address) noexcept = 0;
  /// From and to host memory; done when it returns.
  virtual void write(void* to, const void* from, int64_t bytes) = 0;
  virtual void read(void* to, const void* from, int64_t bytes) = 0;
  virtual int64_t available_bytes() const = 0;
};

/// Where a plan's values outside of its activations lie: addresses of the device, by Graph::parameters index.
struct Bindings {
  char* arena = nullptr;
  std::vector<float*> parameters, gradients, moment1, moment2, staged;  ///< buffers are among the parameters
  std::vector<void*> shadows;
  float* scale = nullptr;           ///< Place::state, slot 0
  int64_t* counters = nullptr;      ///< Place::state, slot 1
  const float* scalars = nullptr;   ///< host memory by Graph::scalars index, read while run() is called
  const float* schedule = nullptr;  ///< asynchronous: see RunArguments::scheduled
};

/// The first error that a kernel met in a run.
struct Fault {
  enum class Kind : uint8_t { none, label, nonfinite_gradient, user_op } kind = Kind::none;
  int32_t node = -1;
  int64_t sample = -1;
  int64_t value = 0;
  std::exception_ptr exception;  ///< user_op: what it threw
};

/// What changes from run to run.
struct RunArguments {
  const void* const* inputs = nullptr;  ///< by Graph::inputs index: the user's row-major host memory
  void* const* outputs = nullptr;       ///< by Graph::outputs index, host memory; null: not wanted
  float* const* parameters = nullptr;   ///< by Graph::parameters index: what nodes read in this run; null: as bound
  bool accumulate = false;
  int64_t attempt = 0;
  int64_t first_sample = 0;
  /// Asynchronous runtimes: Bindings::schedule (host) is a ring of kScheduledUpdates rows, row u % kScheduledUpdates
  /// with the value of each of Graph::scalars in update u (those that do not follow the updates are ignored). It holds
  /// the updates below `scheduled`; rows of updates that were given to an earlier run have not changed.
  int64_t scheduled = 0;
};
constexpr int64_t kScheduledUpdates = 256;

/// Which nodes a run covers: a micro-batch, an update, or both at once.
enum class StepList : uint8_t { micro_batch, micro_batch_and_update, update };

/// Counters of Place::state, in their order.
enum class Counter : uint8_t { updates, good, skips_in_row, skipped, count };

/// What a run brought; pointers hold until the next call of the runtime.
struct Report {
  Fault fault;
  const double* totals = nullptr;     ///< two by Graph::totals index, of this run alone
  const float* stats = nullptr;       ///< gradient_stats' output, when the run covered an update
  const float* scale = nullptr;       ///< the plan's state after the run; null: the plan has none
  const int64_t* counters = nullptr;  ///< by Counter
};

/// A plan made executable on one device.
class Program {
 public:
  virtual ~Program() = default;
  /// No allocation; returns when the work is done (CPU) or queued. Inputs may be reused then. Each run has a report.
  virtual void run(StepList list, const RunArguments& arguments) = 0;
  /// Makes the shadows that the plan reads anew, after parameters were written from outside.
  virtual void refresh_shadows() {}
};

/// Threads or streams of one Step. Runs of all runtimes of one device happen in the order of their calls.
class Runtime {
 public:
  virtual ~Runtime() = default;
  /// graph: after all passes; it must outlive the program.
  virtual std::unique_ptr<Program> compile(const graph::Graph& graph, int64_t samples, const Bindings& bindings) = 0;
  /// The report of the oldest run that has not been reported, in the order of runs. Waits for it only while more than
  /// `in_flight` runs are unreported. False: none was taken.
  virtual bool report(int in_flight, Report& report) = 0;
  virtual int threads() const = 0;
  virtual int64_t scratch_bytes() const = 0;  ///< held now, of all workers
  virtual int64_t entries() const = 0;        ///< times the pool was entered, or work was queued
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::shared_ptr<const Target> target() const = 0;
  virtual std::unique_ptr<Runtime> runtime(int threads) const = 0;  ///< 0: all allowed
  virtual Memory& memory() const = 0;
  virtual bool host_memory() const { return false; }  ///< the device computes on the host's own memory
};

/// The backend of a device; throws Error [backend] saying why it is absent and what to do.
const Backend& backend_for(Device device);
/// What plans for a device are made with; also for one that is not in the machine.
std::shared_ptr<const Target> target_for(Device device);
/// A device that plans can be made for by its name ("h200"); throws Error [option] listing the names.
std::shared_ptr<const Target> target_named(const std::string& name);
/// The devices that can be used now, best first; the CPU is always the last. `why_not`: what stands against each other.
std::vector<Device> devices(std::string& why_not);

}  // namespace brisk::backend
