// The operands of a kernel that runs one node, or the members of a group: the same on every device.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace brisk::backend {

/// What it reads: a group's values that come from outside of it, each once.
std::vector<graph::ValueId> bound_inputs(const graph::Graph& graph, const std::vector<int32_t>& nodes);
/// What it writes: a group's other values do not leave it.
std::vector<graph::ValueId> bound_outputs(const graph::Graph& graph, const std::vector<int32_t>& nodes);

}  // namespace brisk::backend
