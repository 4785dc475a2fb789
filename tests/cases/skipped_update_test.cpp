// An update that must not happen moves nothing: neither after a fault of the step nor after a gradient that is not
// finite.
#include <gtest/gtest.h>

#include <limits>

#include "cases/op_cases.h"

namespace brisk::test {
namespace {

const OpCase& row(const std::string& name) {
  for (const OpCase& candidate : op_cases()) {
    if (candidate.name == name) return candidate;
  }
  throw std::logic_error("no row " + name);
}

void expect_unmoved(const NodeCase& node_case) {
  const std::vector<oracle::Array> want = expected(node_case);
  for (const cpu::Implementation* implementation : implementations(node_case.op)) {
    for (const cpu::Isa isa : instruction_sets()) {
      const Outcome outcome = run_node(node_case, *implementation, isa);
      EXPECT_EQ(outcome.problems, std::vector<std::string>());
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_EQ(outcome.outputs[i].data, want[i].data) << node_case.op << " output " << i << " " << name(isa);
      }
    }
  }
}

class SkippedUpdates : public testing::TestWithParam<const char*> {};

TEST_P(SkippedUpdates, AfterAFault) {
  NodeCase walk = make_case(row(GetParam()), 1);
  const std::vector<oracle::Array> moved = expected(walk);
  walk.faulted = true;
  EXPECT_NE(expected(walk)[0].data, moved[0].data);
  expect_unmoved(walk);
}

INSTANTIATE_TEST_SUITE_P(Table, SkippedUpdates,
                         testing::Values("sgd_walk_plain", "sgd_walk_momentum", "sgd_walk_nesterov_first",
                                         "adam_walk_coupled_early", "adam_walk_decoupled_late", "batch_norm_commit"),
                         [](const auto& made) { return std::string(made.param); });

class NonfiniteGradients : public testing::TestWithParam<const char*> {};

TEST_P(NonfiniteGradients, MoveNothing) {
  NodeCase walk = make_case(row(GetParam()), 1);
  for (Operand& operand : walk.inputs) {
    if (operand.place == graph::Place::activation)
      operand.data = {std::numeric_limits<double>::infinity(), 1, 1, 0};  // statistics
    if (operand.place == graph::Place::gradient) operand.data[0] = std::numeric_limits<double>::quiet_NaN();
  }
  expect_unmoved(walk);
}

INSTANTIATE_TEST_SUITE_P(Table, NonfiniteGradients,
                         testing::Values("sgd_walk_plain", "sgd_walk_momentum_first", "adam_walk_coupled_late",
                                         "adam_walk_decoupled_early"),
                         [](const auto& made) { return std::string(made.param); });

}  // namespace
}  // namespace brisk::test
