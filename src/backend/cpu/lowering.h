// From a node to phases: what an implementation sees of a node (Call) and what it answers (Lowering).
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "backend/cpu/kernel.h"
#include "core/team.h"
#include "graph/graph.h"

namespace brisk::backend::cpu {

/// Instruction sets that the kernels are compiled for; lanes = floats of a vector = samples of a block.
enum class Isa : uint8_t { avx2, avx512 };
constexpr int lanes(Isa isa) { return isa == Isa::avx512 ? 16 : 8; }
const char* name(Isa isa);

/// A node as an implementation sees it: everything about sizes is known.
struct Call {
  const graph::Graph& graph;
  const graph::Node& node;
  int64_t samples = 0;  ///< N
  Isa isa = Isa::avx2;

  const graph::ValueType& input(int i) const { return graph.type(node.inputs[static_cast<size_t>(i)]); }
  const graph::ValueType& output(int i) const { return graph.type(node.outputs[static_cast<size_t>(i)]); }
  int inputs() const { return static_cast<int>(node.inputs.size()); }
  int lanes() const { return cpu::lanes(isa); }
  int64_t blocks() const { return (samples + lanes() - 1) / lanes(); }
};

struct Phase {
  PhaseFunction function = nullptr;
  int64_t units = 1;
  std::shared_ptr<const void> parameters;
  Team* team = nullptr;  ///< part of the parameters: workers without a unit help with its loops until it is closed
};

/// What a node becomes.
class Lowering {
 public:
  /// Appends a phase; `parameters` is copied (a plain struct, or a struct holding std::vector: kept alive by the plan).
  template <class P>
  void phase(PhaseFunction function, int64_t units, P parameters) {
    phases.push_back({function, units, std::make_shared<const P>(std::move(parameters)), nullptr});
  }
  /// Shared workspace: returns the byte offset of a new 64-byte aligned region.
  int64_t workspace(int64_t bytes) {
    const int64_t at = workspace_bytes;
    workspace_bytes += (bytes + 63) / 64 * 64;
    return at;
  }
  /// Scratch of each worker: at least this much.
  void scratch(int64_t bytes) { scratch_bytes = bytes > scratch_bytes ? bytes : scratch_bytes; }

  std::vector<Phase> phases;
  int64_t workspace_bytes = 0;
  int64_t scratch_bytes = 0;
};

/// One candidate for one op.
struct Implementation {
  std::string_view op;
  std::string_view name;                           ///< "native", "onednn"
  std::string (*declines)(const Call&) = nullptr;  ///< why it cannot take this call; "" or null: it can
  void (*lower)(const Call&, Lowering&) = nullptr;
};

/// Name of the implementations that stand in for all others where activations lie plain (Target::plain): one sample
/// after the other, at most so many.
constexpr std::string_view kSingle = "single";
constexpr int64_t most_singles(Isa isa) { return lanes(isa) / 4; }

/// The ordered candidates, best first (implementations.cpp).
std::span<const Implementation> implementations();

/// True when the node's output 0 may share the storage of input i (same size, read before it is written, element by
/// element).
bool may_run_in_place(const Call& call, int input);

}  // namespace brisk::backend::cpu
