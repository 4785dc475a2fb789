// Shape inference: what each operation gives, and what it refuses, by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "graph/examples.h"

namespace brisk::graph {
namespace {

using test::at;
using test::b;
using test::build;
using test::Built;
using test::error_of;
using test::Example;
using test::ExampleInput;
using test::examples;
using test::inputs_of;
using test::p;
using I = std::vector<int64_t>;

std::string refusal(const Example& example) {
  return error_of([&] { build(example); });
}

std::string typed(const ValueType& type) {
  return (type.dtype == DType::f32 ? "" : std::string(name(type.dtype)) + " ") + type.text();
}

std::string describe(const Example& example) { return example.op + " " + example.attributes.print(); }

TEST(Infer, Outputs) {
  for (const Example& example : examples()) {
    const Graph g = build(example);
    std::vector<std::string> types;
    for (const ValueId id : g.nodes[0].outputs) types.push_back(typed(g.type(id)));
    EXPECT_EQ(types, example.outputs) << describe(example);
  }
}

TEST(Infer, AttributesAreRequiredTypedAndKnown) {
  for (const Example& example : examples()) {
    Example more = example;
    more.attributes.set("colour", 1);
    EXPECT_NE(refusal(more).find("has no attribute 'colour'"), std::string::npos) << describe(example);
    for (const AttributeInfo& info : op(example.op).attributes) {
      Example less = example;
      less.attributes = {};
      for (const auto& [name, value] : example.attributes) {
        if (name != info.name) less.attributes.set(name, value);
      }
      EXPECT_NE(refusal(less).find("lacks attribute '" + std::string(info.name)), std::string::npos)
          << describe(example);
      Example other = example;
      other.attributes.set(info.name, info.kind == Kind::text ? Attribute(true) : Attribute(std::string("x")));
      EXPECT_NE(refusal(other).find("of another kind"), std::string::npos) << describe(example);
    }
  }
}

TEST(Infer, EveryInputRefusesAnotherElementType) {
  const std::vector<std::string> any = {"cast",    "custom_op", "custom_op_gradient", "load",  "permute",
                                        "reshape", "slice",     "stop_gradient",      "store", "store_gradient"};
  for (const Example& example : examples()) {
    if (std::find(any.begin(), any.end(), example.op) != any.end()) continue;
    for (size_t i = 0; i < example.inputs.size(); ++i) {
      Example wrong = example;
      wrong.inputs[i].type.dtype = DType::u8;
      EXPECT_NE(refusal(wrong).find("Error [shape] " + example.op + " 'example' (net.cpp:7): "), std::string::npos)
          << describe(example) << " input " << i;
    }
  }
}

TEST(Infer, EveryInputRefusesEmptiness) {
  for (const Example& example : examples()) {
    for (size_t i = 0; i < example.inputs.size(); ++i) {
      for (int axis = 0; axis < example.inputs[i].type.shape.rank(); ++axis) {
        Example empty = example;
        empty.inputs[i].type.shape[axis] = 0;
        EXPECT_NE(refusal(empty).find("input " + std::to_string(i) + " must not be empty"), std::string::npos)
            << describe(example);
      }
    }
  }
}

TEST(Infer, RowsMustAgree) {
  int seen = 0;
  for (const Example& example : examples()) {
    int64_t batched = 0;
    for (const ExampleInput& input : example.inputs) batched += input.type.batched() ? 1 : 0;
    if (batched < 2) continue;
    Example wrong = example;
    const auto last = std::find_if(wrong.inputs.rbegin(), wrong.inputs.rend(),
                                   [](const ExampleInput& input) { return input.type.batched(); });
    last->type.rows = 3;
    EXPECT_NE(refusal(wrong).find("inputs must have the same number of rows"), std::string::npos) << describe(example);
    ++seen;
  }
  EXPECT_GT(seen, 10);
}

TEST(Infer, SizesThatDoNotFitAreRefused) {
  const int64_t large = int64_t{1} << 33;
  EXPECT_NE(refusal({"add", {}, {b({large, 1}), b({1, large})}, {}}).find("does not fit 63 bits"), std::string::npos);
  EXPECT_NE(refusal({"add", {}, {b({large, 1}, large), b({1, 1}, large)}, {}}).find("has more bytes"),
            std::string::npos);
}

struct Refused {
  Example example;
  std::string message;
};

Example conv(I stride, I padding, I dilation, int64_t groups, std::vector<ExampleInput> inputs,
             const std::string& activation = "none") {
  return {"conv2d",
          {{"activation", activation},
           {"dilation", dilation},
           {"groups", groups},
           {"padding", padding},
           {"stride", stride}},
          inputs,
          {}};
}

void expect_refused(const std::vector<Refused>& rows) {
  for (const Refused& row : rows) {
    EXPECT_NE(refusal(row.example).find(row.message), std::string::npos)
        << describe(row.example) << "\n  " << refusal(row.example) << "\n  lacks: " << row.message;
  }
}

TEST(Infer, ConvolutionRefuses) {
  const ExampleInput x = b({4, 6, 5}), w = p({6, 3, 3, 2}), bias = p({6});
  const I one = {1, 1}, zero = {0, 0};
  EXPECT_EQ(refusal(conv(one, zero, one, 2, {x, w, bias})), "");
  expect_refused({
      {conv({0, 1}, zero, one, 2, {x, w}), "stride = [0, 1]: must be at least 1"},
      {conv(one, zero, {1, 0}, 2, {x, w}), "dilation = [1, 0]: must be at least 1"},
      {conv(one, {-1, 0}, one, 2, {x, w}), "padding = [-1, 0]: must be at least 0"},
      {conv({1}, zero, one, 2, {x, w}), "stride must have two numbers"},
      {conv({int64_t{1} << 40, 1}, zero, one, 2, {x, w}), "must be at most 2147483647"},
      {conv(one, zero, one, 0, {x, w}), "groups = 0: must be at least 1"},
      {conv(one, zero, one, 3, {x, w}), "groups = 3: must divide the channels of input (4) and output (6)"},
      {conv(one, zero, one, 4, {x, w}), "groups = 4: must divide"},
      {conv(one, zero, one, 1, {x, w}), "weight must have 4 input channels per group, got [6, 3, 3, 2]"},
      {conv(one, zero, {1, 3}, 2, {x, w}),
       "kernel [3, 3] with padding [0, 0] and dilation [1, 3] does not fit the input "
       "of 6 x 5"},
      {conv(one, zero, one, 2, {b({4, 2, 5}), w}), "kernel [3, 3] with padding [0, 0] does not fit the input of 2 x 5"},
      {conv(one, zero, one, 2, {x, w, p({4})}), "bias must be f32 [6], got f32 [4]"},
      {conv(one, zero, one, 2, {b({4, 6}), w}), "input must be [N, channels, height, width], got [N, 4, 6]"},
      {conv(one, zero, one, 2, {p({4, 6, 5}), w}), "input must be [N, channels, height, width], got [4, 6, 5]"},
      {conv(one, zero, one, 2, {x, w}, "swish"), "activation = swish: must be none, relu, tanh or sigmoid"},
  });
}

TEST(Infer, PoolingRefuses) {
  const auto pool = [](I kernel, I stride, I padding) {
    return Example{"max_pool2d", {{"kernel", kernel}, {"padding", padding}, {"stride", stride}}, {b({1, 2, 3})}, {}};
  };
  EXPECT_EQ(refusal(pool({2, 2}, {2, 2}, {1, 1})), "");
  expect_refused({
      {pool({2, 2}, {2, 2}, {2, 0}), "padding = 2: must be at most half of the kernel 2"},
      {pool({3, 3}, {2, 2}, {0, 2}), "padding = 2: must be at most half of the kernel 3"},
      {pool({0, 2}, {2, 2}, {0, 0}), "kernel = [0, 2]: must be at least 1"},
      {pool({3, 3}, {1, 1}, {0, 1}), "kernel [3, 3] with padding [0, 1] does not fit the input of 2 x 3"},
  });
}

TEST(Infer, LinearAndMatmulRefuse) {
  const auto matmul = [](std::vector<ExampleInput> inputs) {
    return Example{"matmul", {{"transpose_a", false}, {"transpose_b", false}}, std::move(inputs), {}};
  };
  const auto linear = [](std::vector<ExampleInput> inputs) {
    return Example{"linear", {{"activation", std::string("none")}}, std::move(inputs), {}};
  };
  expect_refused({
      {linear({b({7}), p({3, 5})}), "weight [3, 5] takes 5 features, the input has 7: [N, 7]"},
      {linear({b({5, 2}), p({3, 5})}), "input must be [N, features], got [N, 5, 2]; put flatten() between them"},
      {linear({b({}), p({3, 5})}), "input must be [N, features], got [N]"},
      {linear({b({5}), p({3, 5}), p({1})}), "bias must be f32 [3], got f32 [1]"},
      {matmul({b({2, 3}), b({2, 3})}), "columns of the first (3) and rows of the second (2) must be equal"},
      {matmul({b({2, 3}), b({3})}), "operands must be matrices [M, K], got [N, 3]"},
      {{"bias_add", {}, {b({3, 2}), p({2})}, {}}, "bias must be f32 [3], got f32 [2]"},
      {{"add", {}, {b({2, 3}), p({2})}, {}}, "sizes 3 and 2 do not fit together: [N, 2, 3] and [2]"},
  });
}

TEST(Infer, ShapesAndAxesRefuse) {
  const auto reshape = [](int64_t rows, I shape, ExampleInput x) {
    return Example{"reshape", {{"rows", rows}, {"shape", shape}}, {x}, {}};
  };
  const auto sum = [](I axes) { return Example{"reduce_sum", {{"axes", axes}, {"keep", false}}, {b({2, 3})}, {}}; };
  const auto slice = [](int64_t first, int64_t count) {
    return Example{"slice", {{"axis", int64_t{0}}, {"count", count}, {"first", first}}, {b({4})}, {}};
  };
  expect_refused({
      {reshape(1, {7}, b({2, 3})), "[N, 7] must have as many elements as [N, 2, 3]"},
      {reshape(4, {2}, b({2, 3})), "[4N, 2] must have as many elements as [N, 2, 3]"},
      {reshape(0, {6}, b({2, 3})), "rows = 0: must be at least 1"},
      {reshape(1, {6}, p({2, 3})), "rows = 1: must be 0"},
      {reshape(1, {6, 0}, b({2, 3})), "shape has the size 0: must be at least 1"},
      {sum({2}), "axis 2 is not one of the 2 dimensions"},
      {sum({-1}), "axis -1 is not one of the 2 dimensions"},
      {sum({1, 0}), "axes must be ascending"},
      {sum({1, 1}), "axes must be ascending and each named once"},
      {slice(4, 1), "first = 4: must be at most 3"},
      {slice(2, 3), "count = 3: must be at most 2"},
      {slice(0, 0), "count = 0: must be at least 1"},
      {{"softmax", {{"axis", int64_t{1}}}, {b({4})}, {}}, "axis 1 is not one of the 1 dimensions"},
      {{"concat", {{"axis", int64_t{0}}}, {b({2, 3}), b({2, 4})}, {}}, "inputs may differ along axis 1 only"},
      {{"concat", {{"axis", int64_t{0}}}, {b({2, 3}), p({2, 3})}, {}}, "inputs may differ along axis 1 only"},
      {{"expand", {{"axes", I{0}}, {"shape", I{2, 4}}}, {b({3})}, {}}, "dimension 1 of [2, 4] must be 3"},
      {{"expand", {{"axes", I{}}, {"shape", I{2, 4}}}, {b({3})}, {}}, "must have the dimensions of"},
  });
}

TEST(Infer, SettingsOutOfRangeAreRefused) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto dropout = [](double rate) {
    return Example{"dropout", {{"rate", rate}, {"stream", int64_t{0}}}, {b({2})}, {}};
  };
  const auto loss = [](std::vector<double> weights, double smoothing) {
    return Example{"softmax_cross_entropy",
                   {{"class_weights", weights}, {"ignore_index", int64_t{-100}}, {"label_smoothing", smoothing}},
                   {b({3}), b({}, 1, DType::i64)},
                   {}};
  };
  EXPECT_EQ(refusal(dropout(0)), "");
  EXPECT_EQ(refusal(dropout(1)), "");
  expect_refused({
      {dropout(1.5), "rate = 1.5: must be from 0 to 1"},
      {dropout(nan), "rate = nan: must be from 0 to 1"},
      {loss({1, 2}, 0), "class_weights must have one number for each of the 3 classes, got 2"},
      {loss({1, -2, 1}, 0), "class_weights has -2"},
      {loss({1, nan, 1}, 0), "class_weights has nan"},
      {loss({}, 1.5), "label_smoothing = 1.5"},
      {{"huber", {{"delta", 0.0}}, {b({3})}, {}}, "delta = 0: must be greater than 0"},
      {{"huber", {{"delta", nan}}, {b({3})}, {}}, "delta = nan: must be greater than 0"},
  });
}

TEST(Infer, WalksCountTheirInputs) {
  for (const Example& example : examples()) {
    if (example.op != "sgd_walk" && example.op != "adam_walk") continue;
    Example fewer = example;
    fewer.inputs.pop_back();
    EXPECT_NE(refusal(fewer).find("inputs after the statistics"), std::string::npos);
    Example other = example;
    other.inputs.back().type.shape = {4};
    EXPECT_NE(refusal(other).find("must be f32 [5], got f32 [4]"), std::string::npos) << refusal(other);
    Example rules = example;
    rules.attributes.set("weight_decay", std::vector<double>{1});
    EXPECT_NE(refusal(rules).find("weight_decay has 1 numbers for 2 parameters"), std::string::npos);
  }
}

TEST(Infer, MessagesSayWhereInputsComeFrom) {
  Graph g;
  g.inputs.push_back({"image", g.add_value({DType::f32, 1, {50, 8, 8}}, Place::input, 0)});
  g.parameters.push_back({0, 0, "fc1.weight", {500, 800}, true});
  const ValueId w = g.add_value({DType::f32, 0, {500, 800}}, Place::parameter, 0);
  const ValueId x = g.emit("load", {0}, {}, "image");
  const Attributes pool = {{"kernel", I{2, 2}}, {"padding", I{0, 0}}, {"stride", I{2, 2}}};
  const int32_t node = g.add_node("max_pool2d", {x}, pool, "pool2", {"src/lenet.cpp", 9});
  const ValueId pooled = g.nodes[static_cast<size_t>(node)].outputs[0];
  const Attributes none = {{"activation", std::string("none")}};
  EXPECT_EQ(error_of([&] {
              g.emit("linear", {pooled, w}, none, "fc1", {"src/lenet.cpp", 9});
            }),
            "Error [shape] linear 'fc1' (lenet.cpp:9): input must be [N, features], got [N, 50, 4, 4] from max_pool2d "
            "'pool2' (lenet.cpp:9); put flatten() between them");
  EXPECT_NE(error_of([&] {
              g.emit("linear", {x, w}, none, "fc1");
            }).find("got [N, 50, 8, 8] from input 'image'"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              g.emit("add", {x, w});
            }).find("and [500, 800] from parameter 'fc1.weight'"),
            std::string::npos);
}

}  // namespace
}  // namespace brisk::graph
