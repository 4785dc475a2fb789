// Runs one operation on one implementation, away from any plan: row-major in, row-major out, and everything that a plan
// relies on checked on the way.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/lowering.h"
#include "graph/graph.h"
#include "oracle/oracle.h"

namespace brisk::test {

namespace cpu = backend::cpu;

/// An input of the node. Values given as doubles are rounded to the type's element.
struct Operand {
  graph::ValueType type;
  std::vector<double> data;  ///< row-major, rows x N leading
  graph::Place place = graph::Place::activation;
  int32_t slot = 0;  ///< index among the values of its place; a scalar is P[]
};

/// A node, its inputs and what changes from run to run.
struct NodeCase {
  std::string op;
  graph::Attributes attributes;
  std::vector<Operand> inputs;
  int64_t samples = 1;
  oracle::Run run = {};
  bool faulted = false;  ///< an earlier node of the step has set the status word
  /// What outputs in totals or gradient memory hold before the run; empty: zeros.
  std::vector<std::vector<double>> before = {};
};

struct Outcome {
  /// Why the implementation takes no such call; "" when it ran.
  std::string declined;
  /// What it did that a plan does not allow, one line each: wrote outside its buffers, left an output unwritten, read
  /// unused lanes or memory that nobody wrote, changed an input, gave other bits in another order, on three threads or
  /// in place.
  std::vector<std::string> problems;
  std::vector<oracle::Array> outputs;
  cpu::Status::Kind status = cpu::Status::none;
  int64_t sample = -1;
  int64_t value = 0;
};

/// The graph with the one node; its inputs are the values 0, 1, ... `layout`: of batched activations.
graph::Graph build(const NodeCase& node_case, graph::Layout layout = graph::Layout::lanes);
/// The same node by the reference.
std::vector<oracle::Array> expected(const NodeCase& node_case, oracle::Fault* fault = nullptr);

/// Instruction sets of this machine, capped by BRISK_CPU_ISA.
std::vector<cpu::Isa> instruction_sets();
/// Candidates for an operation, best first.
std::vector<const cpu::Implementation*> implementations(std::string_view op);

/// Runs the node units in order, in reverse, on three threads, and in place where the backend says that it may.
Outcome run_node(const NodeCase& node_case, const cpu::Implementation& implementation, cpu::Isa isa);
/// The "native" implementation on the widest instruction set; throws Error when it has none, declines or has a problem.
Outcome run_native(const NodeCase& node_case);

}  // namespace brisk::test
