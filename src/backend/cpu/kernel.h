// What a CPU kernel is: phases of independent units over bound operands. Work is cut by (op, shape, batch) only, never
// by the thread count, so that the bits do not depend on threads. Kernels neither allocate nor throw.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

namespace brisk::backend::cpu {

/// The first error that a kernel met; gates the update. Written by the winner of `kind`'s compare-exchange.
struct Status {
  enum Kind : int32_t { none = 0, label = 1, nonfinite_gradient = 2, user_op = 3 };
  std::atomic<int32_t> kind{none};
  int32_t node = -1;             ///< index of the node in the plan
  int64_t sample = -1;           ///< row (label), or index into Graph::parameters (nonfinite_gradient)
  int64_t value = 0;             ///< the label
  std::exception_ptr exception;  ///< what the user's operation threw
  bool set() const { return kind.load(std::memory_order_relaxed) != none; }
};

/// What changes from run to run.
struct RunState {
  Status* status = nullptr;
  bool accumulate = false;   ///< gradients add to what the window's earlier micro-batches left
  int64_t attempt = 0;       ///< windows begun: RNG counter
  int64_t first_sample = 0;  ///< index of this micro-batch's first sample in the global window: RNG counter
};

/// Bound operands of one node.
struct Operands {
  const void* const* in = nullptr;  ///< one pointer an input, in the node's order
  void* const* out = nullptr;
  char* workspace = nullptr;  ///< shared by all workers, Lowering::workspace bytes, 64-byte aligned
  char* scratch = nullptr;    ///< this worker's own, Lowering::scratch bytes, 64-byte aligned
  const RunState* run = nullptr;
  int32_t node = -1;
  template <class T>
  const T* input(int i) const {
    return static_cast<const T*>(in[i]);
  }
  template <class T>
  T* output(int i) const {
    return static_cast<T*>(out[i]);
  }
};

/// Runs units [first, last). Units of one phase may run in any order on any worker; phases run one after another.
using PhaseFunction = void (*)(const void* parameters, const Operands& operands, int64_t first, int64_t last);

}  // namespace brisk::backend::cpu
