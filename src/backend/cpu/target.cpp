// Which kernel runs each node: the first candidate of the ordered list that does not decline.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/isa.h"
#include "backend/cpu/lower/lower.h"
#include "backend/cpu/onednn.h"
#include "core/arena.h"
#include "core/machine.h"
#include "core/text.h"
#include "graph/op_table.h"

namespace brisk::backend::cpu {

using graph::Graph;
using graph::Node;
using graph::ValueId;

Lowering lower(const Graph& graph, const std::vector<int32_t>& nodes, int64_t samples, Isa isa,
               std::string_view implementation) {
  Lowering lowering;
  if (nodes.size() > 1) {
    const std::vector<ValueId> inputs = bound_inputs(graph, nodes), outputs = bound_outputs(graph, nodes);
    if (implementation == kSingle) {
      lower_single_group(graph, nodes, samples, isa, inputs, outputs, lowering);
    } else {
      lower_group(graph, nodes, samples, isa, inputs, outputs, lowering);
    }
    return lowering;
  }
  const Node& node = graph.nodes[static_cast<size_t>(nodes[0])];
  for (const Implementation& candidate : implementations())
    if (candidate.op == node.op->name && candidate.name == implementation) {
      candidate.lower({graph, node, samples, isa}, lowering);
      return lowering;
    }
  throw Error(ErrorCode::backend, graph::label(node), cat("no implementation \"", implementation, "\" for the CPU"),
              node.where);
}

namespace {

/// Whether a batched activation of the node lies row-major.
bool lies_plain(const Graph& graph, const Node& node) {
  for (const auto* list : {&node.inputs, &node.outputs})
    for (const ValueId id : *list) {
      const graph::Value& value = graph.value(id);
      if (value.place == graph::Place::activation && value.type.batched()) return value.layout == graph::Layout::plain;
    }
  return false;
}

class CpuTarget : public Target {
 public:
  explicit CpuTarget(Isa isa) : isa_(isa) {}

  std::string name() const override { return cat("cpu ", cpu::name(isa_)); }
  int lanes() const override { return cpu::lanes(isa_); }

  /// Few samples would leave most lanes idle.
  bool plain(const Graph& graph, int64_t samples) const override {
    if (graph.phase != graph::Phase::predict || samples > most_singles(isa_) || onednn_comes_first()) return false;
    return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
      return std::any_of(implementations().begin(), implementations().end(), [&](const Implementation& candidate) {
        return candidate.op == node.op->name && candidate.name == kSingle &&
               candidate.declines({graph, node, samples, isa_}).empty();
      });
    });
  }

  Choice choose(const Graph& graph, const std::vector<int32_t>& nodes, int64_t samples) const override {
    Choice choice;
    const bool single = lies_plain(graph, graph.nodes[static_cast<size_t>(nodes[0])]);
    if (nodes.size() > 1) {
      choice.implementation = single ? kSingle : "native";
    } else {
      const Node& node = graph.nodes[static_cast<size_t>(nodes[0])];
      for (const Implementation& candidate : implementations()) {
        if (candidate.op != node.op->name || (candidate.name == kSingle) != single) continue;
        const std::string reason =
            candidate.declines ? candidate.declines({graph, node, samples, isa_}) : std::string();
        if (!reason.empty()) {
          choice.declined.push_back(cat(candidate.name, ": ", reason));
        } else if (choice.implementation.empty()) {
          choice.implementation = std::string(candidate.name);
        }
      }
      if (choice.implementation.empty()) return choice;
    }
    choice.workspace_bytes = lower(graph, nodes, samples, isa_, choice.implementation).workspace_bytes;
    return choice;
  }

  bool in_place(const Graph& graph, int32_t node, int input) const override {
    const Node& made = graph.nodes[static_cast<size_t>(node)];
    return may_run_in_place({graph, made, 1, isa_}, input);
  }

  int64_t scratch_bytes(const Graph& graph, int64_t samples) const override {
    int64_t bytes = 0;
    for (size_t i = 0; i < graph.nodes.size();) {
      std::vector<int32_t> nodes = {static_cast<int32_t>(i++)};
      while (i < graph.nodes.size() && graph.nodes[i].group >= 0 && graph.nodes[i].group == graph.nodes[i - 1].group)
        nodes.push_back(static_cast<int32_t>(i++));
      const Node& node = graph.nodes[static_cast<size_t>(nodes.back())];
      bytes = std::max(bytes, lower(graph, nodes, samples, isa_, node.implementation).scratch_bytes);
    }
    return (bytes + 63) / 64 * 64;
  }

  /// Program objects and pointers, a pool's stacks as far as kernels touch them, and what oneDNN keeps a primitive.
  int64_t library_bound_bytes() const override { return int64_t{16} << 20; }

 private:
  const Isa isa_;
};

/// The host's own memory.
class HostMemory : public Memory {
 public:
  void* allocate(int64_t bytes, const std::string& what) override {
    Arena arena(bytes, what);
    void* const address = arena.data();
    const std::lock_guard lock(mutex_);
    if (address) arenas_.emplace(address, std::move(arena));
    return address;
  }
  void release(void* address) noexcept override {
    const std::lock_guard lock(mutex_);
    arenas_.erase(address);
  }
  void write(void* to, const void* from, int64_t bytes) override { std::memcpy(to, from, static_cast<size_t>(bytes)); }
  void read(void* to, const void* from, int64_t bytes) override { std::memcpy(to, from, static_cast<size_t>(bytes)); }
  int64_t available_bytes() const override { return available_memory_bytes(); }

 private:
  std::mutex mutex_;
  std::map<void*, Arena> arenas_;
};

class CpuBackend : public Backend {
 public:
  CpuBackend() : isa_(widest_isa()), target_(make_target(isa_)) {}
  std::shared_ptr<const Target> target() const override { return target_; }
  std::unique_ptr<Runtime> runtime(int threads) const override { return make_runtime(isa_, threads); }
  Memory& memory() const override { return memory_; }
  bool host_memory() const override { return true; }

 private:
  mutable HostMemory memory_;
  const Isa isa_;
  const std::shared_ptr<const Target> target_;
};

}  // namespace

std::shared_ptr<const Target> make_target(Isa isa) { return std::make_shared<CpuTarget>(isa); }

const Backend& cpu_backend() {
  static const CpuBackend backend;
  return backend;
}

}  // namespace brisk::backend::cpu
