// A plan on a device: its lowered launches bound to addresses, captured as CUDA graphs when a kind of run is first
// asked for and replayed afterwards.
#pragma once

#include <vector>

#include "backend/cuda/runtime/runtime.h"

namespace brisk::backend::cuda {

class CudaProgram : public Program {
 public:
  CudaProgram(CudaRuntime& runtime, const graph::Graph& graph, int64_t samples, const Bindings& bindings);
  ~CudaProgram() override;
  void run(StepList list, const RunArguments& arguments) override;
  void refresh_shadows() override;

 private:
  /// A node or group. Addresses are kept twice: inputs and scalars lie in one of two staging blocks.
  struct Unit {
    int32_t node = -1;
    bool update = false;
    Lowering lowering;
    std::vector<graph::ValueId> inputs, outputs;
    std::vector<const void*> in[2];
    std::vector<void*> out[2];
    std::vector<const void*> tables;
    char* workspace = nullptr;
  };

  void queue(StepList list, const RunArguments& arguments);
  void follow(float* const* parameters);
  void bind();
  void* address(graph::ValueId id, int parity) const;
  Operands operands(const Unit& unit, int parity, bool accumulate) const;
  void stage(char* staging, const RunArguments& arguments, bool with_inputs) const;
  void send_constants();
  void send_schedule(int64_t scheduled);
  void compute(StepList list, bool accumulate);
  bool fetch_outputs(void* const* outputs);
  int64_t launch(StepList list, bool accumulate, int parity, cudaStream_t stream) const;
  GraphExec capture(StepList list, bool accumulate, int parity) const;

  CudaRuntime& runtime_;
  const graph::Graph& graph_;
  const Bindings bindings_;
  std::vector<Unit> units_;
  RunLayout layout_;
  CudaRuntime::Results results_;
  std::vector<const float*> parameters_;  // read ones, where they differ from those that are bound
  int64_t generation_ = -1;               // of the block that the addresses are of
  PinnedBlock tables_, schedule_;
  bool tables_sent_ = false;
  int64_t scheduled_ = 0;      // updates whose rows the device has
  GraphExec graphs_[3][2][2];  // by list, accumulate, parity
};

}  // namespace brisk::backend::cuda
