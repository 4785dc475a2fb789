// The case table: for every operation the sizes, shapes and values at which each of its implementations must agree with
// the reference. A new operation adds its rows here; value, gradient and completeness tests run over the table.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/graph.h"
#include "support/random.h"
#include "support/run_node.h"

namespace brisk::test {

struct OpCase;
/// Makes the elements of an input; f32 ones are rounded, so that reference and kernel start from the same numbers.
using Fill = std::function<std::vector<double>(const OpCase&, int64_t count, Random&)>;

struct CaseInput {
  graph::ValueType type;
  Fill fill;
  graph::Place place = graph::Place::activation;
  int32_t slot = 0;
};

/// What an error is measured against.
enum class Measure : uint8_t {
  element,    ///< the element's own size
  magnitude,  ///< the element computed from the absolute values of all inputs: sum of |a| |b|
  output,     ///< the largest element of the output
  largest,    ///< the largest magnitude of the output
};

struct Tolerance {
  double relative = 0;  ///< 0: equal as floats
  Measure measure = Measure::element;
  double absolute = 1e-37;  ///< results that are denormal as floats are flushed
};

struct OpCase {
  std::string name;  ///< letters, digits and underscores, unique
  std::string op;
  graph::Attributes attributes;
  std::vector<CaseInput> inputs;
  std::vector<int64_t> batches = {1};
  Tolerance tolerance;
  /// Whether finite differences may be taken: no NaN, no ties, no values near a kink.
  bool smooth = true;
  oracle::Run run = {};
  std::vector<std::vector<double>> before = {};  ///< as NodeCase's
};

/// All rows.
const std::vector<OpCase>& op_cases();

/// The node of a row with its inputs filled, the same each time.
NodeCase make_case(const OpCase& row, int64_t samples);

/// The batches of a row; few of them when BRISK_CASES is "small".
std::vector<int64_t> batches_of(const OpCase& row);

/// Families of rows, one a file or a part of one.
std::vector<OpCase> custom_cases();
std::vector<OpCase> elementwise_cases();
std::vector<OpCase> indexing_cases();
std::vector<OpCase> layer_cases();
std::vector<OpCase> layer_norm_cases();
std::vector<OpCase> loss_cases();
std::vector<OpCase> norm_cases();
std::vector<OpCase> plan_cases();
std::vector<OpCase> pool_cases();
std::vector<OpCase> random_cases();
std::vector<OpCase> shape_cases();

}  // namespace brisk::test
