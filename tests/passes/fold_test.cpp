// fold: where batch_norm becomes part of the layer before it, and where it must not.
#include "passes/fold.h"

#include "brisk/ops/conv.h"
#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/norm.h"
#include "brisk/ops/reduce.h"
#include "brisk/ops/shape.h"
#include "graph/model_state.h"
#include "passes/broken.h"

namespace brisk::passes::test {
namespace {

Graph traced(const ModelFunction& function, Shape input = {3, 6, 6}) { return Model(function, input).state()->graph; }

Var conv(Var x, bool bias = false) { return conv2d(x, {.bias = bias, .channels = 4, .kernel = 3}); }

/// Folds, then runs all passes with their verifiers.
Graph compiled(Graph program) { return after("memory", std::move(program), request_for(Phase::predict)); }

TEST(Fold, ConvolutionAndBatchNormBecomeOneWithTheActivation) {
  Graph program = traced([](Var x) { return relu(batch_norm(conv(x), {.epsilon = 0.25})); });
  const size_t before = program.parameters.size();
  const std::vector<Fold> folds = fold_batch_norm(program);
  ASSERT_EQ(folds.size(), 1u);
  EXPECT_EQ(count(program, "batch_norm"), 0);
  const Node& made = node(program, "conv2d");
  EXPECT_EQ(made.name, "conv1 + bn1");
  const auto name = [&](int32_t slot) { return program.parameters[static_cast<size_t>(slot)].name; };
  EXPECT_EQ(name(folds[0].source_weight), "conv1.weight");
  EXPECT_TRUE(folds[0].source_biases.empty());
  EXPECT_EQ(name(folds[0].scale), "bn1.weight");
  EXPECT_EQ(name(folds[0].shift), "bn1.bias");
  EXPECT_EQ(name(folds[0].mean), "bn1.running_mean");
  EXPECT_EQ(name(folds[0].variance), "bn1.running_var");
  EXPECT_EQ(folds[0].epsilon, 0.25);
  EXPECT_EQ(program.parameters.size(), before + 2) << "those of the model stay as they are";
  EXPECT_EQ(program.value(made.inputs[1]).slot, folds[0].weight);
  EXPECT_EQ(program.value(made.inputs[2]).slot, folds[0].bias);
  EXPECT_EQ(program.parameters[static_cast<size_t>(folds[0].weight)].shape, (Shape{4, 3, 3, 3}));
  const Graph plan = compiled(program);
  EXPECT_EQ(count(plan, "relu"), 0);
  EXPECT_EQ(plan.nodes.size(), 3u) << "load, convolution, store";
}

TEST(Fold, BiasesOfTheLayerAndBehindItGoIn) {
  Graph program = traced([](Var x) { return batch_norm(bias_add(conv(x, true), parameter("shift", {4}))); });
  const std::vector<Fold> folds = fold_batch_norm(program);
  ASSERT_EQ(folds.size(), 1u);
  EXPECT_EQ(folds[0].source_biases.size(), 2u);
  EXPECT_EQ(count(program, "bias_add"), 0);
  compiled(program);
}

TEST(Fold, LinearLayersFoldToo) {
  Graph program = traced([](Var x) { return batch_norm(linear(batch_norm(linear(x, 8)), 3)); }, {5});
  EXPECT_EQ(fold_batch_norm(program).size(), 2u);
  EXPECT_EQ(compiled(program).nodes.size(), 4u);
}

TEST(Fold, OneFoldServesEveryCallOfASharedBlock) {
  Graph program = traced([](Var x) {
    Shared block("block", [](Var v) { return batch_norm(conv2d(v, {.channels = 3, .kernel = 1})); });
    return block(block(x));
  });
  EXPECT_EQ(fold_batch_norm(program).size(), 1u);
  EXPECT_EQ(count(program, "batch_norm"), 0);
  compiled(program);
}

TEST(Fold, NothingFoldsWhereSomebodyElseReadsTheLayer) {
  const std::vector<ModelFunction> functions = {
      [](Var x) {
        const Var y = conv(x);
        return batch_norm(y) + y;
      },
      [](Var x) {
        const Var y = bias_add(conv(x), parameter("shift", {4}));
        return batch_norm(y) + y;
      },
      [](const Vars& in) {
        const Var y = conv(in["input"]);
        return Vars{{"normal", batch_norm(y)}, {"raw", y}};
      },
      [](Var x) { return batch_norm(relu(conv(x))); },
      [](Var x) { return batch_norm(x); },
      [](Var x) { return batch_norm(conv(x) + conv(x)); },
  };
  for (const ModelFunction& function : functions) {
    Graph program = traced(function);
    const Graph before = program;
    EXPECT_TRUE(fold_batch_norm(program).empty());
    EXPECT_EQ(graph::print(program), graph::print(before));
    compiled(program);
  }
}

TEST(Fold, AComputedWeightIsLeftAlone) {
  Graph program = traced(
      [](Var x) {
        const Var scaled = parameter("w", {4, 5}) * 2.0;
        return batch_norm(matmul(x, scaled, {.transpose_b = true}));
      },
      {2, 5});
  EXPECT_TRUE(fold_batch_norm(program).empty());
}

}  // namespace
}  // namespace brisk::passes::test
