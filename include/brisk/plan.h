// brisk/plan.h: what a step will do and need, before a byte is allocated.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "brisk/export.h"
#include "brisk/precision.h"

namespace brisk {

namespace exec {
struct CompiledPlan;
}

/// Bytes by purpose. `total` is what the arenas hold after prepare(), to the byte; `library_bound` comes on top: an
/// upper bound of what program objects, thread stacks and the optional libraries take.
struct PlanBytes {
  int64_t activations = 0;  ///< one arena shared by all plans of a step, workspaces included
  int64_t buffers = 0;      ///< batch-norm statistics
  int64_t gradients = 0;
  int64_t library_bound = 0;  ///< not part of total
  int64_t live = 0;           ///< largest live set of activations: a lower bound of `activations`, not part of total
  int64_t moments = 0;
  int64_t parameters = 0;
  int64_t scratch = 0;  ///< of the workers
  int64_t shadows = 0;  ///< 16-bit copies of parameters
  int64_t staged = 0;   ///< running statistics of an open window (fp16)
  int64_t state = 0;    ///< loss scale and counters
  int64_t total = 0;
};

/// A kernel of the plan, in the order in which they run.
struct PlanStep {
  double bytes = 0;  ///< operands read or written once, workspace written and read; 0: a view, which moves nothing
  double flops = 0;
  std::string implementation{};
  std::vector<std::string> declined{};  ///< "onednn: would reorder ..."
  int32_t launches = 0;                 ///< kernels on a GPU
  std::string op{};                     ///< "conv2d 'conv1'"; members of a fused kernel are joined with " + "
  double seconds = 0;                   ///< modelled: bytes and FLOPs by the GPU's rates, 2 us a launch; 0: no model
  std::string stage{};                  ///< forward, backward, commit, update
  std::string shape{};                  ///< of the first output
  int32_t wave = 0;                     ///< steps of one wave may run at once
};

/// A value: copies share what they describe. Works with no device in the machine.
class BRISK_EXPORT Plan {
 public:
  explicit Plan(std::shared_ptr<const exec::CompiledPlan> plan);
  PlanBytes bytes() const;
  int64_t batch() const;
  /// What Precision::automatic has become.
  Precision precision() const;
  /// The device and its instruction set: "cpu avx512".
  std::string target() const;
  std::vector<PlanStep> steps() const;
  /// Of all steps; 0: the target has no model.
  double seconds() const;
  /// Kernels of a run on a GPU.
  int64_t launches() const;
  /// A line a step: op, implementation, why better ones declined, bytes, FLOPs.
  std::string explain() const;
  /// The graph after the named pass ("trace" ... "memory"; empty: the last), as text. Throws Error [option] for another
  /// name.
  std::string dump(const std::string& pass = {}) const;
  /// Graphviz.
  std::string dot() const;

 private:
  std::shared_ptr<const exec::CompiledPlan> plan_;
};

}  // namespace brisk
