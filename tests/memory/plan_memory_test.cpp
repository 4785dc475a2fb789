// What a plan says it needs is what is then taken, to the byte; and a step in its steady state takes nothing.
#include <gtest/gtest.h>

#include "exec/step_impl.h"
#include "memory/traps.h"
#include "support/networks.h"
#include "support/own_ops.h"

namespace brisk {
namespace {

Var mlp(Var x) { return linear(tanh(linear(tanh(linear(x, 64)), 64)), 10); }

Var concatenations(Var x) {
  for (int i = 0; i < 4; ++i) x = concat({x, relu(conv2d(x, {.channels = 8, .kernel = 3, .padding = 1}))}, {.axis = 1});
  return linear(global_avg_pool2d(x), 10);
}

Var own_operation(Var x) {
  x = test::learnt_swish(conv2d(x, {.channels = 8, .kernel = 3}));
  return linear(global_avg_pool2d(x), 10);
}

struct Network {
  const char* name;
  Var (*function)(Var);
  Shape sample;
};
const Network kNetworks[] = {{"lenet", test::lenet, {1, 28, 28}},
                             {"residual", test::residual_net, {3, 8, 8}},
                             {"mlp", mlp, {17}},
                             {"concatenations", concatenations, {3, 16, 16}},
                             {"own_operation", own_operation, {3, 16, 16}}};

class PlanMemory : public testing::TestWithParam<Network> {};

Optimizer adam_of_any_rate() { return adam({.learning_rate = 1e-3}); }

TEST_P(PlanMemory, BytesAreWhatTheArenasHold) {
  for (const int64_t batch : {1, 4, 64, 67}) {
    if (GetParam().function == test::residual_net && batch == 1) continue;
    Model model(GetParam().function, GetParam().sample);
    Step step(model, cross_entropy(), adam_of_any_rate(), {.batch = batch, .threads = 2});
    const PlanBytes bytes = step.plan().bytes();
    EXPECT_EQ(step.impl().held_bytes(), 0) << "a plan is arithmetic";
    step.prepare();
    EXPECT_EQ(step.impl().held_bytes(), bytes.total) << GetParam().name << " batch " << batch;
    EXPECT_EQ(bytes.total,
              bytes.activations + bytes.buffers + bytes.gradients + bytes.moments + bytes.parameters + bytes.scratch);
    EXPECT_LE(static_cast<double>(bytes.activations), 1.05 * static_cast<double>(bytes.live))
        << GetParam().name << " batch " << batch;
    const test::Rows rows = test::make_rows(batch, GetParam().sample, 10, 1);
    for (int i = 0; i < 3; ++i) step.run(rows.inputs(0, batch), rows.labels(0, batch));
    EXPECT_EQ(step.impl().held_bytes(), bytes.total) << "running takes no more";
  }
}

TEST_P(PlanMemory, NothingOfThePlansSizeIsAllocatedToAsk) {
  if (!test::traps_work()) GTEST_SKIP() << "a sanitizer owns malloc";
  Model model(GetParam().function, GetParam().sample);
  Step step(model, cross_entropy(), adam_of_any_rate(), {.batch = 4096});
  test::reset_largest_call();
  const PlanBytes bytes = step.plan().bytes();
  EXPECT_GT(bytes.total, int64_t{4} << 20);
  EXPECT_LT(test::held_memory().largest_call, int64_t{1} << 20);
}

TEST_P(PlanMemory, GrowthStaysWithinTheBound) {
  if (!test::traps_work()) GTEST_SKIP() << "a sanitizer owns malloc";
  const test::Rows rows = test::make_rows(64, GetParam().sample, 10, 1);
  Model model(GetParam().function, GetParam().sample);
  Step step(model, cross_entropy(), adam_of_any_rate(), {.batch = 64, .threads = 2});
  const PlanBytes bytes = step.plan().bytes();
  const auto held = [] {
    const test::HeldMemory memory = test::held_memory();
    return memory.heap_bytes + memory.mapped_bytes;
  };
  const int64_t before = held();
  step.prepare();
  for (int i = 0; i < 3; ++i) step.run(rows.inputs(0, 64), rows.labels(0, 64));
  const int64_t growth = held() - before;
  EXPECT_LE(growth, bytes.total + bytes.library_bound) << GetParam().name;
  EXPECT_GE(growth, bytes.total) << "the traps see the arenas";
}

TEST_P(PlanMemory, TheSteadyStateAllocatesNothing) {
  if (!test::traps_work()) GTEST_SKIP() << "a sanitizer owns malloc";
  const test::Rows rows = test::make_rows(32, GetParam().sample, 10, 1);
  Model model(GetParam().function, GetParam().sample);
  Step step(model, cross_entropy(), sgd({.learning_rate = 1e-3, .momentum = 0.9}), {.batch = 32, .threads = 2});
  const Feed evaluation = {{"input", rows.inputs(0, 32)}, {"target", rows.labels(0, 32)}};
  const auto epoch = [&] {
    for (int i = 0; i < 99; ++i) step.run(rows.inputs(0, 32), rows.labels(0, 32));
    step.run(rows.inputs(0, 13), rows.labels(0, 13));  // a tail
    step.evaluate(evaluation);
  };
  epoch();  // makes the three plans
  const int64_t entries = step.counters().pool_entries;
  const int64_t before = test::held_memory().calls;
  epoch();
  epoch();
  EXPECT_EQ(test::held_memory().calls - before, 0) << GetParam().name;
  EXPECT_EQ(step.counters().pool_entries - entries, 202) << "one entry a run";
  EXPECT_EQ(step.counters().plans, 3);
}

void PrintTo(const Network& network, std::ostream* out) { *out << network.name; }

INSTANTIATE_TEST_SUITE_P(Networks, PlanMemory, testing::ValuesIn(kNetworks),
                         [](const auto& given) { return std::string(given.param.name); });

TEST(PlanMemory, MemoryThatDoesNotSufficeIsFoundByArithmetic) {
  Model model(test::lenet, {1, 28, 28});
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 100'000'000});
  try {
    step.prepare();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::memory);
    EXPECT_NE(std::string(error.what()).find("largest batch that fits: "), std::string::npos) << error.what();
  }
  EXPECT_EQ(step.impl().held_bytes(), 0);
}

TEST(PlanMemory, LargestBatchFitsAndTheNextDoesNot) {
  Model model(test::lenet, {1, 28, 28});
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 8});
  const int64_t budget = 50'000'000;
  const int64_t most = step.largest_batch({.budget_bytes = budget});
  EXPECT_GT(most, 0);
  EXPECT_LE(step.plan(most).bytes().total, budget);
  EXPECT_GT(step.plan(most + 1).bytes().total, budget);
  EXPECT_EQ(step.largest_batch({.budget_bytes = 1000}), 0);
}

}  // namespace
}  // namespace brisk
