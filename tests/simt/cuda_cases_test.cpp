// The case table on the emulated device: each row of an operation that has CUDA kernels, in f32 and the 16-bit types,
// against the reference, in several schedules and in place.
#include <gtest/gtest.h>

#include <algorithm>

#include "backend/cuda/lowering.h"
#include "cases/compare.h"
#include "cases/op_cases.h"
#include "graph/op_table.h"
#include "simt/core.h"
#include "simt/device_node.h"

namespace brisk::test {
namespace {

struct CudaRow {
  const OpCase* row;
  DType dtype;
};
void PrintTo(const CudaRow& run, std::ostream* out) { *out << run.row->name << ' ' << name(run.dtype); }

bool has_kernel(std::string_view op) {
  const auto list = backend::cuda::implementations();
  return std::any_of(list.begin(), list.end(), [&](const auto& candidate) { return candidate.op == op; });
}

NodeCase first_case(const OpCase& row) { return make_case(row, row.batches.front()); }

/// Those that a kernel takes.
std::vector<CudaRow> cuda_rows() {
  std::vector<CudaRow> rows;
  for (const OpCase& row : op_cases()) {
    if (!has_kernel(row.op)) continue;
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16})
      if (has_form(first_case(row), dtype) && declined(device_case(first_case(row), dtype)).empty())
        rows.push_back({&row, dtype});
  }
  return rows;
}

/// Emulated threads are slow: the smallest, the largest and a middle batch, as far as they are small.
std::vector<int64_t> device_batches(const OpCase& row) {
  constexpr int64_t kElements = 20000;
  std::vector<int64_t> all = row.batches, batches;
  std::sort(all.begin(), all.end());
  const auto elements = [&](int64_t samples) {
    int64_t most = 0;
    for (const CaseInput& input : row.inputs)
      most = std::max(most, input.type.elements() * (input.type.batched() ? samples : 1));
    return most;
  };
  all.erase(std::remove_if(all.begin() + 1, all.end(), [&](int64_t n) { return elements(n) > kElements; }), all.end());
  for (const size_t i : {size_t{0}, all.size() / 2, all.size() - 1})
    if (std::find(batches.begin(), batches.end(), all[i]) == batches.end()) batches.push_back(all[i]);
  return batches;
}

class CudaOpCases : public testing::TestWithParam<CudaRow> {
 protected:
  void TearDown() override { simt::config().seed = seed_; }
  const uint64_t seed_ = simt::config().seed;
};

TEST_P(CudaOpCases, AgreesWithReference) {
  const auto [row, dtype] = GetParam();
  for (const int64_t samples : device_batches(*row)) {
    SCOPED_TRACE("batch " + std::to_string(samples));
    const DeviceCase made = device_case(make_case(*row, samples), dtype);
    simt::config().seed = 0;
    const Outcome first = run_on_device(made);
    EXPECT_EQ(first.problems, std::vector<std::string>());
    ASSERT_EQ(difference(made.node_case, first, row->tolerance, stored_types(made)), "");
    const auto repeats = [&](const Outcome& again) {
      EXPECT_EQ(again.problems, std::vector<std::string>());
      for (size_t i = 0; i < first.outputs.size(); ++i)
        EXPECT_EQ(difference(first.outputs[i], again.outputs[i]), "") << "output " << i;
    };
    for (const uint64_t seed : {1, 7}) {
      SCOPED_TRACE("schedule " + std::to_string(seed));
      simt::config().seed = seed;
      repeats(run_on_device(made));
    }
    for (const int input : in_place_inputs(made)) {
      SCOPED_TRACE("in place of input " + std::to_string(input));
      repeats(run_on_device(made, input));
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Emulated, CudaOpCases, testing::ValuesIn(cuda_rows()),
                         [](const auto& made) { return made.param.row->name + "_" + name(made.param.dtype); });

TEST(CudaOpCaseTable, EachOperationWithAKernelHasRows) {
  const std::vector<CudaRow> rows = cuda_rows();
  for (const auto& candidate : backend::cuda::implementations())
    EXPECT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const CudaRow& run) { return run.row->op == candidate.op; }))
        << candidate.op;
}

TEST(CudaOpCaseTable, WhatNoKernelTakesIsRefusedWithAReason) {
  for (const OpCase& row : op_cases()) {
    const std::string reason = declined(device_case(first_case(row), DType::f32));
    if (!has_kernel(row.op)) {
      EXPECT_EQ(reason, "no CUDA kernel computes " + row.op + " yet; use .device = cpu()");
    } else if (!reason.empty()) {
      EXPECT_EQ(reason.compare(0, 8, "native: "), 0) << row.name << ": " << reason;
    }
  }
}

}  // namespace
}  // namespace brisk::test
