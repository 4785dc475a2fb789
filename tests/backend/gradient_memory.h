// Runs a node whose output is bound into gradient memory, as a plan does for the weights' gradients.
#pragma once

#include <vector>

#include "support/run_node.h"

namespace brisk::test {

/// Output 0 of the node on each instruction set, its memory holding `before` at first. Plain output only.
std::vector<std::vector<float>> run_into_gradient(const NodeCase& node_case, float before);

}  // namespace brisk::test
