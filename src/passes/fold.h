// fold: a rewrite of a program that only predicts, before the passes: batch_norm, whose statistics are then constants,
// becomes part of the layer before it.
#pragma once

#include <vector>

#include "graph/graph.h"

namespace brisk::passes {

/// A weight and a bias of the rewritten program, and what they are made of: indices into Graph::parameters. For channel
/// c: s = scale / sqrt(variance + epsilon), weight = source_weight s, bias = (sum of source_biases - mean) s + shift.
struct Fold {
  int32_t weight = -1, bias = -1;
  int32_t source_weight = -1;
  std::vector<int32_t> source_biases;  ///< the layer's own, and that of a bias_add behind it
  int32_t scale = -1, shift = -1, mean = -1, variance = -1;
  double epsilon = 0;
};

/// Rewrites conv2d or linear, bias_add or none, batch_norm where nobody else reads what lies between; adds the made
/// parameters to the program (of no store) and says how they are made. Parameters themselves are not touched.
std::vector<Fold> fold_batch_norm(graph::Graph& program);

}  // namespace brisk::passes
