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

/// Runs all batches of a row; how many of them the implementation took.
int run_row(const OpCase& row, const cpu::Implementation& implementation, cpu::Isa isa) {
  int ran = 0;
  for (const int64_t samples : batches_of(row)) {
    SCOPED_TRACE(row.name + ", batch " + std::to_string(samples));
    const NodeCase node_case = make_case(row, samples);
    const Outcome outcome = run_node(node_case, implementation, isa);
    if (!outcome.declined.empty()) continue;
    ++ran;
    EXPECT_EQ(outcome.problems, std::vector<std::string>());
    EXPECT_EQ(difference(node_case, outcome, row.tolerance), "");
    if (testing::Test::HasFailure()) break;
  }
  return ran;
}

struct Native {
  const OpCase* row;
  const cpu::Implementation* implementation;
  cpu::Isa isa;
};
void PrintTo(const Native& run, std::ostream* out) { *out << run.row->name; }

std::vector<Native> native_runs() {
  std::vector<Native> runs;
  for (const OpCase& row : op_cases()) {
    for (const cpu::Implementation* implementation : implementations(row.op)) {
      if (implementation->name != "native") continue;
      for (const cpu::Isa isa : instruction_sets()) runs.push_back({&row, implementation, isa});
    }
  }
  return runs;
}

class OpCases : public testing::TestWithParam<Native> {};

TEST_P(OpCases, AgreesWithReference) {
  const auto [row, implementation, isa] = GetParam();
  EXPECT_EQ(run_row(*row, *implementation, isa), static_cast<int>(batches_of(*row).size())) << "native declined";
}

INSTANTIATE_TEST_SUITE_P(Native, OpCases, testing::ValuesIn(native_runs()),
                         [](const auto& made) { return made.param.row->name + "_" + name(made.param.isa); });

/// Candidates from libraries, each of which goes over all rows of its operation in one test: also over those that it
/// would leave to others by preference.
std::vector<const cpu::Implementation*> library_candidates() {
  std::vector<const cpu::Implementation*> candidates;
  for (const cpu::Implementation& implementation : cpu::implementations()) {
    if (implementation.name != "native" && implementation.name != cpu::kSingle) candidates.push_back(&implementation);
  }
  return candidates;
}

class LibraryCandidates : public testing::TestWithParam<const cpu::Implementation*> {};

TEST_P(LibraryCandidates, AgreeWithReference) {
  if (!GetParam()->lower) GTEST_SKIP() << "built without " << GetParam()->name;
  cpu::Implementation forced = *GetParam();
  forced.declines = nullptr;
  for (const OpCase& row : op_cases()) {
    if (row.op != forced.op) continue;
    run_row(row, forced, instruction_sets().back());
    if (HasFailure()) return;
  }
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LibraryCandidates);
INSTANTIATE_TEST_SUITE_P(Library, LibraryCandidates, testing::ValuesIn(library_candidates()), [](const auto& made) {
  return std::string(made.param->op) + "_" + std::string(made.param->name);
});

/// Kernels for a few samples in row-major order: all rows of their operation, at the batches that they take.
TEST(FewSamples, AgreesWithReference) {
  for (const cpu::Implementation& implementation : cpu::implementations()) {
    if (implementation.name != cpu::kSingle) continue;
    int ran = 0;
    for (OpCase row : op_cases()) {
      if (row.op != implementation.op) continue;
      row.batches = {1, 2, 3, 4};
      for (const cpu::Isa isa : instruction_sets()) ran += run_row(row, implementation, isa);
      if (HasFailure()) return;
    }
    EXPECT_GT(ran, 0) << implementation.op;
  }
}

TEST(OpCaseTable, NamesAreUnique) {
  std::set<std::string> names;
  for (const OpCase& row : op_cases()) EXPECT_TRUE(names.insert(row.name).second) << row.name;
}

/// Reads the schedule that an asynchronous runtime holds: no value of the graph.
bool of_runtime(const graph::OpInfo& info) { return info.name == "select_scalars"; }

TEST(OpCaseTable, EveryOperationHasRows) {
  std::set<std::string_view> with_rows;
  for (const OpCase& row : op_cases()) with_rows.insert(row.op);
  for (const graph::OpInfo* info : graph::all_ops())
    EXPECT_TRUE(of_runtime(*info) || with_rows.count(info->name)) << info->name;
}

TEST(OpCaseTable, EveryOperationHasAReference) {
  for (const graph::OpInfo* info : graph::all_ops())
    EXPECT_TRUE(of_runtime(*info) || oracle::knows(info->name)) << info->name;
}

TEST(OpCaseTable, EveryOperationRunsWithoutLibraries) {
  for (const graph::OpInfo* info : graph::all_ops()) {
    const auto candidates = implementations(info->name);
    EXPECT_TRUE(info->view || of_runtime(*info) ||
                std::any_of(candidates.begin(), candidates.end(),
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
