// Each operation's value and gradients, through the public API, are PyTorch's in double precision.
//
// Any tensor with a row a sample becomes a parameter: x = pick X, where row n of the input `pick` is one-hot at n.
// Products with 0 and 1 are exact, so the gradient of X is that of x to the bit. The objective is sum(y (cotangent +
// pick Q)) with Q = 0, so that the gradient of Q is y itself.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "brisk/brisk.h"
#include "golden/golden_data.h"

namespace brisk::golden {
namespace {

constexpr double kTolerance = 1e-5;  // of the largest element

Shape shape_of(const std::vector<int64_t>& sizes) { return Shape(std::span<const int64_t>(sizes)); }

Size2 size_of(const OpCase& row, const std::string& key, int64_t otherwise) {
  const auto found = row.attributes.find(key);
  if (found == row.attributes.end()) return otherwise;
  return {static_cast<int64_t>(found->second.front()), static_cast<int64_t>(found->second.back())};
}

Var convolution(const OpCase& row, Var x) {
  return conv2d(x, {.bias = row.attribute("bias", 1) != 0,
                    .channels = static_cast<int64_t>(row.attribute("channels", 0)),
                    .dilation = size_of(row, "dilation", 1),
                    .groups = static_cast<int64_t>(row.attribute("groups", 1)),
                    .kernel = size_of(row, "kernel", 0),
                    .name = "layer",
                    .padding = size_of(row, "padding", 0),
                    .stride = size_of(row, "stride", 1)});
}

Pool2dOptions pool_options(const OpCase& row) {
  return {
      .kernel = size_of(row, "kernel", 0), .padding = size_of(row, "padding", 0), .stride = size_of(row, "stride", 0)};
}

Var apply(const OpCase& row, Var x) {
  if (row.op == "conv2d") return convolution(row, x);
  if (row.op == "linear") return linear(x, static_cast<int64_t>(row.attribute("channels", 0)), {.name = "layer"});
  if (row.op == "max_pool2d") return max_pool2d(x, pool_options(row));
  if (row.op == "avg_pool2d") return avg_pool2d(x, pool_options(row));
  if (row.op == "global_avg_pool2d") return global_avg_pool2d(x);
  if (row.op == "batch_norm") {
    return batch_norm(
        x, {.epsilon = row.attribute("epsilon", 0), .momentum = row.attribute("momentum", 0), .name = "layer"});
  }
  if (row.op == "relu") return relu(x);
  if (row.op == "tanh") return brisk::tanh(x);
  if (row.op == "sigmoid") return sigmoid(x);
  if (row.op == "exp") return brisk::exp(x);
  if (row.op == "log") return brisk::log(x);
  if (row.op == "softmax") return softmax(x, {.axis = 1});
  if (row.op == "log_softmax") return log_softmax(x, {.axis = 1});
  throw std::logic_error("no operation " + row.op);
}

Mean loss_of(const OpCase& row, Var x, Var target) {
  if (row.op == "mse") return mse(x, target);
  if (row.op == "huber") return huber(x, target, {.delta = row.attribute("delta", 1)});
  const auto weights = row.inputs.find("class_weights");
  return cross_entropy(x, target,
                       {.class_weights = weights == row.inputs.end() ? std::vector<double>{} : weights->second.values,
                        .ignore_index = static_cast<int64_t>(row.attribute("ignore_index", -100)),
                        .label_smoothing = row.attribute("label_smoothing", 0)});
}

// sizes[0] rows of a parameter of that many rows, as a value with a row a sample.
Var rows_of(const std::string& name, Var pick, const std::vector<int64_t>& sizes) {
  const int64_t samples = sizes[0], elements = shape_of(sizes).count() / samples;
  std::vector<int64_t> shape = sizes;
  shape[0] = -1;
  return reshape(matmul(reshape(pick, {-1, 1, samples}), parameter(name, {samples, elements})), shape);
}

void expect_close(const ConstView& got, const Array& wanted, const std::string& what) {
  ASSERT_EQ(got.count(), static_cast<int64_t>(wanted.values.size())) << what;
  double scale = 0.1;
  for (const double value : wanted.values) scale = std::max(scale, std::abs(value));
  for (size_t i = 0; i < wanted.values.size(); ++i) {
    EXPECT_NEAR(got.data<float>()[i], wanted.values[i], kTolerance * scale) << what << ", element " << i;
  }
}

// A golden case as a model of parameters and a step on it.
class OpRun {
 public:
  explicit OpRun(const OpCase& row)
      : row_(row),
        samples_(row.inputs.at("x").shape[0]),
        is_loss_(row.inputs.count("target") != 0),
        model_([&](const Vars& in) { return outputs(in["pick"]); }, Inputs{{"pick", {samples_}}}) {
    set("x", row.inputs.at("x"), Shape{samples_, row.inputs.at("x").count() / samples_});
    for (const char* name : {"weight", "bias", "running_mean", "running_var"}) {
      const auto found = row.inputs.find(name);
      if (found != row.inputs.end()) set(std::string("layer.") + name, found->second, shape_of(found->second.shape));
    }
    if (row.attribute("training", 1) == 0) model_.freeze({"layer.*"});  // frozen: running statistics are used
  }

