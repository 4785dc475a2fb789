#include "backend/cuda/run_layout.h"

#include "backend/backend.h"
#include "graph/op_table.h"

namespace brisk::backend::cuda {

using graph::Graph;
using graph::Place;

std::vector<std::vector<int32_t>> run_units(const Graph& graph) {
  std::vector<std::vector<int32_t>> units;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const graph::Node& node = graph.nodes[i];
    const bool joins = i > 0 && node.group >= 0 && node.group == graph.nodes[i - 1].group;
    if (!joins && node.op->view && graph.value(node.outputs[0]).alias != graph::kNoValue) continue;
    if (!joins) units.emplace_back();
    units.back().push_back(static_cast<int32_t>(i));
  }
  return units;
}

namespace {

int64_t bytes_of(const graph::ValueType& type, int64_t samples) {
  return type.elements() * (type.batched() ? samples : 1) * size_of(type.dtype);
}

/// Takes regions one after the other.
class Cursor {
 public:
  int64_t take(int64_t bytes, int64_t alignment = 256) {
    const int64_t at = (end_ + alignment - 1) / alignment * alignment;
    end_ = at + bytes;
    return at;
  }
  int64_t end() const { return end_; }

 private:
  int64_t end_ = 0;
};

}  // namespace

RunLayout run_layout(const Graph& graph, int64_t samples, const std::vector<int64_t>& tables) {
  RunLayout layout;
  layout.inputs.assign(graph.inputs.size(), 0);
  layout.input_bytes.assign(graph.inputs.size(), 0);
  layout.outputs.assign(graph.outputs.size(), 0);
  layout.output_bytes.assign(graph.outputs.size(), 0);
  const int64_t scalar_bytes = static_cast<int64_t>(graph.scalars.size() * sizeof(float));
  for (const graph::Node& node : graph.nodes) {
    for (const graph::ValueId id : node.inputs) {
      const graph::Value& value = graph.value(id);
      if (value.place == Place::input)
        layout.input_bytes[static_cast<size_t>(value.slot)] = bytes_of(value.type, samples);
    }
    for (const graph::ValueId id : node.outputs) {
      const graph::Value& value = graph.value(id);
      if (value.place == Place::output)
        layout.output_bytes[static_cast<size_t>(value.slot)] = bytes_of(value.type, samples);
      if (value.place == Place::scalar) layout.schedule_bytes = kScheduledUpdates * scalar_bytes;
      if (node.op->name == "gradient_stats") layout.stats_bytes = bytes_of(value.type, samples);
    }
  }
  Cursor block;
  block.take(kHeaderBytes);
  layout.results = kernels::kCounterBytes + (graph.phase == graph::Phase::train ? 0 : kStatusBytes);
  layout.totals = block.take(static_cast<int64_t>(graph.totals.size() * 2 * sizeof(double)), alignof(double));
  layout.stats = block.take(layout.stats_bytes, alignof(double));
  layout.results_bytes = block.end() - layout.results;
  layout.selected = block.take(layout.schedule_bytes > 0 ? scalar_bytes : 0);
  layout.schedule = block.take(layout.schedule_bytes);
  for (size_t i = 0; i < graph.outputs.size(); ++i) layout.outputs[i] = block.take(layout.output_bytes[i]);
  for (const int64_t bytes : tables) layout.tables_bytes += table_stride(bytes);
  layout.tables = block.take(layout.tables_bytes);
  Cursor upload;
  upload.take(sizeof(kernels::RunState));
  layout.scalars = upload.take(scalar_bytes, alignof(double));
  layout.head_bytes = upload.end();
  for (size_t i = 0; i < graph.inputs.size(); ++i) layout.inputs[i] = upload.take(layout.input_bytes[i]);
  layout.upload_bytes = upload.end();
  for (int64_t& at : layout.uploads) at = block.take(layout.upload_bytes);
  layout.bytes = block.end();
  return layout;
}

int64_t run_bytes(const Graph& graph, int64_t samples, const Profile& profile) {
  std::vector<int64_t> tables;
  for (const std::vector<int32_t>& nodes : run_units(graph)) {
    const graph::Node& last = graph.nodes[static_cast<size_t>(nodes.back())];
    for (const Table& table : lower(graph, nodes, samples, profile, last.implementation).tables)
      tables.push_back(table.bytes);
  }
  return run_layout(graph, samples, tables).bytes;
}

}  // namespace brisk::backend::cuda
