// Which kernel runs each node: the first candidate of the ordered list that does not decline; and what it costs.
#include <algorithm>

#include "backend/cuda.h"
#include "backend/cuda/cuda_target.h"
#include "backend/cuda/lower/lower.h"
#include "backend/cuda/profiles.h"
#include "backend/cuda/run_layout.h"
#include "core/text.h"
#include "graph/op_table.h"

namespace brisk::backend::cuda {

using graph::Graph;
using graph::Node;

namespace {

Call make_call(const Graph& graph, const std::vector<int32_t>& nodes, int64_t samples, const Profile& profile) {
  return {graph,
          nodes,
          graph.nodes[static_cast<size_t>(nodes.back())],
          samples,
          profile,
          bound_inputs(graph, nodes),
          bound_outputs(graph, nodes)};
}

}  // namespace

Lowering lower(const Graph& graph, const std::vector<int32_t>& nodes, int64_t samples, const Profile& profile,
               std::string_view implementation) {
  const Call call = make_call(graph, nodes, samples, profile);
  Lowering lowering;
  for (const Implementation& candidate : implementations())
    if (candidate.lower && candidate.op == call.node.op->name && candidate.name == implementation) {
      candidate.lower(call, lowering);
      return lowering;
    }
  throw Error(ErrorCode::backend, graph::label(call.node),
              cat("no implementation \"", implementation, "\" for CUDA devices"), call.node.where);
}

namespace {

int32_t kernels_of(const Lowering& lowering) {
  int32_t count = 0;
  for (const Launch& launch : lowering.launches) count += launch.kernels;
  return count;
}

/// Whether the node is left out when its output shares the input's memory, as it does then.
bool is_shared_view(const Call& call, const Lowering& lowering) {
  return call.node.op->view && call.graph.value(call.in[0]).place == graph::Place::activation &&
         lowering.launches.size() == 1 && lowering.launches[0].kernel == "copy";
}

}  // namespace

double modelled_seconds(const Call& call, const Lowering& lowering) {
  const Profile& profile = call.profile;
  const bool low = !call.in.empty() && size_of(call.input(0).dtype) == 2;
  const double rate = low && is_matrix_operation(call.node.op->name) ? profile.flops_per_s : profile.flops_per_s_f32;
  return (operand_bytes(call) + 2.0 * static_cast<double>(lowering.workspace_bytes)) / profile.bytes_per_s +
         operations(call) / rate + kernels_of(lowering) * kLaunchSeconds;
}

namespace {

class CudaTarget : public Target {
 public:
  explicit CudaTarget(const Profile& profile) : profile_(profile) {}

  std::string name() const override { return cat("cuda ", profile_.name, " (", architecture(profile_), ")"); }
  int lanes() const override { return 1; }
  graph::Layout layout(const graph::ValueType& type) const override {
    return type.shape.rank() == 3 ? graph::Layout::channels_last : graph::Layout::plain;
  }
  bool computes(const Node& node, DType dtype) const override {
    return takes_low(node.op->name) && (dtype != DType::bf16 || profile_.capability >= 80);
  }
  DType matrix_type() const override { return profile_.capability >= 80 ? DType::bf16 : DType::f16; }
  bool asynchronous() const override { return true; }

  Choice choose(const Graph& graph, const std::vector<int32_t>& nodes, int64_t samples) const override {
    const Call call = make_call(graph, nodes, samples, profile_);
    const std::string_view op = call.node.op->name;
    Choice choice;
    bool known = false;
    for (const Implementation& candidate : implementations()) {
      if (candidate.op != op) continue;
      known = true;
      const std::string reason = candidate.declines ? candidate.declines(call) : std::string();
      if (!reason.empty()) {
        choice.declined.push_back(cat(candidate.name, ": ", reason));
      } else if (choice.implementation.empty()) {
        choice.implementation = std::string(candidate.name);
      }
    }
    if (!known) choice.declined.push_back(cat("no CUDA kernel computes ", op, " yet; use .device = cpu()"));
    if (choice.implementation.empty()) return choice;
    const Lowering lowering = lower(graph, nodes, samples, profile_, choice.implementation);
    if (is_shared_view(call, lowering)) return choice;
    choice.workspace_bytes = lowering.workspace_bytes;
    choice.launches = kernels_of(lowering);
    choice.seconds = modelled_seconds(call, lowering);
    return choice;
  }

  bool in_place(const Graph& graph, int32_t node, int input) const override {
    return may_run_in_place(make_call(graph, {node}, 1, profile_), input);
  }

  int64_t scratch_bytes(const Graph& graph, int64_t samples) const override {
    return run_bytes(graph, samples, profile_);
  }

  /// The driver's context and the kernels' code.
  int64_t library_bound_bytes() const override { return int64_t{1} << 30; }

 private:
  const Profile profile_;
};

}  // namespace

std::shared_ptr<const Target> make_target(const Profile& profile) { return std::make_shared<CudaTarget>(profile); }

std::shared_ptr<const Target> cuda_target(Device device) {
  const Profile* const found = device_profile(device);
  return make_target(found ? *found : profiles().front());
}

std::shared_ptr<const Target> cuda_target(const std::string& profile) {
  const Profile* const found = find_profile(profile);
  return found ? make_target(*found) : nullptr;
}

std::vector<std::string> cuda_profiles() {
  std::vector<std::string> names;
  for (const Profile& profile : profiles()) names.push_back(profile.name);
  return names;
}

}  // namespace brisk::backend::cuda
