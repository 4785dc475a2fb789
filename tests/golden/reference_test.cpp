// The reference, on the program that a Step compiles, takes PyTorch's first updates in double precision: forward,
// backward, statistics and optimizer are the same functions, not near ones.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "brisk/brisk.h"
#include "golden/double_step.h"
#include "golden/golden_data.h"
#include "golden/networks.h"

namespace brisk::golden {
namespace {

struct Case {
  const char* network;
  const char* optimizer;
  int64_t updates;  // naive loops: few for the larger network
};

class GoldenReference : public testing::TestWithParam<Case> {};

TEST_P(GoldenReference, TakesTheSameSteps) {
  const auto [name, kind, updates] = GetParam();
  const Trajectories all = read_trajectories(BRISK_SOURCE_DIR "/tests/golden/trajectories.safetensors");
  const Network& network = all.networks.at(name);
  const Trajectory& wanted = all.runs.at(name).at(kind).at(0);
  const Model model = make_model(all, name, wanted.seed);
  const Inputs inputs = {{"x", shape_of(network.input)}, {"y", {}, DType::i64}};
  DoubleStep step(
      model, [&](const Vars& in) { return cross_entropy(model(in["x"]), in["y"]); }, inputs, optimizer(kind),
      all.batch);
  for (int64_t update = 0; update < updates; ++update) {
    const std::vector<int64_t> labels = all.targets(wanted.seed, update);
    const double loss = step.run({{"x", widen(all.inputs(name, wanted.seed, update))},
                                  {"y", std::vector<double>(labels.begin(), labels.end())}});
    EXPECT_NEAR(loss, wanted.losses[static_cast<size_t>(update)], 1e-11) << "update " << update;
    if (update != 0) continue;
    std::vector<std::vector<double>> values;
    for (const ParameterRule& rule : network.parameters) values.push_back(step.parameter(rule.name));
    EXPECT_LT(distance(all.sample(values), wanted.first, all.sample(all.initial(name, wanted.seed))), 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, GoldenReference,
                         testing::Values(Case{"lenet", "sgd", 2}, Case{"lenet", "adamw", 2},
                                         Case{"residual", "sgd", 10}, Case{"residual", "adamw", 10}),
                         [](const auto& row) { return std::string(row.param.network) + "_" + row.param.optimizer; });

}  // namespace
}  // namespace brisk::golden
