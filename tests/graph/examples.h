// One or more small nodes of every operation: tests of the whole op table run over them.
#pragma once

#include <string>
#include <vector>

#include "graph/op_table.h"

namespace brisk::graph::test {

struct ExampleInput {
  ValueType type;
  Place place = Place::activation;
  int32_t slot = 0;
};

struct Example {
  std::string op;
  Attributes attributes;
  std::vector<ExampleInput> inputs;
  std::vector<std::string> outputs;  ///< "[N, 4, 3, 3]"; "i32 [N]" when not f32
};

/// Batched; without a batch.
inline ExampleInput b(Shape shape, int64_t rows = 1, DType dtype = DType::f32) { return {{dtype, rows, shape}}; }
inline ExampleInput p(Shape shape, DType dtype = DType::f32) { return {{dtype, 0, shape}}; }
inline ExampleInput at(Place place, int32_t slot, Shape shape) { return {{DType::f32, 0, shape}, place, slot}; }

const std::vector<Example>& examples();

/// A graph whose values 0, 1, ... are the inputs; its one node is not checked yet.
struct Built {
  Graph graph;
  std::vector<ValueId> inputs;
};
Built inputs_of(const Example& example);
/// The node added: index 0.
Graph build(const Example& example);

/// what() of the Error that `f` throws; "" when it throws none.
template <class F>
std::string error_of(F f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace brisk::graph::test
