// What several passes need: rebuilding a graph without some of its nodes, and what every verifier checks.
#pragma once

#include <string>
#include <vector>

#include "core/text.h"
#include "graph/op_table.h"
#include "passes/passes.h"

namespace brisk::passes {

/// True for values that live in memory which outlasts a run (not the plan's arena).
bool persistent(const graph::Value& value);

/// Keeps the nodes of `order` (indices, in that order), drops the rest; renumbers producers. Values keep their ids.
void reorder(graph::Graph& graph, const std::vector<int32_t>& order);

/// Nodes that are needed by the roots or have an effect outside the arena, in their present order.
std::vector<int32_t> live_nodes(const graph::Graph& graph);

/// How the nodes of a graph are ordered: until `schedule` sorts them by waves, the stages follow each other.
enum class Sorted : uint8_t { by_stage, by_wave };
/// Rules of every graph: ids, order, producers, slots, arity, attributes, stages, terms, nothing of training outside
/// it. `pass` names the pass in the message.
void verify_structure(const graph::Graph& graph, const char* pass, Sorted sorted = Sorted::by_stage);
/// Every output has the type that the op table infers, and lives in the memory that it names.
void verify_types(const graph::Graph& graph, const char* pass);

/// Values that a node makes or reads outside the arena: bytes of one row-major element count, for reports.
int64_t value_bytes(const graph::Graph& graph, graph::ValueId id, int64_t samples, int lanes);

/// Whether the node only gives its input's bytes another shape: the elements of both lie in one order.
bool is_view(const graph::Graph& graph, const graph::Node& node);

/// The loss scale (slot 0) or the counters (slot 1) before the update: Place::state.
graph::ValueId state_value(graph::Graph& graph, int32_t slot);

/// Whether gradients carry a loss scale.
inline bool scales_loss(const PlanRequest& request) { return request.precision == Precision::fp16; }

inline bool is(const graph::Node& node, std::string_view op) { return node.op->name == op; }
inline const graph::Node& node_at(const graph::Graph& graph, int32_t index) {
  return graph.nodes[static_cast<size_t>(index)];
}

}  // namespace brisk::passes
