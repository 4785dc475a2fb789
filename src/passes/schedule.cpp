// schedule: waves of nodes that do not depend on each other; each node as early as its operands allow, but casts as
// late as their readers, so that the smaller of two forms of a value is the one that lives on. The stages of a
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

/// Moves casts to the wave before their first reader; then numbers the waves anew, since some may be empty.
void delay_casts(Graph& graph) {
  const auto readers = graph.consumers();
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (!is(*node, "cast")) continue;
    int32_t first = INT32_MAX;
    for (const int32_t reader : readers[static_cast<size_t>(node->outputs[0])])
      if (barrier_class(node_at(graph, reader).stage) == barrier_class(node->stage))
        first = std::min(first, node_at(graph, reader).wave);
    if (first != INT32_MAX) node->wave = first - 1;
  }
  std::map<int32_t, int32_t> numbers;
  for (const Node& node : graph.nodes) numbers[node.wave] = 0;
  int32_t next = 0;
  for (auto& [wave, number] : numbers) number = next++;
  for (Node& node : graph.nodes) node.wave = numbers[node.wave];
}

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
  delay_casts(graph);
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

namespace {

/// No node of a wave writes memory that another one of it reads or writes.
void verify_effects(const Graph& graph, const char* pass) {
  std::map<std::pair<Place, int32_t>, std::vector<int32_t>> readers, writers;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const ValueId id : graph.nodes[i].inputs)
      if (persistent(graph.value(id)))
        readers[{graph.value(id).place, graph.value(id).slot}].push_back(static_cast<int32_t>(i));
    for (const ValueId id : graph.nodes[i].outputs)
      if (persistent(graph.value(id)))
        writers[{graph.value(id).place, graph.value(id).slot}].push_back(static_cast<int32_t>(i));
  }
  for (const auto& [memory, list] : writers) {
    std::vector<int32_t> users = readers[memory];
    users.insert(users.end(), list.begin(), list.end());
    for (const int32_t writer : list)
      for (const int32_t other : users)
        check(other == writer || node_at(graph, other).wave != node_at(graph, writer).wave, pass, "overwrite",
              cat(graph::label(node_at(graph, writer)), " overwrites ", graph::name(memory.first), " while ",
                  graph::label(node_at(graph, other)), " uses it"));
  }
}

}  // namespace

void verify_schedule(const Graph& graph, const PlanRequest&) {
  const char* pass = "schedule";
  verify_structure(graph, pass, Sorted::by_wave);
  int32_t wave = -1;
  int stage = 0;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    const std::string at = graph::label(node);
    check(node.wave >= 0, pass, "wave", cat(at, " has none"));
    check(node.wave >= wave, pass, "sorted", cat(at, " of wave ", node.wave, " comes after wave ", wave));
    check(node.wave <= wave + 1, pass, "gap", cat("nothing happens between wave ", wave, " and ", at));
    check(barrier_class(node.stage) >= stage, pass, "stages",
          cat(at, " of stage ", graph::name(node.stage), " comes too late"));
    check(barrier_class(node.stage) == stage || node.wave > wave, pass, "boundary",
          cat(at, " shares a wave with an earlier stage"));
    if (i > 0 && node.group >= 0 && graph.nodes[i - 1].group == node.group)
      check(node.wave == wave, pass, "group", cat(at, " is of another wave than its group"));
    wave = node.wave;
    stage = barrier_class(node.stage);
    for (const ValueId id : node.inputs) {
      const int32_t from = graph.value(id).producer;
      if (from < 0) continue;
      const Node& producer = node_at(graph, from);
      const bool together = node.group >= 0 && node.group == producer.group;
      check(together ? producer.wave == node.wave : producer.wave < node.wave, pass, "dependency",
            cat(at, " and ", graph::label(producer), ", which it reads, are of wave ", node.wave));
    }
  }
  verify_effects(graph, pass);
  verify_types(graph, pass);
}

}  // namespace brisk::passes
