// precision: which values have 16 bits on a device that computes with them and on one that does not, and graphs that
// its verifier refuses.
#include <stdexcept>

#include "brisk/ops/conv.h"
#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/norm.h"
#include "brisk/ops/shape.h"
#include "graph/low_forms.h"
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

/// A device with 16-bit kernels for all that has a 16-bit form, whose runs end later.
class LowTarget : public backend::Target {
 public:
  explicit LowTarget(const backend::Target& cpu) : cpu_(cpu) {}
  std::string name() const override { return "low"; }
  int lanes() const override { return cpu_.lanes(); }
  backend::Choice choose(const Graph& graph, const std::vector<int32_t>& nodes, int64_t samples) const override {
    return cpu_.choose(graph, nodes, samples);
  }
  bool computes(const Node& node, DType) const override { return graph::low_form(node).format != graph::Format::f32; }
  bool asynchronous() const override { return true; }
  bool in_place(const Graph& graph, int32_t node, int input) const override {
    return cpu_.in_place(graph, node, input);
  }
  int64_t scratch_bytes(const Graph& graph, int64_t samples) const override {
    return cpu_.scratch_bytes(graph, samples);
  }
  int64_t library_bound_bytes() const override { return cpu_.library_bound_bytes(); }

 private:
  const backend::Target& cpu_;
};

PlanRequest low_request(Precision precision, Phase phase = Phase::train) {
  PlanRequest request = request_for(phase);
  request.precision = precision;
  return request;
}

PlanRequest device_request(Precision precision, Phase phase = Phase::train) {
  PlanRequest request = low_request(precision, phase);
  static const LowTarget target(*request.target);
  request.target = &target;
  return request;
}

DType type_of(const Graph& graph, std::string_view op, int nth = 0) { return graph.type(output(graph, op, nth)).dtype; }
DType input_type(const Graph& graph, std::string_view op, size_t input, int nth = 0) {
  return graph.type(node_at(graph, find(graph, op, nth)).inputs[input]).dtype;
}

TEST(Precision, AutomaticIsResolvedBefore) {
  EXPECT_THROW(precision(Graph(), low_request(Precision::automatic)), Error);
}

TEST(Precision, MatricesAndWhatFollowsThemAreLowOnADevice) {
  for (const auto& [recipe, low] : {std::pair(Precision::fp16, DType::f16), {Precision::bf16, DType::bf16}}) {
    const Graph graph = after("precision", small_program().graph, device_request(recipe));
    for (const char* op : {"conv2d", "max_pool2d", "tanh", "batch_norm", "linear", "dropout", "conv2d_input_gradient",
                           "linear_input_gradient", "batch_norm_gradient", "max_pool2d_gradient"})
      EXPECT_EQ(type_of(graph, op), low) << op;
    for (const char* op : {"softmax_cross_entropy", "softmax_cross_entropy_gradient", "seed_rows", "gradient_stats"})
      EXPECT_EQ(type_of(graph, op), DType::f32) << op;
    EXPECT_EQ(input_type(graph, "conv2d_weight_gradient", 0), low);
    EXPECT_EQ(type_of(graph, "conv2d_weight_gradient"), DType::f32) << "gradients of parameters";
    EXPECT_EQ(input_type(graph, "channel_sum", 0, count(graph, "channel_sum") - 1), low) << "sums read what is there";
    const Node& norm = node_at(graph, find(graph, "batch_norm"));
    for (size_t i = 1; i < 5; ++i) EXPECT_EQ(graph.type(norm.inputs[i]).dtype, DType::f32) << "statistics";
    for (size_t i = 1; i < 4; ++i) EXPECT_EQ(graph.type(norm.outputs[i]).dtype, DType::f32) << "statistics";
  }
}

TEST(Precision, AnInputIsRoundedOnce) {
  for (const PlanRequest& request : {device_request(Precision::fp16), low_request(Precision::fp16)}) {
    const Graph graph = after("precision", small_program().graph, request);
    int rounded = 0;
    for (const Node& node : graph.nodes) rounded += is(node, "cast") && node.inputs[0] == output(graph, "load");
    EXPECT_EQ(rounded, 1) << "for the convolution and its weights' gradient";
  }
}

