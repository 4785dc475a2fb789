// Derivatives against central differences, both in double on the reference: what is checked here are the rules of the
// op table, not the kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cases/op_cases.h"
#include "graph/op_table.h"

namespace brisk::test {
namespace {

using graph::Derivation;
using graph::Graph;
using graph::kNoValue;
using graph::ValueId;

bool wants_gradient(const OpCase& row, size_t i) {
  const CaseInput& input = row.inputs[i];
  return static_cast<int>(i) >= graph::op(row.op).constant_inputs && input.type.dtype == DType::f32 &&
         input.place != graph::Place::buffer;
}

/// Rows worth deriving: small ones are enough, the rule does not depend on the size.
bool is_derived(const OpCase& row) {
  if (!row.smooth || !graph::op(row.op).derive) return false;
  int64_t elements = 0;
  bool any = false;
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    elements += row.inputs[i].type.elements();
    any = any || wants_gradient(row, i);
  }
  return any && elements <= 3000;
}

std::vector<const OpCase*> derived_rows() {
  std::vector<const OpCase*> rows;
  for (const OpCase& row : op_cases()) {
    if (is_derived(row)) rows.push_back(&row);
  }
  return rows;
}

/// y = op(inputs) with its derivative, and the loss sum(weight * y).
class Derived {
 public:
  Derived(const OpCase& row, int64_t samples) : case_(make_case(row, samples)), graph_(build(case_)) {
    const ValueId y = graph_.nodes[0].outputs[0];
    forward_ = graph_;
    weight_id_ = graph_.add_value(graph_.type(y));
    std::vector<ValueId> gradients(graph_.nodes[0].outputs.size(), kNoValue);
    gradients[0] = weight_id_;
    Derivation derivation(graph_, 0, gradients);
    for (size_t i = 0; i < row.inputs.size(); ++i) {
      if (wants_gradient(row, i)) derivation.want(static_cast<int>(i));
    }
    derivation.node().op->derive(derivation);
    for (size_t i = 0; i < row.inputs.size(); ++i) gradient_ids_.push_back(derivation.result(static_cast<int>(i)));
    weight_ = oracle::zeros(graph_.type(y), samples);
    Random random(7);
    for (double& value : weight_.data) value = random.uniform(-1, 1);
  }

  const Graph& graph() const { return graph_; }
  ValueId gradient_id(size_t input) const { return gradient_ids_[input]; }
  std::vector<double>& data(size_t input) { return case_.inputs[input].data; }

  double loss() const {
    const oracle::Values values = oracle::evaluate(forward_, case_.samples, given(), case_.run);
    const oracle::Array& y = values.at(forward_.nodes[0].outputs[0]);
    double sum = 0;
    for (size_t i = 0; i < y.data.size(); ++i) sum += weight_.data[i] * y.data[i];
    return sum;
  }
  oracle::Values gradients() const {
    oracle::Values values = given();
    values[weight_id_] = weight_;
    return oracle::evaluate(graph_, case_.samples, std::move(values), case_.run);
  }

 private:
  oracle::Values given() const {
    oracle::Values values;
    for (size_t i = 0; i < case_.inputs.size(); ++i) {
      values[static_cast<ValueId>(i)] = {oracle::full_shape(case_.inputs[i].type, case_.samples), case_.inputs[i].data};
    }
    return values;
  }

  NodeCase case_;
  Graph graph_, forward_;
  ValueId weight_id_ = kNoValue;
  std::vector<ValueId> gradient_ids_;
  oracle::Array weight_;
};

void check_input(Derived& derived, size_t input, const oracle::Array& gradient) {
  constexpr double kStep = 1e-5;
  constexpr size_t kTried = 12;  // elements, spread over the input
  std::vector<double>& data = derived.data(input);
  double largest = 0;
  for (const double value : gradient.data) largest = std::max(largest, std::fabs(value));
  const size_t stride = std::max<size_t>(1, data.size() / kTried);
  for (size_t i = 0; i < data.size(); i += stride) {
    const double x = data[i];
    data[i] = x + kStep;
    const double above = derived.loss();
    data[i] = x - kStep;
    const double below = derived.loss();
    data[i] = x;
    const double difference = (above - below) / (2 * kStep);
    EXPECT_NEAR(gradient.data[i], difference, 1e-6 * std::max(1.0, largest)) << "input " << input << " element " << i;
  }
}

class Gradients : public testing::TestWithParam<const OpCase*> {};

TEST_P(Gradients, AgreeWithFiniteDifferences) {
  const OpCase& row = *GetParam();
  // Three samples: batch statistics need more than one, and sums over the batch more than two.
  Derived derived(row, 3);
  const oracle::Values values = derived.gradients();
  for (size_t i = 0; i < row.inputs.size(); ++i) {
    const ValueId id = derived.gradient_id(i);
    if (!wants_gradient(row, i)) {
      EXPECT_EQ(id, kNoValue) << "input " << i << " has a gradient that nobody asked for";
      continue;
    }
    ASSERT_NE(id, kNoValue) << "input " << i << " has no gradient";
    ASSERT_EQ(derived.graph().type(id), row.inputs[i].type) << "input " << i;
    check_input(derived, i, values.at(id));
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Gradients, testing::ValuesIn(derived_rows()),
                         [](const auto& made) { return made.param->name; });

TEST(GradientTable, EveryDerivativeHasARow) {
  std::set<std::string_view> with_rows;
  for (const OpCase* row : derived_rows()) with_rows.insert(row->op);
  for (const graph::OpInfo* info : graph::all_ops()) {
    EXPECT_TRUE(!info->derive || with_rows.count(info->name)) << info->name;
  }
}

}  // namespace

void PrintTo(const OpCase* row, std::ostream* out) { *out << row->name; }

}  // namespace brisk::test
