// The case table on the emulated device: each row of an operation that has CUDA kernels, in f32 and the 16-bit types,
// against the reference, in several schedules and in place.
#include <gtest/gtest.h>

#include <algorithm>

#include "backend/backend.h"
#include "backend/cuda/profiles.h"
#include "cases/compare.h"
#include "cases/op_cases.h"
#include "graph/op_table.h"
#include "simt/device_buffer.h"
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

/// Values rounded to 16 bits may be equal where those of the row are not: their variance is 0 but for the reference's
/// own rounding.
Tolerance tolerance_of(const OpCase& row, DType dtype) {
  Tolerance tolerance = row.tolerance;
  if (dtype != DType::f32 && tolerance.relative > 0) tolerance.absolute = std::max(tolerance.absolute, 1e-18);
  return tolerance;
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
    ASSERT_EQ(difference(made.node_case, first, tolerance_of(*row, dtype), stored_types(made)), "");
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
    EXPECT_TRUE(candidate.op == "select_scalars" ||
                std::any_of(rows.begin(), rows.end(), [&](const CudaRow& run) { return run.row->op == candidate.op; }))
        << candidate.op;
}

/// It reads a ring that the runtime keeps, which the table does not know of.
TEST(CudaSelectScalars, TakesTheRowOfTheNextUpdate) {
  graph::Graph graph;
  graph.scalars = {"ratio", "rate", "first"};
  const graph::ValueId counters = graph.add_value({DType::i64, 0, {4}}, graph::Place::state, 1);
  graph.add_node("select_scalars", {counters}, {{"slots", std::vector<int64_t>{1, 2}}}, "select");
  const backend::cuda::Lowering lowering =
      backend::cuda::lower(graph, {0}, 1, *backend::cuda::find_profile("h200"), "native");
  std::vector<float> ring(3 * backend::kScheduledUpdates);
  for (size_t i = 0; i < ring.size(); ++i) ring[i] = static_cast<float>(i);
  simt::for_each_schedule([&] {
    const simt::DeviceBuffer<float> schedule(ring), selected(3);
    for (const int64_t update : {0, 5, 255, 256, 1000}) {
      const simt::DeviceBuffer<int64_t> state({update, 0, 0, 0});
      const void* const in[] = {state.data()};
      void* const out[] = {selected.data() + 1, selected.data() + 2};
      backend::cuda::Operands operands{.in = in, .out = out, .schedule = schedule.data(), .selected = selected.data()};
      for (const auto& launch : lowering.launches) launch.run(operands, nullptr);
      const std::vector<float> got = selected.download();
      const auto row = static_cast<size_t>(update % backend::kScheduledUpdates);
      EXPECT_EQ(got[1], ring[3 * row + 1]);
      EXPECT_EQ(got[2], ring[3 * row + 2]);
    }
  });
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
