// precision: everything is f32, other recipes are refused, and graphs that its verifier refuses.
#include <stdexcept>

#include "passes/broken.h"

namespace brisk::passes::test {
namespace {

TEST(Precision, LeavesAnF32GraphAsItIs) {
  const PlanRequest request = request_for(Phase::train);
  const Graph given = before("precision", small_program().graph, request);
  EXPECT_EQ(graph::print(precision(given, request)), graph::print(given));
}

TEST(Precision, EverythingButLabelsAndIndicesIsF32) {
  const Graph graph = after("precision");
  for (const Node& node : graph.nodes)
    for (const ValueId id : node.outputs)
      if (!is(node, "load") && !is(node, "max_pool2d")) {
        EXPECT_EQ(graph.type(id).dtype, DType::f32) << graph::label(node);
      }
}

TEST(Precision, OtherRecipesAreRefusedByName) {
  for (const Precision asked : {Precision::bf16, Precision::fp16, Precision::automatic}) {
    PlanRequest request = request_for(Phase::train);
    request.precision = asked;
    try {
      precision(Graph(), request);
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::option);
      EXPECT_EQ(error.field(), "StepOptions.precision");
    }
  }
}

/// The first value in a kind of memory.
graph::Value& value_in(Graph& graph, Place place) {
  for (graph::Value& value : graph.values)
    if (value.place == place) return value;
  throw std::logic_error("no such value");
}

Broken stored_as(const char* name, Place place, DType dtype, const char* rule) {
  return {name, Phase::train, [=](Graph& g, PlanRequest&) { value_in(g, place).type.dtype = dtype; }, rule};
}

const std::vector<Broken> kBroken = {
    {"AnotherRecipe", Phase::train, [](Graph&, PlanRequest& request) { request.precision = Precision::bf16; },
     "recipe"},
    stored_as("LowParameter", Place::parameter, DType::bf16, "parameters"),
    stored_as("LowGradient", Place::gradient, DType::f16, "gradients"),
    stored_as("IntegerMoment", Place::moment1, DType::i32, "moments"),
    stored_as("LowStatistics", Place::buffer, DType::bf16, "statistics"),
    stored_as("IntegerScalar", Place::scalar, DType::i64, "scalars"),
    stored_as("IntegerSum", Place::totals, DType::i64, "totals"),
    {"LowActivation", Phase::train,
     [](Graph& g, PlanRequest&) { g.value(output(g, "conv2d")).type.dtype = DType::bf16; }, "low"},
    {"ArithmeticOnIntegers", Phase::train,
     [](Graph& g, PlanRequest&) { g.value(output(g, "max_pool2d")).type.dtype = DType::i32; }, "arithmetic"},
    {"IntegerLoss", Phase::train,
     [](Graph& g, PlanRequest&) { g.value(g.objective[0].per_row).type.dtype = DType::i32; }, "terms"},
};

class BrokenPrecision : public testing::TestWithParam<Broken> {};
TEST_P(BrokenPrecision, IsRefused) { expect_refused("precision", GetParam()); }
INSTANTIATE_TEST_SUITE_P(Ten, BrokenPrecision, testing::ValuesIn(kBroken), name_of);
TEST(Precision, TenBrokenGraphs) { expect_ten_or_more(kBroken); }

}  // namespace
}  // namespace brisk::passes::test
