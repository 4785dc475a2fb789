// Every row of the table on every implementation and instruction set, against the reference; and that no operation
// lacks rows or kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "cases/compare.h"
#include "cases/op_cases.h"
#include "graph/op_table.h"

namespace brisk::test {
namespace {

struct Run {
  const OpCase* row;
  const cpu::Implementation* implementation;
  cpu::Isa isa;
};

void PrintTo(const Run& run, std::ostream* out) { *out << run.row->name; }

std::vector<Run> runs() {
  std::vector<Run> all;
  for (const OpCase& row : op_cases()) {
    for (const cpu::Implementation* implementation : implementations(row.op)) {
      for (const cpu::Isa isa : instruction_sets()) all.push_back({&row, implementation, isa});
    }
  }
  return all;
}

class OpCases : public testing::TestWithParam<Run> {};

TEST_P(OpCases, AgreesWithReference) {
  const auto [row, implementation, isa] = GetParam();
  std::string declined;
  bool ran = false;
  for (const int64_t samples : batches_of(*row)) {
    SCOPED_TRACE(row->name + ", batch " + std::to_string(samples));
    const NodeCase node_case = make_case(*row, samples);
    const Outcome outcome = run_node(node_case, *implementation, isa);
    if (!outcome.declined.empty()) {
      declined = outcome.declined;
      ASSERT_NE(implementation->name, "native") << declined;
      continue;
    }
    ran = true;
    ASSERT_EQ(outcome.problems, std::vector<std::string>());
    ASSERT_EQ(difference(node_case, outcome, row->tolerance), "");
  }
  if (!ran) GTEST_SKIP() << implementation->name << ": " << declined;
}

INSTANTIATE_TEST_SUITE_P(Table, OpCases, testing::ValuesIn(runs()), [](const auto& made) {
  const Run& run = made.param;
  return run.row->name + "_" + std::string(run.implementation->name) + "_" + name(run.isa);
});

TEST(OpCaseTable, NamesAreUnique) {
  std::set<std::string> names;
  for (const OpCase& row : op_cases()) EXPECT_TRUE(names.insert(row.name).second) << row.name;
}

TEST(OpCaseTable, EveryOperationHasRows) {
  std::set<std::string_view> with_rows;
  for (const OpCase& row : op_cases()) with_rows.insert(row.op);
  for (const graph::OpInfo* info : graph::all_ops()) EXPECT_TRUE(with_rows.count(info->name)) << info->name;
}

TEST(OpCaseTable, EveryOperationHasAReference) {
  for (const graph::OpInfo* info : graph::all_ops()) EXPECT_TRUE(oracle::knows(info->name)) << info->name;
}

TEST(OpCaseTable, EveryOperationRunsWithoutLibraries) {
  for (const graph::OpInfo* info : graph::all_ops()) {
    const auto candidates = implementations(info->name);
    EXPECT_TRUE(info->view || std::any_of(candidates.begin(), candidates.end(),
                                          [](const auto* candidate) { return candidate->name == "native"; }))
        << info->name;
  }
}

TEST(OpCaseTable, EveryTailOfABlockIsTried) {
  for (const graph::OpInfo* info : graph::all_ops()) {
    int64_t most = 0;
    bool batched = false;
    for (const OpCase& row : op_cases()) {
      if (row.op != info->name) continue;
      for (const CaseInput& input : row.inputs) batched = batched || input.type.batched();
      most = std::max(most, static_cast<int64_t>(row.batches.size()));
    }
    EXPECT_TRUE(!batched || most >= 9) << info->name;
  }
}

}  // namespace
}  // namespace brisk::test
