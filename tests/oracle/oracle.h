// The reference: every operation by its definition, in double, with plain loops over row-major arrays. It shares
// nothing with a backend but the graph that says what to compute, so that the two cannot be wrong in the same way.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace brisk::oracle {

/// Row-major elements of any type, held as doubles. A batched value has rows x N leading; row n * rows + r is row r of
/// sample n.
struct Array {
  Shape shape;
  std::vector<double> data;
};
using Values = std::map<graph::ValueId, Array>;

/// What changes from run to run.
struct Run {
  bool accumulate = false;   ///< gradients add to what is given under their value's id
  int64_t attempt = 0;       ///< counter of the random numbers
  int64_t first_sample = 0;  ///< index of sample 0 in the global window
};

/// The first error that an operation met, in the order of nodes and rows.
struct Fault {
  enum Kind { none, label, nonfinite_gradient };
  Kind kind = none;
  int32_t node = -1;
  int64_t sample = -1;  ///< the row, or the position of the gradient among its node's
  int64_t value = 0;    ///< the label
};

/// The shape of a value's Array for a batch of `samples`.
Shape full_shape(const graph::ValueType& type, int64_t samples);
Array zeros(const graph::ValueType& type, int64_t samples);

/// Runs all nodes in their order. `given` holds each value that no node makes (by id), and may hold what a totals or
/// gradient value contained before the run. Returns all values. Throws std::logic_error for an unknown operation, a
/// missing value, or an output type that does not follow from the inputs.
Values evaluate(const graph::Graph& graph, int64_t samples, Values given, const Run& run = {}, Fault* fault = nullptr);

/// True when the reference knows the operation.
bool knows(std::string_view op);

/// Ten rounds of Philox 4x32 (Salmon, Moraes, Dror, Shaw: "Parallel Random Numbers: As Easy as 1, 2, 3", SC 2011) for
/// the four words of a counter: attempt low, attempt high, sample, block. Returns the word `lane` of the result.
uint32_t random_word(uint64_t key, uint64_t attempt, uint32_t sample, uint32_t block, int lane);

}  // namespace brisk::oracle
