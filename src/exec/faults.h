// What a run of a plan met, as the caller's exception.
#pragma once

#include <exception>

#include "graph/graph.h"

namespace brisk::exec {

/// What an operation of the user's threw while the node ran: Error [state] with its name and the user's line.
[[noreturn]] void raise_user_op(const graph::Node& node, const std::exception_ptr& thrown);

}  // namespace brisk::exec
