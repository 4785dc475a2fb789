// schedule: waves of nodes that do not depend on each other; each node as early as its operands allow. The stages of a
// micro-batch and of the update do not mix, so that each can run without the other.
#include <algorithm>
#include <map>
#include <numeric>

#include "passes/common.h"

namespace brisk::passes {

using graph::Graph;
using graph::Node;
using graph::Place;
using graph::Stage;
using graph::ValueId;

namespace {

/// Commit waits for the whole backward pass (it is gated by its status), update for the whole micro-batch.
int barrier_class(Stage stage) { return stage == Stage::update ? 2 : stage == Stage::commit ? 1 : 0; }

}  // namespace

Graph schedule(Graph graph, const PlanRequest&) {
  std::map<std::pair<Place, int32_t>, int32_t> last_read;  // wave of the last reader of memory that outlasts the run
  int32_t floor = 0, latest = 0;
  int current = 0;
  for (size_t i = 0; i < graph.nodes.size();) {
    size_t end = i + 1;
    while (graph.nodes[i].group >= 0 && end < graph.nodes.size() && graph.nodes[end].group == graph.nodes[i].group)
      ++end;
    if (barrier_class(graph.nodes[i].stage) != current) {
      current = barrier_class(graph.nodes[i].stage);
      floor = latest + 1;
    }
    int32_t wave = floor;
    for (size_t k = i; k < end; ++k) {
      for (const ValueId id : graph.nodes[k].inputs) {
        const int32_t from = graph.value(id).producer;
        if (from >= 0 && static_cast<size_t>(from) < i) wave = std::max(wave, node_at(graph, from).wave + 1);
      }
      for (const ValueId id : graph.nodes[k].outputs) {
        const graph::Value& value = graph.value(id);
        const auto read = last_read.find({value.place, value.slot});
        if (persistent(value) && read != last_read.end()) wave = std::max(wave, read->second + 1);
      }
    }
    for (size_t k = i; k < end; ++k) {
      graph.nodes[k].wave = wave;
      for (const ValueId id : graph.nodes[k].inputs) {
        const graph::Value& value = graph.value(id);
        if (!persistent(value)) continue;
        int32_t& read = last_read[{value.place, value.slot}];
        read = std::max(read, wave);
      }
    }
    latest = std::max(latest, wave);
    i = end;
  }
  std::vector<int32_t> order(graph.nodes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return node_at(graph, a).wave < node_at(graph, b).wave; });
  // Forward nodes may share a wave with backward ones: within a wave the stages keep their order.
  for (size_t first = 0; first < order.size();) {
    size_t last = first;
    while (last < order.size() && node_at(graph, order[last]).wave == node_at(graph, order[first]).wave) ++last;
    std::stable_sort(order.begin() + static_cast<std::ptrdiff_t>(first),
                     order.begin() + static_cast<std::ptrdiff_t>(last),
                     [&](int32_t a, int32_t b) { return node_at(graph, a).stage < node_at(graph, b).stage; });
    first = last;
  }
  reorder(graph, order);
  return graph;
}

void verify_schedule(const Graph& graph, const PlanRequest&) {
  const char* pass = "schedule";
  std::map<std::pair<Place, int32_t>, std::pair<int32_t, std::string>> readers;
  int32_t wave = 0;
  int stage = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const std::string at = graph::label(node);
    check(node.wave >= 0, pass, "wave", cat(at, " has none"));
    check(node.wave >= wave, pass, "sorted", cat(at, " of wave ", node.wave, " comes after wave ", wave));
    check(barrier_class(node.stage) >= stage, pass, "stages",
          cat(at, " of stage ", graph::name(node.stage), " comes too late"));
    check(barrier_class(node.stage) == stage || node.wave > wave || i == 0, pass, "boundary",
          cat(at, " shares a wave with an earlier stage"));
    wave = node.wave;
    stage = barrier_class(node.stage);
    for (const ValueId id : node.inputs) {
      const int32_t from = graph.value(id).producer;
      if (from < 0) continue;
      const Node& producer = node_at(graph, from);
      check(static_cast<size_t>(from) < i, pass, "order", cat(at, " comes before ", graph::label(producer)));
      const bool together = node.group >= 0 && node.group == producer.group;
      check(together ? producer.wave == node.wave : producer.wave < node.wave, pass, "dependency",
            cat(at, " and ", graph::label(producer), ", which it reads, are of wave ", node.wave));
    }
    for (const ValueId id : node.inputs)
      if (persistent(graph.value(id))) {
        auto& reader = readers[{graph.value(id).place, graph.value(id).slot}];
        if (node.wave >= reader.first) reader = {node.wave, at};
      }
    for (const ValueId id : node.outputs) {
      const graph::Value& value = graph.value(id);
      const auto reader = readers.find({value.place, value.slot});
      if (!persistent(value) || reader == readers.end()) continue;
      check(reader->second.first < node.wave || reader->second.second == at, pass, "overwrite",
            cat(at, " overwrites ", graph::name(value.place), " while ", reader->second.second, " reads it"));
    }
    if (i > 0 && node.group >= 0 && graph.nodes[i - 1].group == node.group)
      check(graph.nodes[i - 1].wave == node.wave, pass, "group", cat(at, " is of another wave than its group"));
  }
}

}  // namespace brisk::passes
