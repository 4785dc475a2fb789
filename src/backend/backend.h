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
};

/// A device as the passes see it: constructible without the device.
class Target {
 public:
  virtual ~Target() = default;
  virtual std::string name() const = 0;  ///< "cpu avx512"
  virtual int lanes() const = 0;         ///< samples of a block in Layout::lanes
  /// First candidate that supports the nodes (several: run as one kernel) at this batch.
  virtual Choice choose(const graph::Graph&, const std::vector<int32_t>& nodes, int64_t samples) const = 0;
  /// Whether the plan's batched activations lie row-major (Layout::plain) instead of in lanes.
  virtual bool plain(const graph::Graph&, int64_t /*samples*/) const { return false; }
  /// Whether output 0 of the node may overwrite its input i.
  virtual bool in_place(const graph::Graph&, int32_t node, int input) const = 0;
  virtual int64_t scratch_bytes(const graph::Graph&, int64_t samples) const = 0;  ///< of each worker
  virtual int64_t library_bound_bytes() const = 0;
};

/// Base addresses that a run is bound to; index by Place and slot.
struct Bindings {
  char* arena = nullptr;
  std::vector<float*> parameters, gradients, moment1, moment2;  ///< by Graph::parameters index (buffers too)
  float* scalars = nullptr;                                     ///< by Graph::scalars index
  double* totals = nullptr;                                     ///< two by Graph::totals index
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
  void* const* outputs = nullptr;       ///< by Graph::outputs index; null: not wanted
  float* const* parameters = nullptr;   ///< by Graph::parameters index: what nodes read in this run; null: as bound
  bool accumulate = false;
  int64_t attempt = 0;
  int64_t first_sample = 0;
};

/// Which nodes a run covers: a micro-batch, an update, or both at once.
enum class StepList : uint8_t { micro_batch, micro_batch_and_update, update };

/// A plan made executable on one device.
class Program {
 public:
  virtual ~Program() = default;
  /// No allocation; returns when the work is done (CPU) or queued. The fault is this run's.
  virtual Fault run(StepList list, const RunArguments& arguments) = 0;
};

/// Threads or streams of one Step.
class Runtime {
 public:
  virtual ~Runtime() = default;
  /// graph: after all passes; it must outlive the program.
  virtual std::unique_ptr<Program> compile(const graph::Graph& graph, int64_t samples, const Bindings& bindings) = 0;
  virtual int threads() const = 0;
  virtual int64_t scratch_bytes() const = 0;  ///< held now, of all workers
  virtual int64_t entries() const = 0;        ///< times the pool was entered
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::shared_ptr<const Target> target() const = 0;
  virtual std::unique_ptr<Runtime> runtime(int threads) const = 0;  ///< 0: all allowed
};

/// The backend of a device; throws Error [backend] saying why it is absent and what to do.
const Backend& backend_for(Device device);

}  // namespace brisk::backend
