// One pass over the phases, on memory of our own.
#include "backend/gradient_memory.h"

#include "support/guarded.h"

namespace brisk::test {
namespace {

/// Samples in lanes, unused lanes poisoned by Guarded.
Guarded in_lanes(const Operand& operand, int64_t samples, int lanes) {
  const int64_t elements = operand.type.elements(), blocks = (samples + lanes - 1) / lanes;
  Guarded memory(blocks * elements * lanes * 4);
  for (int64_t n = 0; n < samples; ++n) {
    for (int64_t e = 0; e < elements; ++e) {
      memory.as<float>()[(n / lanes * elements + e) * lanes + n % lanes] =
          static_cast<float>(operand.data[static_cast<size_t>(n * elements + e)]);
    }
  }
  return memory;
}

}  // namespace

std::vector<std::vector<float>> run_into_gradient(const NodeCase& node_case, float before) {
  std::vector<std::vector<float>> results;
  for (const backend::cpu::Isa isa : instruction_sets()) {
    graph::Graph graph = build(node_case);
    graph.value(graph.nodes[0].outputs[0]).place = graph::Place::gradient;
    const backend::cpu::Call call{graph, graph.nodes[0], node_case.samples, isa};
    backend::cpu::Lowering lowering;
    implementations(node_case.op)[0]->lower(call, lowering);
    std::vector<Guarded> inputs;
    std::vector<const void*> in;
    for (const Operand& operand : node_case.inputs) {
      inputs.push_back(in_lanes(operand, node_case.samples, call.lanes()));
    }
    for (const Guarded& input : inputs) in.push_back(input.data());
    std::vector<float> result(static_cast<size_t>(call.output(0).elements()), before);
    void* out[] = {result.data()};
    Guarded workspace(lowering.workspace_bytes), scratch(lowering.scratch_bytes);
    backend::cpu::Status status;
    backend::cpu::RunState state;
    state.status = &status;
    state.accumulate = node_case.run.accumulate;
    const backend::cpu::Operands operands{in.data(), out, workspace.as<char>(), scratch.as<char>(), &state, 0};
    for (const backend::cpu::Phase& phase : lowering.phases) {
      phase.function(phase.parameters.get(), operands, 0, phase.units);
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace brisk::test
