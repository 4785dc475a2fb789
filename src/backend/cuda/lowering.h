// From a node to launches: what an implementation sees of a node (Call) and what it answers (Lowering). No CUDA header:
// plans are made in builds without a toolkit too.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/operands.h"
#include "brisk/kernels/run_state.h"
#include "brisk/kernels/status.h"
#include "brisk/kernels/stream.h"
#include "graph/graph.h"

namespace brisk::backend::cuda {

/// A device as plans are made for it: read from the device, or one of the table of those known by name.
struct Profile {
  std::string name;                 ///< "h200"
  double bytes_per_s = 0;           ///< of its memory
  int capability = 80;              ///< compute capability, 10 x major + minor
  double flops_per_s = 0;           ///< dense, 16 bits, summed in f32
  double flops_per_s_f32 = 0;       ///< outside of the matrix units
  int64_t memory_bytes = 0;         ///< all of it
  int processors = 108;             ///< streaming multiprocessors
  int64_t shared_bytes = 99 << 10;  ///< shared memory that a block may use
};

/// A node (or a group that runs as one kernel) as an implementation sees it: everything about sizes is known.
struct Call {
  const graph::Graph& graph;
  const std::vector<int32_t>& nodes;  ///< one, or the members of a group in their order
  const graph::Node& node;            ///< the last of them
  int64_t samples = 0;                ///< N
  const Profile& profile;
  std::vector<graph::ValueId> in, out;  ///< bound_inputs, bound_outputs

  const graph::ValueType& input(int i) const { return graph.type(in[static_cast<size_t>(i)]); }
  const graph::ValueType& output(int i) const { return graph.type(out[static_cast<size_t>(i)]); }
  graph::Layout input_layout(int i) const { return graph.value(in[static_cast<size_t>(i)]).layout; }
  graph::Layout output_layout(int i) const { return graph.value(out[static_cast<size_t>(i)]).layout; }
  int inputs() const { return static_cast<int>(in.size()); }
  int outputs() const { return static_cast<int>(out.size()); }
  /// Elements of all samples.
  int64_t elements(const graph::ValueType& type) const { return type.elements() * (type.batched() ? samples : 1); }
};

/// Bound operands of a node. All pointers are the device's; they are the same in each run, only `accumulate` is not.
struct Operands {
  const void* const* in = nullptr;  ///< one pointer an input, in the order of Call::in
  void* const* out = nullptr;
  bool accumulate = false;      ///< RunState::accumulate, known when launched: each value of it is captured apart
  int32_t* counters = nullptr;  ///< kernels::kCounterBytes, zero between launches
  int32_t node = -1;            ///< the node's index in the plan, for the status word
  const kernels::RunState* run = nullptr;
  const float* schedule = nullptr;  ///< [kScheduledUpdates][Graph::scalars]: the ring of RunArguments::scheduled
  float* selected = nullptr;        ///< [Graph::scalars]: where scalars that are outputs (of select_scalars) lie
  kernels::Status* status = nullptr;
  const void* const* tables = nullptr;  ///< by Lowering::tables
  char* workspace = nullptr;            ///< Lowering::workspace_bytes, 256-byte aligned

  template <class T>
  const T* input(int i) const {
    return static_cast<const T*>(in[i]);
  }
  template <class T>
  T* output(int i) const {
    return static_cast<T*>(out[i]);
  }
  template <class T>
  const T* table(int i) const {
    return static_cast<const T*>(tables[i]);
  }
};

/// Launches kernels (or, cheaper than one, copies or fills) on the stream; it may be captured. May throw Error.
using LaunchFunction = std::function<void(const Operands&, CudaStream)>;

struct Launch {
  std::string kernel;  ///< "gemm"
  double bytes = 0;    ///< read and written once
  double flops = 0;
  LaunchFunction run;
  int kernels = 1;  ///< that it launches
};

/// Constant data of a node in device memory, for example the pointers of a walk over all parameters. `fill` writes it
/// on the host (zeros before) once the operands' addresses are known; `run`, `status` and `tables` are not set then.
struct Table {
  int64_t bytes = 0;
  std::function<void(const Operands&, void* host)> fill;
};

/// What a node becomes.
class Lowering {
 public:
  void launch(std::string kernel, double bytes, double flops, LaunchFunction run, int kernels = 1) {
    launches.push_back({std::move(kernel), bytes, flops, std::move(run), kernels});
  }
  /// Returns the byte offset of a new 256-byte aligned region.
  int64_t workspace(int64_t bytes) {
    const int64_t at = workspace_bytes;
    workspace_bytes += (bytes + 255) / 256 * 256;
    return at;
  }
  /// Returns the index for Operands::table.
  int table(int64_t bytes, std::function<void(const Operands&, void* host)> fill) {
    tables.push_back({bytes, std::move(fill)});
    return static_cast<int>(tables.size()) - 1;
  }

  std::vector<Launch> launches;
  /// Once the operands' addresses are known, with the device current and away from any capture; as for Table::fill,
  /// `run`, `status` and `tables` are not set. Null: there is nothing to prepare.
  std::function<void(const Operands&)> prepare;
  std::vector<Table> tables;
  int64_t workspace_bytes = 0;
};

/// One candidate for one op.
struct Implementation {
  std::string_view op;
  std::string_view name;                           ///< "native", "cublaslt"
  std::string (*declines)(const Call&) = nullptr;  ///< why it cannot take this call; "" or null: it can
  void (*lower)(const Call&, Lowering&) = nullptr;
};

/// The ordered candidates, best first (implementations.cpp).
std::span<const Implementation> implementations();

/// Lowers one node, or the members of a group as one kernel, with the named implementation.
Lowering lower(const graph::Graph& graph, const std::vector<int32_t>& nodes, int64_t samples, const Profile& profile,
               std::string_view implementation);

/// The profile of a device in this machine; null: there is none, or this build has no CUDA runtime (runtime/,
/// no_cuda/).
const Profile* device_profile(Device device);

}  // namespace brisk::backend::cuda
