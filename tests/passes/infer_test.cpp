// infer: types follow from the inputs and the op table alone, and graphs that its verifier refuses.
#include "passes/broken.h"

namespace brisk::passes::test {
namespace {

TEST(Infer, RestoresEveryType) {
  const PlanRequest request = request_for(Phase::train);
  const Graph given = before("infer", small_program().graph, request);
  Graph forgotten = given;
  for (graph::Value& value : forgotten.values)
    if (value.producer >= 0) value.type = {};
  EXPECT_THROW(verify_infer(forgotten, request), Error);
  const Graph found = infer(std::move(forgotten), request);
  EXPECT_NO_THROW(verify_infer(found, request));
  for (size_t i = 0; i < given.values.size(); ++i)
    EXPECT_EQ(found.values[i].type, given.values[i].type) << "value " << i;
}

TEST(Infer, TypesOfTheSmallNetwork) {
  const Graph graph = after("infer");
  EXPECT_EQ(graph.type(output(graph, "conv2d")).text(), "[N, 4, 10, 10]");
  EXPECT_EQ(graph.type(output(graph, "max_pool2d")).text(), "[N, 4, 5, 5]");
  EXPECT_EQ(graph.type(output(graph, "batch_norm")).text(), "[N, 4, 5, 5]");
  EXPECT_EQ(graph.type(output(graph, "reshape")).text(), "[N, 100]");
  EXPECT_EQ(graph.type(output(graph, "accuracy")).text(), "[N]");
  EXPECT_EQ(graph.type(output(graph, "load", 1)).dtype, DType::i64);
}

TEST(Infer, ChangesNothingInAGoodGraph) {
  const PlanRequest request = request_for(Phase::train);
  const Graph given = before("infer", small_program().graph, request);
  EXPECT_EQ(graph::print(infer(given, request)), graph::print(given));
}

const std::vector<Broken> kBroken = {
    {"NoOperation", Phase::train, [](Graph& g, PlanRequest&) { node(g, "tanh").op = nullptr; }, "op"},
    {"NoWeight", Phase::train, [](Graph& g, PlanRequest&) { node(g, "conv2d").inputs.resize(1); }, "arity"},
    {"StrideOfAnotherKind", Phase::train,
     [](Graph& g, PlanRequest&) { node(g, "conv2d").attributes.set("stride", int64_t{1}); }, "attributes"},
    {"OneOutputTooMany", Phase::train,
     [](Graph& g, PlanRequest&) {
       const ValueId extra = g.add_value({DType::f32, 1, {3}});
       g.value(extra).producer = find(g, "tanh");
       node(g, "tanh").outputs.push_back(extra);
     },
     "outputs"},
    {"AnotherShapeRecorded", Phase::train, [](Graph& g, PlanRequest&) { ++g.value(output(g, "conv2d")).type.shape[0]; },
     "types"},
    {"NegativeRows", Phase::train,
     [](Graph& g, PlanRequest&) {
       g.add_value({DType::f32, -1, {2}});
     },
     "rows"},
    {"EmptyValue", Phase::train,
     [](Graph& g, PlanRequest&) {
       g.add_value({DType::f32, 0, {2, 0}});
     },
     "sizes"},
    {"InputWithoutBatch", Phase::train,
     [](Graph& g, PlanRequest&) {
       const auto slot = static_cast<int32_t>(g.inputs.size());
       g.inputs.push_back({"mask", g.add_value({DType::f32, 0, {3}}, Place::input, slot)});
     },
     "inputs"},
    {"ParameterOfAnotherShape", Phase::train, [](Graph& g, PlanRequest&) { ++g.parameters[0].shape[0]; }, "parameters"},
    {"ReadBeforeItIsMade", Phase::train, [](Graph& g, PlanRequest&) { move(g, find(g, "relu"), find(g, "conv2d")); },
     "order"},
};

class BrokenInfer : public testing::TestWithParam<Broken> {};
TEST_P(BrokenInfer, IsRefused) { expect_refused("infer", GetParam()); }
INSTANTIATE_TEST_SUITE_P(Ten, BrokenInfer, testing::ValuesIn(kBroken), name_of);
TEST(Infer, TenBrokenGraphs) { expect_ten_or_more(kBroken); }

TEST(Infer, RefusesWhatDoesNotExist) {
  expect_refused("infer",
                 {"Value", Phase::train, [](Graph& g, PlanRequest&) { node(g, "tanh").inputs[0] = 9999; }, "ids"});
  expect_refused("infer", {"Slot", Phase::train,
                           [](Graph& g, PlanRequest&) { g.value(node(g, "conv2d").inputs[1]).slot = 99; }, "slots"});
  expect_refused(
      "infer", {"OtherSlot", Phase::train,
                [](Graph& g, PlanRequest&) { g.value(output(g, "total")).slot = g.value(output(g, "total", 1)).slot; },
                "places"});
}

}  // namespace
}  // namespace brisk::passes::test