TEST(Precision, ADeviceReadsShadowsThatTheWalkKeeps) {
  const Graph graph = after("precision", small_program().graph, device_request(Precision::bf16));
  const graph::Value& matrix = graph.value(node_at(graph, find(graph, "conv2d")).inputs[1]);
  EXPECT_EQ(matrix.place, Place::shadow);
  EXPECT_EQ(matrix.type.dtype, DType::bf16);
  const Node& walk = node_at(graph, find(graph, "sgd_walk"));
  EXPECT_EQ(walk.attributes.text("shadow"), "bf16");
  std::vector<std::string> names;
  for (const ValueId id : walk.outputs)
    if (graph.value(id).place == Place::shadow)
      names.push_back(graph.parameters[static_cast<size_t>(graph.value(id).slot)].name);
  EXPECT_EQ(names,
            (std::vector<std::string>{"conv1.weight", "conv2.weight", "fc1.weight", "fc2.weight", "fc3.weight"}));
  EXPECT_EQ(walk.attributes.integers("shadowed").size(), names.size());
  EXPECT_EQ(count(graph, "select_scalars"), 1);
  EXPECT_EQ(count(graph, "scale_update"), 1);
}

TEST(Precision, PredictionsReadShadowsToo) {
  const Graph graph = after("precision", small_network(), device_request(Precision::fp16, Phase::predict));
  EXPECT_EQ(graph.value(node_at(graph, find(graph, "conv2d")).inputs[1]).place, Place::shadow);
  EXPECT_EQ(type_of(graph, "store"), DType::f32);
}

TEST(Precision, OnACpuAllIsComputedInF32BetweenRoundings) {
  const Graph graph = after("memory", small_program().graph, low_request(Precision::fp16));
  for (const Node& node : graph.nodes) {
    if (is(node, "cast")) continue;
    for (const auto* list : {&node.inputs, &node.outputs})
      for (const ValueId id : *list) EXPECT_FALSE(graph::is_low(graph.type(id).dtype)) << graph::label(node);
  }
  // What is kept from forward to backward has 16 bits.
  for (const Node& node : graph.nodes)
    for (const ValueId id : node.inputs) {
      const graph::Value& value = graph.value(id);
      if (value.producer < 0 || !is(node_at(graph, value.producer), "cast") || value.type.dtype != DType::f32) continue;
      EXPECT_EQ(node_at(graph, value.producer).stage, node.stage) << graph::label(node);
    }
}

TEST(Precision, ACpuKeepsLessInMemory) {
  const Model model(
      [](Var x) {
        for (int i = 0; i < 8; ++i) x = relu(conv2d(x, {.channels = 8, .kernel = 3, .padding = 1}));
        return flatten(x);
      },
      Shape{8, 12, 12});
  const Program program =
      trace_program(Inputs{{"x", {8, 12, 12}}}, [&](const Vars& in) { return sample_mean(model(in["x"])); });
  const auto bytes = [&](Precision recipe) {
    PlanRequest request = low_request(recipe);
    request.samples = 64;
    return after("memory", program.graph, request).live_bytes;
  };
  EXPECT_LT(static_cast<double>(bytes(Precision::bf16)), 0.75 * static_cast<double>(bytes(Precision::f32)));
  EXPECT_EQ(bytes(Precision::bf16), bytes(Precision::fp16));
}

TEST(Precision, FunctionsThatLeaveTheRangeStayF32) {
  const Graph graph = after("precision", function_graph([](Var x) { return linear(exp(relu(linear(x, 3))), 2) * 2; }),
                            device_request(Precision::fp16, Phase::predict));
  EXPECT_EQ(type_of(graph, "linear"), DType::f16);
  EXPECT_EQ(type_of(graph, "exp"), DType::f32);
  EXPECT_EQ(type_of(graph, "linear", 1), DType::f16);
  EXPECT_EQ(type_of(graph, "scale"), DType::f16);
}

