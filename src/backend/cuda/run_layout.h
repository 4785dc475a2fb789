// What a plan's runs need of device memory beside its arena, and how it lies in one block: arithmetic, so that a plan
// can count it without the device.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/cuda/lowering.h"

namespace brisk::backend::cuda {

/// Begin of the block, the same in all plans: kernels' counters, the status of training, and that of other plans, so
/// that an evaluation inside of a window leaves the window's alone.
constexpr int64_t kStatusBytes = sizeof(kernels::Status);
constexpr int64_t kHeaderBytes = kernels::kCounterBytes + 2 * kStatusBytes;

/// Offsets in bytes. All plans of a runtime share the block, which is as large as the largest needs: the header stays
/// between runs, the rest belongs to the plan that runs.
struct RunLayout {
  int64_t counters = 0;
  int64_t results = 0;  ///< begins with the plan's status; with totals and statistics one copy brings it to the host
  int64_t totals = 0;
  int64_t stats = 0;        ///< gradient_stats' output
  int64_t stats_bytes = 0;  ///< 0: the plan has none
  int64_t results_bytes = 0;
  int64_t selected = 0;  ///< Operands::selected
  int64_t schedule = 0;
  int64_t schedule_bytes = 0;    ///< 0: the plan selects no scalars
  std::vector<int64_t> outputs;  ///< by Graph::outputs index
  std::vector<int64_t> output_bytes;
  int64_t tables = 0;
  int64_t tables_bytes = 0;
  /// What the host sends before a run, twice, so that it can be sent while the run before is reading:
  int64_t uploads[2] = {};
  int64_t upload_bytes = 0;
  int64_t head_bytes = 0;            ///< of it, what an update alone needs: all but the inputs
  int64_t scalars = 0;               ///< from the upload's begin, where RunState lies
  std::vector<int64_t> inputs;       ///< by Graph::inputs index, likewise
  std::vector<int64_t> input_bytes;  ///< 0: nothing reads it
  int64_t bytes = 0;
};

/// tables: bytes of each table of the plan's lowerings, in their order.
RunLayout run_layout(const graph::Graph& graph, int64_t samples, const std::vector<int64_t>& tables);
constexpr int64_t table_stride(int64_t bytes) { return (bytes + 255) / 256 * 256; }

/// What is run as one: single nodes and groups, in the plan's order; without views, which launch nothing.
std::vector<std::vector<int32_t>> run_units(const graph::Graph& graph);

/// Bytes of the block for a plan: Target::scratch_bytes.
int64_t run_bytes(const graph::Graph& graph, int64_t samples, const Profile& profile);

}  // namespace brisk::backend::cuda
