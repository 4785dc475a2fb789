// The order of the passes: the one function to read.
#include "passes/passes.h"

namespace brisk::passes {

const std::vector<Pass>& all() {
  static const std::vector<Pass> passes = {
      {"trace", trace, verify_trace},
      {"infer", infer, verify_infer},
      {"compose", compose, verify_compose},
      {"autodiff", autodiff, verify_autodiff},
      {"update", update, verify_update},
      {"precision", precision, verify_precision},
      {"recompute", recompute, verify_recompute},
      {"group", group, verify_group},
      {"select", select, verify_select},
      {"schedule", schedule, verify_schedule},
      {"memory", memory, verify_memory},
  };
  return passes;
}

graph::Graph compile(graph::Graph program, const PlanRequest& request,
                     const std::function<void(const char*, const graph::Graph&)>& observe) {
  for (const Pass& pass : all()) {
    program = pass.run(std::move(program), request);
    pass.verify(program, request);
    if (observe) observe(pass.name, program);
  }
  return program;
}

}  // namespace brisk::passes