TEST(Precision, WhatTouchesF32StaysF32) {
  const Graph graph = after("precision", function_graph([](Var x) { return (relu(x) + linear(x, 6)) * 2; }),
                            device_request(Precision::fp16, Phase::predict));
  EXPECT_EQ(type_of(graph, "relu"), DType::f32) << "no matrix before it";
  EXPECT_EQ(type_of(graph, "add"), DType::f32) << "the wider of two operands";
  EXPECT_EQ(input_type(graph, "add", 1), DType::f32);
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
     "operands"},
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

/// Refused by `rule` after a mutation of a good graph in 16 bits.
void expect_low_refused(const PlanRequest& request, const char* rule, const std::function<void(Graph&)>& mutate) {
  Graph graph = after("precision", small_program().graph, request);
  mutate(graph);
  try {
    verify_precision(graph, request);
    ADD_FAILURE() << rule << " is not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.field(), cat("precision: ", rule)) << error.what();
  }
}

TEST(Precision, BrokenGraphsIn16Bits) {
  const PlanRequest cpu = low_request(Precision::fp16), device = device_request(Precision::fp16);
  expect_low_refused(cpu, "operands", [](Graph& g) {
    Node& conv = node(g, "conv2d");
    conv.inputs[0] = output(g, "load");
  });
  expect_low_refused(cpu, "twice", [](Graph& g) {
    const int32_t at = find(g, "cast");
    const Node first = node_at(g, at);
    insert(g, at + 1, "cast", first.inputs, first.attributes, first.stage);
  });
  expect_low_refused(cpu, "results", [](Graph& g) {
    Node& conv = node(g, "conv2d");
    const int32_t at = find(g, "conv2d") + 1;
    ASSERT_TRUE(is(node_at(g, at), "cast"));
    insert(g, at + 1, "relu", {conv.outputs[0]});
  });
  expect_low_refused(device, "statistics", [](Graph& g) { value_in(g, Place::staged).type.dtype = DType::f16; });
  PlanRequest other = device;
  other.target = cpu.target;
  Graph graph = after("precision", small_program().graph, device);
  try {
    verify_precision(graph, other);
    ADD_FAILURE() << "16-bit kernels that a target lacks are not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.field(), "precision: computes") << error.what();
  }
}

TEST(Precision, LossScaleOfFp16Alone) {
  for (const Precision recipe : {Precision::f32, Precision::bf16, Precision::fp16}) {
    const bool scaled = recipe == Precision::fp16;
    const Graph graph = after("precision", small_program().graph, low_request(recipe));
    EXPECT_EQ(node_at(graph, find(graph, "seed_rows")).inputs.size(), scaled ? 3u : 2u);
    EXPECT_EQ(node_at(graph, find(graph, "gradient_stats")).attributes.flag("scaled"), scaled);
    EXPECT_EQ(count(graph, "scale_update"), scaled ? 1 : 0);
    EXPECT_EQ(count(graph, "commit_staged"), scaled ? 1 : 0);
    const Node& commit = node_at(graph, find(graph, "batch_norm_commit"));
    EXPECT_EQ(graph.value(commit.outputs[0]).place, scaled ? Place::staged : Place::buffer);
  }
}

TEST(Precision, StagedStatisticsOfALayerCalledTwiceAreChained) {
  const Model model(
      [](Var x) {
        const Shared block("block", [](Var in) { return batch_norm(in); });
        return block(block(x));
      },
      Shape{6});
  const Program program =
      trace_program(Inputs{{"x", {6}}}, [&](const Vars& in) { return sample_mean(model(in["x"])); });
  const Graph graph = after("schedule", program.graph, low_request(Precision::fp16));
  const Node &first = node_at(graph, find(graph, "batch_norm_commit")),
             &second = node_at(graph, find(graph, "batch_norm_commit", 1));
  EXPECT_FALSE(first.attributes.flag("chained"));
  EXPECT_TRUE(second.attributes.flag("chained"));
  EXPECT_EQ(second.inputs[4], first.outputs[0]);
  EXPECT_LT(first.wave, second.wave);
  const Node& commit = node_at(graph, find(graph, "commit_staged"));
  EXPECT_EQ(commit.inputs[1], second.outputs[0]);
  EXPECT_EQ(graph.value(commit.outputs[0]).place, Place::buffer);
}

}  // namespace
}  // namespace brisk::passes::test
