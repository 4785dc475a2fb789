// The functions of Vars: names, shapes, options and axes as users give them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "brisk/loss.h"
#include "brisk/ops/conv.h"
#include "brisk/ops/elementwise.h"
#include "brisk/ops/indexing.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/norm.h"
#include "brisk/ops/pool.h"
#include "brisk/ops/random.h"
#include "brisk/ops/reduce.h"
#include "brisk/ops/shape.h"
#include "brisk/ops/softmax.h"
#include "graph/examples.h"
#include "graph/model_state.h"
#include "graph/op_table.h"
#include "graph/trace.h"

namespace brisk {
namespace {

using graph::test::error_of;

/// A trace with one input.
class Functions : public ::testing::Test {
 protected:
  Functions() : tracer_(std::make_shared<graph::Tracer>("model", 0, true)), guard_(tracer_) {}
  Var input(Shape shape, DType dtype = DType::f32) {
    const std::string name = "x" + std::to_string(tracer_->graph.inputs.size());
    return graph::declare_inputs(tracer_, {Field{name, shape, dtype}})[name];
  }
  const graph::Graph& graph() const { return tracer_->graph; }
  const graph::Node& last() const { return graph().nodes.back(); }
  std::string parameters() const {
    std::string text;
    for (const graph::ParameterSpec& spec : tracer_->specs) text += spec.name + " " + spec.shape.text() + "; ";
    return text;
  }
  std::shared_ptr<graph::Tracer> tracer_;
  graph::TraceGuard guard_;
};

TEST_F(Functions, LeNet) {
  Var x = input({1, 28, 28});
  x = max_pool2d(relu(conv2d(x, {.channels = 20, .kernel = 5})), {.kernel = 2});
  x = max_pool2d(relu(conv2d(x, {.channels = 50, .kernel = 5})), {.kernel = 2});
  EXPECT_EQ(x.text(), "[N, 50, 4, 4]");
  EXPECT_EQ(flatten(x).text(), "[N, 800]");
  EXPECT_EQ(linear(relu(linear(flatten(x), 500)), 10).text(), "[N, 10]");
  EXPECT_EQ(parameters(),
            "conv1.weight [20, 5, 5, 1]; conv1.bias [20]; conv2.weight [50, 5, 5, 20]; conv2.bias [50]; "
            "fc1.weight [500, 800]; fc1.bias [500]; fc2.weight [10, 500]; fc2.bias [10]; ");
  EXPECT_EQ(tracer_->specs[0].torch_shape.text(), "[20, 1, 5, 5]");
  EXPECT_DOUBLE_EQ(tracer_->specs[0].init.value, 1 / std::sqrt(25.0));
  EXPECT_DOUBLE_EQ(tracer_->specs[5].init.value, 1 / std::sqrt(800.0));
}

TEST_F(Functions, LinearWithoutFlattenNamesBothLines) {
  const Var x = input({50, 8, 8});
  const Var pooled = max_pool2d(x, {.kernel = 2}, Where{"lenet.cpp", 8});
  EXPECT_EQ(error_of([&] {
              linear(pooled, 500, {}, Where{"lenet.cpp", 9});
            }),
            "Error [shape] linear 'fc1' (lenet.cpp:9): input must be [N, features], got [N, 50, 4, 4] from max_pool2d "
            "'pool1' (lenet.cpp:8); put flatten() between them");
}

TEST_F(Functions, ConvolutionOptions) {
  const Var x = input({4, 9, 8});
  const Var y = conv2d(x, {.bias = false,
                           .channels = 6,
                           .dilation = {1, 2},
                           .groups = 2,
                           .kernel = {3, 2},
                           .name = "stem",
                           .padding = {1, 0},
                           .stride = 2});
  EXPECT_EQ(y.text(), "[N, 6, 5, 3]");
  EXPECT_EQ(parameters(), "stem.weight [6, 3, 2, 2]; ");
  EXPECT_EQ(last().attributes.print(),
            "{activation = none, dilation = [1, 2], groups = 2, padding = [1, 0], stride = [2, 2]}");
  EXPECT_EQ(last().where.text().rfind("functions_test.cpp:", 0), 0u);
}

TEST_F(Functions, TransposedConvolution) {
  const Var x = input({4, 3, 5});
  EXPECT_EQ(conv_transpose2d(x, {.channels = 6, .kernel = 4, .padding = 1, .stride = 2}).text(), "[N, 6, 6, 10]");
  const Var y = conv_transpose2d(x, {.bias = false,
                                     .channels = 6,
                                     .dilation = {2, 1},
                                     .groups = 2,
                                     .kernel = {3, 2},
                                     .name = "up",
                                     .output_padding = {1, 0},
                                     .padding = {1, 0},
                                     .stride = {2, 1}});
  EXPECT_EQ(y.text(), "[N, 6, 8, 6]");
  EXPECT_EQ(parameters(), "conv_transpose1.weight [4, 4, 4, 6]; conv_transpose1.bias [6]; up.weight [4, 3, 2, 3]; ");
  EXPECT_EQ(tracer_->specs[2].torch_shape.text(), "[4, 3, 3, 2]");
  EXPECT_DOUBLE_EQ(tracer_->specs[2].init.value, 1 / std::sqrt(18.0));
  const auto refused = [&](ConvTranspose2dOptions options) {
    return error_of([&] { conv_transpose2d(x, options, {"net.cpp", 3}); });
  };
  EXPECT_EQ(refused({.channels = 8, .kernel = 3, .output_padding = 1}),
            "Error [option] conv_transpose2d.output_padding = {1, 1} (net.cpp:3): must be smaller than the stride");
  EXPECT_NE(refused({.channels = 8, .kernel = 3, .padding = 5}).find("conv_transpose2d.padding = {5, 5}"),
            std::string::npos);
  EXPECT_NE(refused({.channels = 8, .groups = 3, .kernel = 3}).find("must divide the 4 input channels"),
            std::string::npos);
  EXPECT_NE(refused({.channels = 8}).find("conv_transpose2d.kernel = 0"), std::string::npos);
}

TEST_F(Functions, Resizing) {
  const Var x = input({3, 5, 4});
  EXPECT_EQ(resize2d(x, {.scale = 1.5}).text(), "[N, 3, 7, 6]");
  EXPECT_EQ(last().attributes.print(),
            "{aligned = false, mode = nearest, size = [7, 6], step = [0.6666666666666666, 0.6666666666666666]}");
  EXPECT_EQ(resize2d(x, {.align_corners = true, .mode = ResizeMode::bilinear, .size = {9, 1}}).text(), "[N, 3, 9, 1]");
  EXPECT_EQ(last().attributes.reals("step"), (std::vector<double>{0.5, 0}));
  const auto refused = [&](Resize2dOptions options) { return error_of([&] { resize2d(x, options, {"net.cpp", 3}); }); };
  EXPECT_EQ(refused({}), "Error [option] resize2d.size = {0, 0} (net.cpp:3): give either .size or .scale (it is 0)");
  EXPECT_NE(refused({.scale = 2, .size = 4}).find("give either"), std::string::npos);
  EXPECT_NE(refused({.scale = -1}).find("resize2d.scale = -1"), std::string::npos);
  EXPECT_NE(refused({.scale = 0.1}).find("makes 0 rows or columns of 5"), std::string::npos);
  EXPECT_NE(refused({.align_corners = true, .scale = 2}).find("bilinear alone"), std::string::npos);
}

TEST_F(Functions, OptionsOutOfRangeNameFieldAndValue) {
  const Var x = input({4, 9, 8});
  const Where at = {"net.cpp", 3};
  const auto refused = [&](Conv2dOptions options) { return error_of([&] { conv2d(x, options, at); }); };
  EXPECT_EQ(refused({.channels = 8}).rfind("Error [option] conv2d.kernel = 0 (net.cpp:3): must be at least 1", 0), 0u);
  EXPECT_EQ(refused({.kernel = 3}).rfind("Error [option] conv2d.channels = 0 (net.cpp:3): must be at least 1", 0), 0u);
  EXPECT_NE(refused({.channels = 8, .kernel = {3, -1}}).find("conv2d.kernel = {3, -1}"), std::string::npos);
  EXPECT_NE(refused({.channels = 8, .kernel = 3, .stride = 0}).find("conv2d.stride = 0"), std::string::npos);
  EXPECT_NE(refused({.channels = 8, .dilation = 0, .kernel = 3}).find("conv2d.dilation = 0"), std::string::npos);
  EXPECT_NE(refused({.channels = 8, .kernel = 3, .padding = -1}).find("conv2d.padding = -1"), std::string::npos);
  EXPECT_NE(refused({.channels = 8, .groups = 0, .kernel = 3}).find("conv2d.groups = 0"), std::string::npos);
  EXPECT_NE(refused({.channels = 8, .groups = 3, .kernel = 3})
                .find("conv2d.groups = 3 (net.cpp:3): must divide the 4 input channels and the 8 output channels"),
            std::string::npos);
  EXPECT_NE(refused({.channels = int64_t{1} << 31, .kernel = 3}).find("below 2^31"), std::string::npos);
  EXPECT_NE(refused({.channels = 8, .kernel = 10})
                .find("kernel [10, 10] with padding [0, 0] does not fit the input of 9 x 8"),
            std::string::npos);
  EXPECT_NE(error_of([&] { linear(flatten(x), 0); }).find("linear.features = 0"), std::string::npos);
  EXPECT_NE(error_of([&] { max_pool2d(x, {}); }).find("max_pool2d.kernel = 0"), std::string::npos);
  EXPECT_NE(error_of([&] { max_pool2d(x, {.kernel = 3, .padding = 2}); }).find("padding = {2, 2}"), std::string::npos);
  EXPECT_NE(error_of([&] { dropout(x, 1.5); }).find("dropout.rate = 1.5"), std::string::npos);
  EXPECT_NE(error_of([&] { dropout(x, std::nan("")); }).find("dropout.rate = nan"), std::string::npos);
  EXPECT_NE(error_of([&] { batch_norm(x, {.epsilon = 0}); }).find("batch_norm.epsilon = 0"), std::string::npos);
  EXPECT_NE(error_of([&] { batch_norm(x, {.momentum = 2}); }).find("batch_norm.momentum = 2"), std::string::npos);
}

TEST_F(Functions, Normalisation) {
  const Var y = batch_norm(input({3, 2, 2}));
  EXPECT_EQ(y.text(), "[N, 3, 2, 2]");
  EXPECT_EQ(parameters(), "bn1.weight [3]; bn1.bias [3]; bn1.running_mean [3]; bn1.running_var [3]; ");
  EXPECT_EQ(tracer_->specs[0].init.value, 1);
  EXPECT_FALSE(tracer_->specs[1].buffer);
  EXPECT_TRUE(tracer_->specs[2].buffer);
  EXPECT_EQ(tracer_->specs[3].init.value, 1);
  EXPECT_EQ(last().attributes.print(), "{activation = none, epsilon = 1e-05, momentum = 0.1}");
}

TEST_F(Functions, Pooling) {
  const Var x = input({3, 9, 7});
  EXPECT_EQ(max_pool2d(x, {.kernel = {3, 2}}).text(), "[N, 3, 3, 3]") << "the stride is the kernel";
  EXPECT_EQ(avg_pool2d(x, {.kernel = 3, .padding = 1, .stride = {1, 2}}).text(), "[N, 3, 9, 4]");
  EXPECT_EQ(global_avg_pool2d(x).text(), "[N, 3]");
  EXPECT_NE(error_of([&] {
              global_avg_pool2d(flatten(x), Where{"net.cpp", 5});
            }).find("global_avg_pool2d (net.cpp:5): input must be [N, channels, height, width], got [N, 189]"),
            std::string::npos);
}

TEST_F(Functions, Arithmetic) {
  const Var x = input({4, 3});
  const Var b = parameter("b", {3});
  EXPECT_EQ((x + b).text(), "[N, 4, 3]");
  EXPECT_EQ(last().op->name, "add");
  EXPECT_EQ((b - x).text(), "[N, 4, 3]");
  EXPECT_EQ((x * x / b).text(), "[N, 4, 3]");
  EXPECT_EQ((2.0 - x).text(), "[N, 4, 3]");
  EXPECT_EQ(last().attributes.print(), "{value = 2}");
  x / 4;
  EXPECT_EQ(last().attributes.print(), "{factor = 0.25}");
  x - 1.5;
  EXPECT_EQ(last().attributes.print(), "{value = -1.5}");
  EXPECT_NE(error_of([&] { x / 0.0; }).find("must not be 0"), std::string::npos);
  EXPECT_NE(error_of([&] { x* std::numeric_limits<double>::infinity(); }).find("must be a finite number"),
            std::string::npos);
  const Var y = input({5}), made = relu(x, Where{"net.cpp", 8});
  EXPECT_NE(error_of([&] { made + y; }).find("[N, 4, 3] from relu 'relu1' (net.cpp:8) and [N, 5] from input 'x1'"),
            std::string::npos);
  EXPECT_NE(error_of([&] { relu(input({2}, DType::i64)); }).find("input must be f32, got i64 [N, 2]"),
            std::string::npos);
}

TEST_F(Functions, ActivationsAndPowers) {
  const Var x = input({4, 3});
  const Where at = {"net.cpp", 6};
  EXPECT_EQ(gelu(x).text(), "[N, 4, 3]");
  EXPECT_EQ(last().op->name, "gelu");
  gelu(x, Gelu::tanh);
  EXPECT_EQ(last().op->name, "gelu_tanh");
  leaky_relu(x);
  EXPECT_EQ(last().attributes.print(), "{slope = 0.01}");
  elu(x);
  EXPECT_EQ(last().attributes.print(), "{alpha = 1}");
  pow(x, -1.5);
  EXPECT_EQ(last().attributes.print(), "{exponent = -1.5}");
  clamp(x, 0, std::numeric_limits<double>::infinity());
  EXPECT_EQ(last().attributes.print(), "{high = inf, low = 0}");
  EXPECT_EQ(error_of([&] { clamp(x, 2, 1, at); }),
            "Error [option] clamp.low = 2 (net.cpp:6): must not be above clamp.high = 1");
  EXPECT_NE(error_of([&] { clamp(x, std::nan(""), 1, at); }).find("clamp.low = nan (net.cpp:6)"), std::string::npos);
  EXPECT_NE(error_of([&] { pow(x, 1e39, at); }).find("pow.exponent = 1e+39 (net.cpp:6): must be a finite number"),
            std::string::npos);
  EXPECT_NE(error_of([&] { leaky_relu(x, -0.1, at); }).find("leaky_relu.slope = -0.1 (net.cpp:6): must be at least 0"),
            std::string::npos);
  EXPECT_NE(error_of([&] { elu(x, -1, at); }).find("elu.alpha = -1 (net.cpp:6): must be at least 0"),
            std::string::npos);
}

TEST_F(Functions, ComparisonsAndChoices) {
  const Var x = input({4, 3}), bound = parameter("bound", {3});
  EXPECT_EQ((x < bound).text(), "[N, 4, 3]");
  EXPECT_EQ(last().attributes.print(), "{relation = less}");
  EXPECT_EQ((0.5 < x).text(), "[N, 4, 3]");
  EXPECT_EQ(last().attributes.print(), "{relation = greater, value = 0.5}");
  EXPECT_EQ((0.5 >= x).text(), "[N, 4, 3]");
  EXPECT_EQ(last().attributes.print(), "{relation = less_equal, value = 0.5}");
  not_equal(x, bound);
  EXPECT_EQ(last().attributes.print(), "{relation = not_equal}");
  EXPECT_EQ(where(bound > 0.0, x, parameter("other", {4, 1})).text(), "[N, 4, 3]");
  EXPECT_EQ(minimum(bound, x).text(), "[N, 4, 3]");
  const Var y = input({5});
  EXPECT_EQ(error_of([&] {
              where(x, y, bound, Where{"net.cpp", 2});
            }),
            "Error [shape] where 'where2' (net.cpp:2): sizes 3 and 5 do not fit together: [N, 4, 3] from input 'x0', "
            "[N, 5] from input 'x1' and [3] from parameter 'bound'");
  EXPECT_NE(error_of([&] { static_cast<void>(x < std::nan("")); }).find("less: value = nan: must be a finite number"),
            std::string::npos);
}

TEST_F(Functions, ElementTypes) {
  const Var image = input({2, 3}, DType::u8), labels = input({4}, DType::i64);
  EXPECT_EQ(cast(image, DType::f32).dtype(), DType::f32);
  EXPECT_EQ(cast(labels, DType::i32).text(), "[N, 4]");
  const size_t nodes = graph().nodes.size();
  EXPECT_EQ(cast(image, DType::u8).dtype(), DType::u8);
  EXPECT_EQ(stop_gradient(labels).dtype(), DType::i64);
  EXPECT_EQ(graph().nodes.size(), nodes + 1) << "nothing to convert";
  EXPECT_EQ(error_of([&] {
              cast(image, DType::bf16, Where{"net.cpp", 3});
            }),
            "Error [option] cast.dtype = bf16 (net.cpp:3): must be f32, i32, i64 or u8");
  EXPECT_EQ(error_of([&] { image * 2.0; }),
            "Error [shape] scale 'scale1': input must be f32, got u8 [N, 2, 3] from input 'x0'; convert it with "
            "cast(x, DType::f32)");
  EXPECT_NE(error_of([&] { image + image; }).find("convert it with cast(x, DType::f32)"), std::string::npos);
  EXPECT_NE(error_of([&] { where(image, image, image); }).find("convert it with cast"), std::string::npos);
}

TEST_F(Functions, NumbersThatAnF32CannotHoldAreRefused) {
  const Var x = input({2});
  const std::string finite = "finite";
  for (const double value : {1e39, -1e300}) {
    EXPECT_NE(error_of([&] { x* value; }).find(finite), std::string::npos) << value;
    EXPECT_NE(error_of([&] { x + value; }).find(finite), std::string::npos) << value;
    EXPECT_NE(error_of([&] { value / x; }).find(finite), std::string::npos) << value;
    EXPECT_NE(error_of([&] { 10.0 * (0.1 * value * mse(x, x)); }).find(finite), std::string::npos) << value;
    EXPECT_NE(error_of([&] { parameter("p", {2}, {.init = init::constant(value)}); }).find(finite), std::string::npos);
  }
  EXPECT_NE(error_of([&] { x / 1e-39; }).find("infinite"), std::string::npos);
  for (const double delta : {1e39, 1e-39}) {
    EXPECT_NE(error_of([&] { huber(x, x, {.delta = delta}); }).find("huber.delta"), std::string::npos) << delta;
  }
  const Var labels = input({}, DType::i64);
  EXPECT_NE(error_of([&] {
              cross_entropy(x, labels, {.class_weights = {1, 1e39}});
            }).find("class_weights"),
            std::string::npos);
  for (const Init& init : {init::uniform(-1), init::normal(NAN), init::normal(1e39)}) {
    EXPECT_NE(error_of([&] { parameter("p", {2}, {.init = init}); }).find("init.value"), std::string::npos);
  }
}

TEST_F(Functions, LossesNameWhatTheUserWrote) {
  const Var x = input({3}), labels = input({}, DType::i64);
  EXPECT_EQ(error_of([&] {
              cross_entropy(x, labels, {.class_weights = {1, 2}}, Where{"net.cpp", 9});
            }),
            "Error [option] cross_entropy.class_weights (net.cpp:9): has 2 numbers; it takes one for each of the 3 "
            "classes, or none");
  for (const LossFunction& loss : {cross_entropy(), bce_with_logits(), mse(), l1(), huber(), kl_divergence()}) {
    EXPECT_NE(error_of([&] {
                loss.infer_targets()({{"lane", x}, {"speed", x}});
              }).find("one output with one target, there are 2 (lane, speed)"),
              std::string::npos);
  }
}

TEST_F(Functions, AxesCountTheSamples) {
  const Var x = input({4, 3, 2});
  softmax(x);
  EXPECT_EQ(last().attributes.integer("axis"), 2);
  log_softmax(x, {.axis = 1});
  EXPECT_EQ(last().attributes.integer("axis"), 0);
  EXPECT_EQ(
      error_of([&] {
        softmax(x, {.axis = 0}, Where{"net.cpp", 4});
      }),
      "Error [shape] softmax.axis = 0 (net.cpp:4): is the dimension of the samples, which stay apart; allowed for "
      "[N, 4, 3, 2] is 1 to 3");
  EXPECT_NE(error_of([&] { softmax(x, {.axis = -4}); }).find("softmax.axis = -4"), std::string::npos);
  EXPECT_NE(error_of([&] { softmax(x, {.axis = 4}); }).find("is no dimension"), std::string::npos);
  EXPECT_EQ(reduce_sum(x, {.axes = {-1, 1}}).text(), "[N, 3]");
  EXPECT_EQ(reduce_mean(x, {.axes = {2}, .keep = true}).text(), "[N, 4, 1, 2]");
  EXPECT_EQ(reduce_mean(x).text(), "[N]");
  EXPECT_NE(error_of([&] { reduce_sum(x, {.axes = {3, -1}}); }).find("name a dimension twice"), std::string::npos);
  EXPECT_EQ(concat({x, x}, {.axis = 2}).text(), "[N, 4, 6, 2]");
  EXPECT_NE(error_of([&] { concat({x, x}, {.axis = 0}); }).find("concat.axis = 0"), std::string::npos);
  EXPECT_NE(error_of([&] { concat({}); }).find("needs at least one value"), std::string::npos);
}

TEST_F(Functions, ReshapeKeepsTheSamples) {
  const Var x = input({6, 128});
  EXPECT_EQ(reshape(x, {-1, 128}).text(), "[6N, 128]");
  EXPECT_EQ(reshape(reshape(x, {-1, 128}), {-1, 6, 128}).text(), "[N, 6, 128]");
  EXPECT_EQ(reshape(x, {-1, 3, 256}).text(), "[N, 3, 256]");
  EXPECT_EQ(reshape(parameter("p", {2, 3}), {3, 2}).text(), "[3, 2]");
  EXPECT_NE(error_of([&] {
              reshape(x, {768}, Where{"net.cpp", 2});
            }).find("reshape (net.cpp:2): {sizes = [768]} for [N, 6, 128]: the first size must be -1"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              reshape(x, {-1, -1});
            }).find("all sizes but the first must be at least 1"),
            std::string::npos);
  EXPECT_NE(error_of([&] { reshape(x, {-1, 5}); }).find("the elements do not fit"), std::string::npos);
}

TEST_F(Functions, DimensionsChangePlaces) {
  const Var x = input({4, 3, 2});
  EXPECT_EQ(transpose(x, 1, 2).text(), "[N, 3, 4, 2]");
  EXPECT_EQ(transpose(x, -1, 1).text(), "[N, 2, 3, 4]");
  EXPECT_EQ(permute(x, {0, 3, 1, 2}).text(), "[N, 2, 4, 3]");
  EXPECT_EQ(permute(x, {0, -1, -3, -2}).text(), "[N, 2, 4, 3]");
  EXPECT_EQ(permute(parameter("p", {2, 3}), {1, 0}).text(), "[3, 2]");
  const Var pixels = input({32, 30, 3}, DType::u8);
  EXPECT_EQ(to_channels_first(pixels).text(), "[N, 3, 32, 30]");
  EXPECT_EQ(to_channels_first(pixels).dtype(), DType::u8);
  const size_t nodes = graph().nodes.size();
  transpose(x, 2, 2);
  permute(x, {0, 1, 2, 3});
  EXPECT_EQ(graph().nodes.size(), nodes) << "nothing to do";
  const Where at = {"net.cpp", 6};
  EXPECT_NE(error_of([&] { transpose(x, 0, 1, at); }).find("transpose.a = 0 (net.cpp:6)"), std::string::npos);
  EXPECT_EQ(
      error_of([&] {
        permute(x, {1, 0, 2, 3}, at);
      }),
      "Error [shape] permute (net.cpp:6): {axes = [1, 0, 2, 3]} for [N, 4, 3, 2]: the first must be 0: the samples "
      "keep their place");
  EXPECT_NE(error_of([&] { permute(x, {0, 1, 2}); }).find("must name all 4 dimensions"), std::string::npos);
  EXPECT_NE(error_of([&] { permute(x, {0, 1, 2, 2}); }).find("names a dimension twice"), std::string::npos);
  EXPECT_NE(error_of([&] { permute(x, {0, 1, 2, 4}); }).find("permute.axes = 4"), std::string::npos);
  EXPECT_NE(error_of([&] { to_channels_first(flatten(x), at); }).find("[N, height, width, channels], got [N, 24]"),
            std::string::npos);
}

TEST_F(Functions, Slices) {
  const Var x = input({6, 4});
  EXPECT_EQ(slice(x, {.count = 2, .first = 1}).text(), "[N, 2, 4]");
  EXPECT_EQ(slice(x, {.axis = -1, .first = 1}).text(), "[N, 6, 3]");
  slice(x, {.first = -2});
  EXPECT_EQ(last().attributes.print(), "{axis = 0, count = 2, first = 4}");
  const std::vector<Var> parts = chunk(x, 3);
  ASSERT_EQ(parts.size(), 3u);
  EXPECT_EQ(parts[2].text(), "[N, 2, 4]");
  EXPECT_EQ(last().attributes.print(), "{axis = 0, count = 2, first = 4}");
  const Where at = {"net.cpp", 6};
  EXPECT_EQ(error_of([&] { slice(x, {.first = 6}, at); }),
            "Error [option] slice.first = 6 (net.cpp:6): must be from -6 to 5");
  EXPECT_EQ(error_of([&] { slice(x, {.count = 3, .first = 4}, at); }),
            "Error [option] slice.count = 3 (net.cpp:6): must be from 1 to 2, or 0 for all from element 4 on");
  EXPECT_NE(error_of([&] { slice(x, {.count = -1}); }).find("slice.count = -1"), std::string::npos);
  EXPECT_NE(error_of([&] { slice(x, {.axis = 0}); }).find("slice.axis = 0"), std::string::npos);
  EXPECT_EQ(error_of([&] { chunk(x, 4, {}, at); }),
            "Error [shape] chunk.parts = 4 (net.cpp:6): must divide the 6 elements of dimension 1 of [N, 6, 4]");
  EXPECT_NE(error_of([&] { chunk(x, 0); }).find("chunk.parts = 0"), std::string::npos);
}

TEST_F(Functions, ExtremesAndSumsOverTheBatch) {
  const Var x = input({4, 3});
  EXPECT_EQ(reduce_max(x).text(), "[N, 4]");
  EXPECT_EQ(reduce_min(x, {.axis = 1, .keep = true}).text(), "[N, 1, 3]");
  EXPECT_NE(error_of([&] { reduce_max(x, {.axis = 0}); }).find("reduce_max.axis = 0"), std::string::npos);
  EXPECT_EQ(batch_sum(x).text(), "[4, 3]");
  EXPECT_EQ((x - batch_sum(x)).text(), "[N, 4, 3]");
  EXPECT_NE(error_of([&] { batch_sum(batch_sum(x)); }).find("input must be [N, ...], got [4, 3]"), std::string::npos);
}

TEST_F(Functions, FixedNumbers) {
  const Where at = {"net.cpp", 6};
  EXPECT_EQ((input({2, 3}) * constant({1, 2, 3}, {3})).text(), "[N, 2, 3]");
  EXPECT_EQ(error_of([&] {
              constant({1, 2}, {3}, at);
            }),
            "Error [shape] constant (net.cpp:6): has 2 numbers; [3] takes 3");
  const Var pixels = input({2, 4, 4}, DType::u8);
  EXPECT_EQ(normalize(pixels, {.deviation = {0.5, 0.25}, .mean = {0.5, 0.4}}).text(), "[N, 2, 4, 4]");
  EXPECT_EQ(last().op->name, "mul");
  const auto refused = [&](NormalizeOptions options) { return error_of([&] { normalize(pixels, options, at); }); };
  EXPECT_EQ(refused({.deviation = {1}, .mean = {0, 0}}),
            "Error [option] normalize.deviation = 1 numbers (net.cpp:6): must be one for each of the 2 channels of "
            "[N, 2, 4, 4]");
  EXPECT_NE(refused({.deviation = {1, 1}}).find("normalize.mean = 0 numbers"), std::string::npos);
  EXPECT_NE(refused({.deviation = {1, 0}, .mean = {0, 0}}).find("normalize.deviation = 0"), std::string::npos);
  EXPECT_NE(error_of([&] { normalize(input({}), {}, at); }).find("input must be [N, channels, ...]"),
            std::string::npos);
}

TEST_F(Functions, Frames) {
  const Var x = input({3, 4, 5});
  EXPECT_EQ(pad(x, {.bottom = 1, .left = 2, .right = 3, .top = 4}).text(), "[N, 3, 9, 10]");
  EXPECT_EQ(pad(input({5}), {.left = 1, .value = -1}).text(), "[N, 6]");
  EXPECT_NE(error_of([&] { pad(input({5}), {.top = 1}); }).find("which has no rows"), std::string::npos);
  EXPECT_NE(error_of([&] { pad(x, {.left = -1}); }).find("pad.left = -1"), std::string::npos);
  EXPECT_NE(error_of([&] { pad(x, {.value = std::nan("")}); }).find("pad.value = nan"), std::string::npos);
}

TEST_F(Functions, Indices) {
  const Var x = input({5}), index = input({}, DType::i64), words = input({7}, DType::i64);
  EXPECT_EQ(gather(x, index).text(), "[N]");
  EXPECT_EQ(gather(x, words).text(), "[N, 7]");
  EXPECT_EQ(argmax(x).text(), "[N]");
  EXPECT_EQ(argmax(x).dtype(), DType::i64);
  EXPECT_EQ(gather(x, argmax(x)).text(), "[N]");
  EXPECT_EQ(one_hot(words, 9).text(), "[N, 7, 9]");
  EXPECT_EQ(embedding(index, {.count = 10, .features = 3}).text(), "[N, 3]");
  EXPECT_EQ(embedding(words, {.count = 10, .features = 4, .name = "tokens"}).text(), "[N, 7, 4]");
  EXPECT_EQ(parameters(), "embedding1.weight [10, 3]; tokens.weight [10, 4]; ");
  EXPECT_EQ(tracer_->specs[0].init.kind, Init::Kind::normal);
  EXPECT_EQ(tracer_->specs[0].init.value, 1);
  const Where at = {"net.cpp", 6};
  EXPECT_EQ(error_of([&] { gather(x, x, at); }),
            "Error [shape] gather 'gather4' (net.cpp:6): index must be i64 [N, ...], got f32 [N, 5] from input 'x0'; "
            "convert it with cast(x, DType::i64)");
  EXPECT_NE(error_of([&] {
              gather(input({2, 3}), index);
            }).find("input must be [N, C], got [N, 2, 3]"),
            std::string::npos);
  EXPECT_NE(error_of([&] { embedding(index, {.features = 3}, at); }).find("embedding.count = 0 (net.cpp:6)"),
            std::string::npos);
  EXPECT_NE(error_of([&] { embedding(index, {.count = 3}); }).find("embedding.features = 0"), std::string::npos);
  EXPECT_NE(error_of([&] { embedding(x, {.count = 3, .features = 3}); }).find("index must be i64"), std::string::npos);
  EXPECT_NE(error_of([&] { one_hot(index, 0); }).find("one_hot.classes = 0"), std::string::npos);
}

TEST_F(Functions, NormalisationWithinASample) {
  const Var x = input({6, 4, 5});
  EXPECT_EQ(layer_norm(x).text(), "[N, 6, 4, 5]");
  layer_norm(x, {.dims = 2, .epsilon = 1e-3, .name = "norm"});
  EXPECT_EQ(last().attributes.print(), "{dims = 2, epsilon = 0.001}");
  group_norm(x, {.groups = 3});
  EXPECT_EQ(last().attributes.print(), "{epsilon = 1e-05, groups = 3}");
  EXPECT_EQ(parameters(),
            "ln1.weight [5]; ln1.bias [5]; norm.weight [4, 5]; norm.bias [4, 5]; gn1.weight [6]; gn1.bias "
            "[6]; ");
  EXPECT_FALSE(tracer_->specs[2].decay);
  layer_norm(x, {.affine = false});
  group_norm(x, {.affine = false, .groups = 6});
  EXPECT_EQ(tracer_->specs.size(), 6u);
  const Where at = {"net.cpp", 6};
  EXPECT_EQ(error_of([&] { layer_norm(x, {.dims = 4}, at); }),
            "Error [option] layer_norm.dims = 4 (net.cpp:6): must be from 1 to the 3 dimensions of a sample of "
            "[N, 6, 4, 5]");
  EXPECT_NE(error_of([&] { layer_norm(x, {.epsilon = 0}); }).find("layer_norm.epsilon = 0"), std::string::npos);
  EXPECT_NE(error_of([&] { group_norm(x, {}); }).find("group_norm.groups = 0"), std::string::npos);
  EXPECT_NE(error_of([&] {
              group_norm(x, {.groups = 4}, at);
            }).find("group_norm.groups = 4 (net.cpp:6): must divide the 6 channels of [N, 6, 4, 5]"),
            std::string::npos);
}

TEST_F(Functions, RandomValues) {
  EXPECT_EQ(random_normal({3, 4}).text(), "[N, 3, 4]");
  EXPECT_EQ(random_uniform({}).text(), "[N]");
  EXPECT_EQ((input({3, 4}) + random_normal({4})).text(), "[N, 3, 4]");
  EXPECT_EQ(stochastic_depth(input({3}), 0.5, {.name = "path"}).text(), "[N, 3]");
  EXPECT_EQ(last().name, "path");
  const Where at = {"net.cpp", 6};
  EXPECT_EQ(error_of([&] { random_normal({0}, {}, at); }),
            "Error [shape] random_normal.shape = [0] (net.cpp:6): each size must be at least 1");
  EXPECT_NE(error_of([&] { random_normal({1}, {.deviation = -1}); }).find("random_normal.deviation = -1"),
            std::string::npos);
  EXPECT_NE(error_of([&] { random_normal({1}, {.mean = NAN}); }).find("random_normal.mean = nan"), std::string::npos);
  EXPECT_NE(error_of([&] { random_uniform({1}, {.low = 1}); }).find("must be below high = 1"), std::string::npos);
  EXPECT_NE(error_of([&] { stochastic_depth(input({3}), 1); }).find("stochastic_depth.rate = 1"), std::string::npos);
}

TEST_F(Functions, ProductsAndNoise) {
  const Var a = input({2, 3}), w = parameter("w", {4, 3});
  EXPECT_EQ(matmul(a, w, {.transpose_b = true}).text(), "[N, 2, 4]");
  EXPECT_EQ(bias_add(a, parameter("b", {2})).text(), "[N, 2, 3]");
  EXPECT_EQ(dropout(a, 0.5, {.name = "noise"}).text(), "[N, 2, 3]");
  EXPECT_EQ(last().name, "noise");
}

std::vector<std::string> names_of(const Model& model) {
  std::vector<std::string> names;
  for (const Parameter& parameter : model.parameters()) names.push_back(parameter.name);
  return names;
}

TEST(Names, TheSameNameTwiceNamesBothLines) {
  EXPECT_EQ(error_of([] {
              Model(
                  [](Var x) {
                    x = linear(x, 4, {.bias = false, .name = "head"}, Where{"net.cpp", 3});
                    return linear(x, 4, {.bias = false, .name = "head"}, Where{"net.cpp", 9});
                  },
                  {4});
            }),
            "Error [state] head.weight (net.cpp:9): two parameters have this name (net.cpp:3 and net.cpp:9); give one "
            "another .name, put it into a Scope, or share it with Shared");
  const auto twice = [](const char* what, auto make) {
    const std::string text = error_of([&] { Model([&](Var x) { return make(make(x, 3), 9); }, {4}); });
    EXPECT_NE(text.find("(net.cpp:3 and net.cpp:9)"), std::string::npos) << what << ": " << text;
  };
  twice("parameter", [](Var x, int line) { return x * parameter("w", {4}, {}, Where{"net.cpp", line}); });
  twice("buffer", [](Var x, int line) { return x * buffer("w", Tensor(Shape{4}), Where{"net.cpp", line}); });
  twice("scope", [](Var x, int line) {
    const Scope scope("a");
    return linear(x, 4, {.name = "head"}, Where{"net.cpp", line});
  });
  // A name that numbering gives counts as much.
  EXPECT_NE(error_of([] {
              Model([](Var x) { return linear(linear(x, 4), 4, {.name = "fc1"}); }, {4});
            }).find("two parameters have this name"),
            std::string::npos);
}

TEST(Names, ScopesMakeThemDifferent) {
  const Model model(
      [](Var x) {
        for (const char* name : {"a", "b"}) {
          const Scope scope(name);
          x = linear(x, 4, {.bias = false, .name = "head"});
        }
        return x;
      },
      {4});
  EXPECT_EQ(names_of(model), (std::vector<std::string>{"a.head.weight", "b.head.weight"}));
}

TEST(Names, ASharedBlockIsNamedOnceWhicheverCallComesFirst) {
  for (const bool swapped : {false, true}) {
    const Model model(
        [swapped](const Vars& in) {
          const Shared encoder("encoder", [](Var x) { return dropout(relu(linear(linear(x, 4), 4)), 0.5); });
          const Var a = encoder(in["a"]), b = encoder(in["b"]);
          return Vars{{"y", swapped ? linear(b - a, 2) : linear(a - b, 2)}};
        },
        Inputs{{"a", {4}}, {"b", {4}}});
    EXPECT_EQ(names_of(model), (std::vector<std::string>{"encoder.fc1.weight", "encoder.fc1.bias", "encoder.fc2.weight",
                                                         "encoder.fc2.bias", "fc1.weight", "fc1.bias"}))
        << swapped;
    std::vector<int64_t> streams;
    for (const graph::Node& node : model.state()->graph.nodes)
      if (node.op->name == "dropout") streams.push_back(node.attributes.integer("stream"));
    ASSERT_EQ(streams.size(), 2u);
    EXPECT_NE(streams[0], streams[1]) << "each call draws its own mask";
  }
}

TEST(Names, SharedBlocksOfTwoNamesShareNothing) {
  const Model model(
      [](Var x) {
        const ModelFunction block = [](Var v) { return linear(v, 4, {.bias = false}); };
        const Shared left("left", block), right("right", block);
        return left(left(x)) + right(x);
      },
      {4});
  EXPECT_EQ(names_of(model), (std::vector<std::string>{"left.fc1.weight", "right.fc1.weight"}));
}

}  // namespace
}  // namespace brisk
