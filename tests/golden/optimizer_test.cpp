// Six steps of one parameter under given gradients move it as PyTorch's optimizers do in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "brisk/brisk.h"
#include "golden/golden_data.h"

namespace brisk::golden {
namespace {

Optimizer make_optimizer(const OptimizerTrace& trace) {
  const bool halving = trace.rates[1] != trace.rates[0];
  const double rate = trace.option("learning_rate", 0), decay = trace.option("weight_decay", 0);
  const Schedule schedule = halving ? step_decay(rate, {.every = 1_updates, .factor = 0.5}) : Schedule(rate);
  const std::vector<ParameterGroup> groups = {{.match = "*", .weight_decay = decay}};  // also on one dimension
  if (trace.kind == "sgd") {
    return sgd({.dampening = trace.option("dampening", 0),
                .groups = groups,
                .learning_rate = schedule,
                .momentum = trace.option("momentum", 0),
                .nesterov = trace.option("nesterov", 0) != 0});
  }
  const auto betas = trace.options.find("betas");
  const std::vector<double> both = betas == trace.options.end() ? std::vector<double>{0.9, 0.999} : betas->second;
  const double epsilon = trace.option("epsilon", 1e-8);
  if (trace.kind == "adam") {
    return adam({.betas = both, .epsilon = epsilon, .groups = groups, .learning_rate = schedule});
  }
  return adamw({.betas = both, .epsilon = epsilon, .groups = groups, .learning_rate = schedule});
}

// Gradients of sum(g w) over one sample g are g itself, so a step on g is a step with that gradient.
class GoldenOptimizer : public testing::TestWithParam<OptimizerTrace> {
 protected:
  void run(bool by_hand) {
    const OptimizerTrace& trace = GetParam();
    const int64_t size = static_cast<int64_t>(trace.start.size());
    Model model([&](Var g) { return reduce_sum(g * parameter("w", {size})); }, Shape{size});
    model.set_parameter("w", Tensor(std::vector<float>(trace.start.begin(), trace.start.end()), {size}));
    Step step([&](const Vars& in) { return sample_mean(model(in["g"])); }, {{"g", {size}}}, make_optimizer(trace),
              {.batch = 1, .threads = 1});
    const std::vector<float> other(trace.start.size(), 3.0f);
    for (size_t i = 0; i < trace.gradients.size(); ++i) {
      const std::vector<float> g(trace.gradients[i].begin(), trace.gradients[i].end());
      if (by_hand) {
        step.forward_backward({{"g", view(other, {1, size})}});
        step.set_gradient("w", view(g, {size}));
        step.update();
      } else {
        step.run({{"g", view(g, {1, size})}});
      }
      EXPECT_NEAR(step.read().learning_rate, trace.rates[i], 1e-7 * trace.rates[i]);
      const Tensor w = model.parameter("w");
      for (int64_t k = 0; k < size; ++k) {
        EXPECT_NEAR(w.data<float>()[k], trace.parameters[i][static_cast<size_t>(k)], 2e-6) << "step " << i << ", " << k;
      }
    }
  }
};

TEST_P(GoldenOptimizer, StepsAsPyTorch) { run(false); }
TEST_P(GoldenOptimizer, StepsAsPyTorchWithGradientsSetByHand) { run(true); }

INSTANTIATE_TEST_SUITE_P(Traces, GoldenOptimizer,
                         testing::ValuesIn(read_ops(BRISK_SOURCE_DIR "/tests/golden/ops.json").optimizers),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace brisk::golden