  void check() {
    Step step([&](const Vars& in) { return objective(in); }, inputs(), sgd({.learning_rate = 1e-30}),
              {.batch = samples_, .threads = 2});
    const std::vector<float> given = (is_loss_ ? row_.inputs.at("target") : row_.cotangent).floats();
    const std::vector<int64_t> labels = is_loss_ ? row_.inputs.at("target").integers() : std::vector<int64_t>{};
    std::vector<float> pick(static_cast<size_t>(samples_ * samples_), 0.0f);
    for (int64_t n = 0; n < samples_; ++n) pick[static_cast<size_t>(n * samples_ + n)] = 1.0f;
    const bool integer = is_loss_ && row_.inputs.at("target").integer;
    const Shape shape = shape_of((is_loss_ ? row_.inputs.at("target") : row_.cotangent).shape);
    Feed feed = {{"pick", view(pick, {samples_, samples_})}};
    feed.add("given", integer ? view(labels, shape) : view(given, shape));
    step.forward_backward(feed);
    check_gradients(step);
    step.update();
    if (is_loss_) {
      const double wanted = row_.outputs.at("y").values[0];
      EXPECT_NEAR(step.read().loss, wanted, kTolerance * std::max(1.0, std::abs(wanted)));
    }
    for (const char* name : {"running_mean", "running_var"}) {
      const auto found = row_.outputs.find(name);
      if (found != row_.outputs.end())
        expect_close(model_.parameter(std::string("layer.") + name), found->second, name);
    }
  }

 private:
  Vars outputs(Var pick) const {
    Var x = rows_of("x", pick, row_.inputs.at("x").shape);
    if (is_loss_) return {{"x", x}};
    return {{"y", apply(row_, x)}, {"q", rows_of("q", pick, row_.cotangent.shape)}};
  }
  Mean objective(const Vars& in) const {
    const Vars out = model_(Vars{{"pick", in["pick"]}});
    if (is_loss_) return loss_of(row_, out["x"], in["given"]);
    Var terms = flatten(out["y"] * (in["given"] + out["q"]));
    return static_cast<double>(samples_) * sample_mean(reduce_sum(terms));
  }
  Inputs inputs() const {
    const Array& given = is_loss_ ? row_.inputs.at("target") : row_.cotangent;
    const std::vector<int64_t> sample(given.shape.begin() + 1, given.shape.end());
    return {{"pick", {samples_}}, {"given", shape_of(sample), given.integer ? DType::i64 : DType::f32}};
  }
  void check_gradients(const Step& step) const {
    if (!is_loss_) expect_close(step.gradient("q"), row_.outputs.at("y"), "y");
    for (const auto& [name, wanted] : row_.gradients) {
      if (name == "x") {
        expect_close(step.gradient("x"), wanted, "gradient of x");
      } else if (row_.attribute("training", 1) != 0) {
        expect_close(step.gradient("layer." + name), wanted, "gradient of " + name);
      }
    }
  }
  void set(const std::string& name, const Array& array, const Shape& shape) {
    model_.set_parameter(name, Tensor(array.floats(), shape));
  }

  const OpCase& row_;
  int64_t samples_;
  bool is_loss_;
  Model model_;
};

class GoldenOp : public testing::TestWithParam<OpCase> {};

TEST_P(GoldenOp, GivesPyTorchsNumbers) { OpRun(GetParam()).check(); }

INSTANTIATE_TEST_SUITE_P(Cases, GoldenOp, testing::ValuesIn(read_ops(BRISK_SOURCE_DIR "/tests/golden/ops.json").cases),
                         [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace brisk::golden
