// Builds the program of a golden case with the public API alone.
#include "golden/op_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <stdexcept>
#include <utility>

namespace brisk::golden {
namespace {

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

Var transposed_convolution(const OpCase& row, Var x) {
  return conv_transpose2d(x, {.bias = row.attribute("bias", 1) != 0,
                              .channels = static_cast<int64_t>(row.attribute("channels", 0)),
                              .dilation = size_of(row, "dilation", 1),
                              .groups = static_cast<int64_t>(row.attribute("groups", 1)),
                              .kernel = size_of(row, "kernel", 0),
                              .name = "layer",
                              .output_padding = size_of(row, "output_padding", 0),
                              .padding = size_of(row, "padding", 0),
                              .stride = size_of(row, "stride", 1)});
}

Var resized(const OpCase& row, Var x) {
  return resize2d(x, {.align_corners = row.attribute("align_corners", 0) != 0,
                      .mode = row.attribute("bilinear", 0) != 0 ? ResizeMode::bilinear : ResizeMode::nearest,
                      .scale = row.attribute("scale", 0),
                      .size = size_of(row, "size", 0)});
}

Pool2dOptions pool_options(const OpCase& row) {
  return {
      .kernel = size_of(row, "kernel", 0), .padding = size_of(row, "padding", 0), .stride = size_of(row, "stride", 0)};
}

Var apply(const OpCase& row, Var x) {
  if (row.op == "conv2d") return convolution(row, x);
  if (row.op == "conv_transpose2d") return transposed_convolution(row, x);
  if (row.op == "resize2d") return resized(row, x);
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

void expect_close(const std::vector<double>& got, const Array& wanted, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.values.size()) << what;
  double scale = 0.1;
  for (const double value : wanted.values) scale = std::max(scale, std::abs(value));
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], wanted.values[i], tolerance * scale) << what << ", element " << i;
  }
}

}  // namespace

OpProgram::OpProgram(const OpCase& row)
    : row_(row),
      samples_(row.inputs.at("x").shape[0]),
      is_loss_(row.inputs.count("target") != 0),
      trains_(row.attribute("training", 1) != 0),
      model_([&](const Vars& in) { return outputs(in["pick"]); }, Inputs{{"pick", {samples_}}}) {
  set("x", row.inputs.at("x"), Shape{samples_, row.inputs.at("x").count() / samples_});
  for (const char* leaf : {"weight", "bias", "running_mean", "running_var"}) {
    const auto found = row.inputs.find(leaf);
    if (found != row.inputs.end()) set(std::string("layer.") + leaf, found->second, shape_of(found->second.shape));
  }
  if (!trains_) model_.freeze({"layer.*"});
}

void OpProgram::set(const std::string& name, const Array& array, const Shape& shape) {
  model_.set_parameter(name, Tensor(array.floats(), shape));
}

Vars OpProgram::outputs(Var pick) const {
  Var x = rows_of("x", pick, row_.inputs.at("x").shape);
  if (is_loss_) return {{"x", x}};
  return {{"y", apply(row_, x)}, {"q", rows_of("q", pick, row_.cotangent.shape)}};
}

Mean OpProgram::objective(const Vars& in) const {
  const Vars out = model_(Vars{{"pick", in["pick"]}});
  if (is_loss_) return loss_of(row_, out["x"], in["given"]);
  Var terms = flatten(out["y"] * (in["given"] + out["q"]));
  return static_cast<double>(samples_) * sample_mean(reduce_sum(terms));
}

const Array& OpProgram::given() const { return is_loss_ ? row_.inputs.at("target") : row_.cotangent; }

Inputs OpProgram::inputs() const {
  const std::vector<int64_t> sample(given().shape.begin() + 1, given().shape.end());
  return {{"pick", {samples_}}, {"given", shape_of(sample), given().integer ? DType::i64 : DType::f32}};
}

std::vector<double> OpProgram::pick() const {
  std::vector<double> rows(static_cast<size_t>(samples_ * samples_), 0.0);
  for (int64_t n = 0; n < samples_; ++n) rows[static_cast<size_t>(n * samples_ + n)] = 1.0;
  return rows;
}

void OpProgram::check_gradients(const Find& find, double tolerance) const {
  if (!is_loss_) expect_close(find("q"), row_.outputs.at("y"), tolerance, "y");
  for (const auto& [name, wanted] : row_.gradients) {
    const bool is_input = name == "x";
    if (!is_input && !trains_) continue;
    expect_close(find(is_input ? name : "layer." + name), wanted, tolerance, "gradient of " + name);
  }
}

void OpProgram::check_statistics(const Find& find, double tolerance) const {
  for (const char* leaf : {"running_mean", "running_var"}) {
    const auto found = row_.outputs.find(leaf);
    if (found != row_.outputs.end()) expect_close(find(std::string("layer.") + leaf), found->second, tolerance, leaf);
  }
}

void OpProgram::check_loss(double loss, double tolerance) const {
  if (!is_loss_) return;
  const double wanted = row_.outputs.at("y").values[0];
  EXPECT_NEAR(loss, wanted, tolerance * std::max(1.0, std::abs(wanted)));
}

}  // namespace brisk::golden
