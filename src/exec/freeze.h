// What is frozen now, said to a program.
#pragma once

#include <memory>
#include <vector>

#include "graph/model_state.h"

namespace brisk::exec {

/// Sets Node::frozen: of layers with a frozen parameter, and of dropout whose name the last matching glob freezes.
/// models: meaning of Node::store and ParameterRef::store.
void mark_frozen(graph::Graph& program, const std::vector<std::shared_ptr<ModelState>>& models);

}  // namespace brisk::exec
