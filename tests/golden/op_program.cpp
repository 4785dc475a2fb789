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

// Without the number of samples.
Shape sample_of(const std::vector<int64_t>& sizes) { return shape_of({sizes.begin() + 1, sizes.end()}); }

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

Var function(const OpCase& row, Var x) {
  if (row.op == "relu") return relu(x);
  if (row.op == "tanh") return brisk::tanh(x);
  if (row.op == "sigmoid") return sigmoid(x);
  if (row.op == "exp") return brisk::exp(x);
  if (row.op == "log") return brisk::log(x);
  if (row.op == "sqrt") return brisk::sqrt(x);
  if (row.op == "abs") return brisk::abs(x);
  if (row.op == "gelu") return gelu(x);
  if (row.op == "gelu_tanh") return gelu(x, Gelu::tanh);
  if (row.op == "silu") return silu(x);
  if (row.op == "softplus") return softplus(x);
  if (row.op == "leaky_relu") return leaky_relu(x, row.attribute("slope", 0));
  if (row.op == "elu") return elu(x, row.attribute("alpha", 0));
  if (row.op == "pow") return brisk::pow(x, row.attribute("exponent", 0));
  if (row.op == "clamp") return clamp(x, row.attribute("low", 0), row.attribute("high", 0));
  throw std::logic_error("no operation " + row.op);
}

Var function_of_two(const OpCase& row, Var x, Var other) {
  if (row.op == "minimum") return minimum(x, other);
  if (row.op == "maximum") return maximum(x, other);
  if (row.op == "where") return where(x < other, x * other, x - other);
  if (row.op == "stop_gradient") return x * stop_gradient(other) + other * (x >= 0.5);
  throw std::logic_error("no operation " + row.op);
}

int64_t integer(const OpCase& row, const std::string& key) { return static_cast<int64_t>(row.attribute(key, 0)); }

Var padded(const OpCase& row, Var x) {
  return pad(x, {.bottom = integer(row, "bottom"),
                 .left = integer(row, "left"),
                 .right = integer(row, "right"),
                 .top = integer(row, "top"),
                 .value = row.attribute("value", 0)});
}

// Operations that take indices.
Var apply(const OpCase& row, Var x, Var index) {
  if (row.op == "gather") return gather(x, index);
  return x + embedding(index, {.count = integer(row, "count"), .features = integer(row, "features"), .name = "layer"});
}

Var apply(const OpCase& row, Var x) {
  if (row.op == "layer_norm") {
    return layer_norm(x, {.dims = integer(row, "dims"), .epsilon = row.attribute("epsilon", 0), .name = "layer"});
  }
  if (row.op == "group_norm") {
    return group_norm(x, {.epsilon = row.attribute("epsilon", 0), .groups = integer(row, "groups"), .name = "layer"});
  }
  if (row.op == "permute") {
    const std::vector<double>& axes = row.attributes.at("axes");
    return permute(x, std::vector<int64_t>(axes.begin(), axes.end()));
  }
  if (row.op == "pad") return padded(row, x);
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
  if (row.op == "softmax") return softmax(x, {.axis = 1});
  if (row.op == "log_softmax") return log_softmax(x, {.axis = 1});
  return function(row, x);
}

Mean loss_of(const OpCase& row, Var x, Var target) {
  if (row.op == "mse") return mse(x, target);
  if (row.op == "huber") return huber(x, target, {.delta = row.attribute("delta", 1)});
  if (row.op == "l1") return l1(x, target);
  if (row.op == "bce_with_logits") return bce_with_logits(x, target, {.pos_weight = row.attribute("pos_weight", 1)});
  if (row.op == "bce_with_logits_number")
    return bce_with_logits(x, row.attribute("number", 0), {.pos_weight = row.attribute("pos_weight", 1)});
  if (row.op == "kl_divergence") return kl_divergence(x, target);
  if (row.op == "triplet_margin")  // the negative is made of the positive, so that one value is given
    return triplet_margin(x, target, target * -0.5 + 0.25, {.margin = row.attribute("margin", 1)});
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
      model_([&](const Vars& in) { return outputs(in); }, model_inputs()) {
  for (const char* input : {"x", "other"}) {
    const auto found = row.inputs.find(input);
    if (found != row.inputs.end()) set(input, found->second, Shape{samples_, found->second.count() / samples_});
  }
  for (const char* leaf : {"weight", "bias", "running_mean", "running_var"}) {
    const auto found = row.inputs.find(leaf);
    if (found != row.inputs.end()) set(std::string("layer.") + leaf, found->second, shape_of(found->second.shape));
  }
  if (!trains_) model_.freeze({"layer.*"});
}

void OpProgram::set(const std::string& name, const Array& array, const Shape& shape) {
  model_.set_parameter(name, Tensor(array.floats(), shape));
}

const Array* OpProgram::index() const {
  const auto found = row_.inputs.find("index");
  return found == row_.inputs.end() ? nullptr : &found->second;
}

Inputs OpProgram::model_inputs() const {
  std::vector<Field> fields = {{"pick", {samples_}}};
  if (index() != nullptr) fields.push_back({"index", sample_of(index()->shape), DType::i64});
  return Inputs(fields);
}

Vars OpProgram::outputs(const Vars& in) const {
  const Var pick = in["pick"];
  Var x = rows_of("x", pick, row_.inputs.at("x").shape);
  if (is_loss_) return {{"x", x}};
  const auto other = row_.inputs.find("other");
  const Var y = in.has("index")              ? apply(row_, x, in["index"])
                : other == row_.inputs.end() ? apply(row_, x)
                                             : function_of_two(row_, x, rows_of("other", pick, other->second.shape));
  return {{"y", y}, {"q", rows_of("q", pick, row_.cotangent.shape)}};
}

Mean OpProgram::objective(const Vars& in) const {
  const Vars out = model_(in);
  if (is_loss_) return loss_of(row_, out["x"], in["given"]);
  Var terms = flatten(out["y"] * (in["given"] + out["q"]));
  return static_cast<double>(samples_) * sample_mean(reduce_sum(terms));
}

const Array& OpProgram::given() const { return is_loss_ ? row_.inputs.at("target") : row_.cotangent; }

Inputs OpProgram::inputs() const {
  std::vector<Field> fields = model_inputs().fields();
  fields.push_back({"given", sample_of(given().shape), given().integer ? DType::i64 : DType::f32});
  return Inputs(fields);
}

std::vector<double> OpProgram::pick() const {
  std::vector<double> rows(static_cast<size_t>(samples_ * samples_), 0.0);
  for (int64_t n = 0; n < samples_; ++n) rows[static_cast<size_t>(n * samples_ + n)] = 1.0;
  return rows;
}

void OpProgram::check_gradients(const Find& find, double tolerance) const {
  if (!is_loss_) expect_close(find("q"), row_.outputs.at("y"), tolerance, "y");
  for (const auto& [name, wanted] : row_.gradients) {
    const bool is_input = name == "x" || name == "other";
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
