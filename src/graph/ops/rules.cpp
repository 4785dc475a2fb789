// Checks shared by the families.
#include "graph/ops/rules.h"

namespace brisk::graph {
namespace {

// Sizes and attributes of windows stay below this, so that their arithmetic cannot overflow.
constexpr int64_t kLargest = (int64_t{1} << 31) - 1;

std::string cast_hint(DType have, DType wanted) {
  return have == wanted ? "" : cat("; convert it with cast(x, DType::", name(wanted), ")");
}

const ValueType& want(const InferContext& c, int i, const char* role, const char* form, bool is_batched, int rank,
                      DType dtype) {
  const ValueType& type = c.input(i);
  const bool right = type.batched() == is_batched && (rank < 0 || type.shape.rank() == rank);
  if (!right || type.dtype != dtype) {
    const std::string wanted = type.dtype == dtype ? "" : cat(name(dtype), " ");
    const std::string got = type.dtype == dtype ? "" : cat(name(type.dtype), " ");
    c.fail(cat(role, " must be ", wanted, form, ", got ", got, c.describe(i), cast_hint(type.dtype, dtype)));
  }
  return type;
}

std::string text_of(const Pair& pair) { return cat("[", pair[0], ", ", pair[1], "]"); }

}  // namespace

const ValueType& want_batched(const InferContext& c, int i, const char* role, const char* form, int rank, DType dtype) {
  return want(c, i, role, form, true, rank, dtype);
}

const ValueType& want_plain(const InferContext& c, int i, const char* role, const char* form, int rank, DType dtype) {
  return want(c, i, role, form, false, rank, dtype);
}

const ValueType& want_type(const InferContext& c, int i, const char* role, const ValueType& type) {
  if (!(c.input(i) == type)) {
    c.fail(cat(role, " must be ", name(type.dtype), " ", type, ", got ", name(c.input(i).dtype), " ", c.describe(i)));
  }
  return c.input(i);
}

const ValueType& want_f32(const InferContext& c, int i, const char* role) {
  const ValueType& type = c.input(i);
  if (type.dtype != DType::f32) {
    c.fail(cat(role, " must be f32, got ", name(type.dtype), " ", c.describe(i), cast_hint(type.dtype, DType::f32)));
  }
  return type;
}

int64_t integer_in(const InferContext& c, std::string_view name, int64_t low, int64_t high) {
  const int64_t value = c.attributes().integer(name);
  if (value < low) c.fail(cat(name, " = ", value, ": must be at least ", low));
  if (value > high) c.fail(cat(name, " = ", value, ": must be at most ", high));
  return value;
}

double real_in(const InferContext& c, std::string_view name, double low, double high) {
  const double value = c.attributes().real(name);
  if (!(value >= low && value <= high)) c.fail(cat(name, " = ", value, ": must be from ", low, " to ", high));
  return value;
}

Pair pair_of(const InferContext& c, std::string_view name, int64_t low) {
  const std::vector<int64_t>& values = c.attributes().integers(name);
  if (values.size() != 2) c.fail(cat(name, " must have two numbers, for height and width, got ", values.size()));
  const Pair pair = {values[0], values[1]};
  for (const int64_t value : pair) {
    if (value < low) c.fail(cat(name, " = ", text_of(pair), ": must be at least ", low));
    if (value > kLargest) c.fail(cat(name, " = ", text_of(pair), ": must be at most ", kLargest));
  }
  return pair;
}

int axis_of(const InferContext& c, const ValueType& type) {
  const int64_t axis = c.attributes().integer("axis");
  if (axis < 0 || axis >= type.shape.rank()) {
    c.fail(cat("axis ", axis, " is not one of the ", type.shape.rank(), " dimensions of a sample of ", c.describe(0)));
  }
  return static_cast<int>(axis);
}

Shape sizes_of(const InferContext& c, std::string_view name, int count) {
  const std::vector<int64_t>& sizes = c.attributes().integers(name);
  if (count >= 0 && static_cast<int>(sizes.size()) != count) {
    c.fail(cat(name, " must have ", count, " sizes, got ", sizes.size()));
  }
  for (const int64_t size : sizes) {
    if (size < 1) c.fail(cat(name, " has the size ", size, ": must be at least 1"));
  }
  return shape_of(sizes);
}

void check_activation(const InferContext& c) {
  const std::string& activation = c.attributes().text("activation");
  for (const char* known : {"none", "relu", "tanh", "sigmoid"}) {
    if (activation == known) return;
  }
  c.fail(cat("activation = ", activation, ": must be none, relu, tanh or sigmoid"));
}

Shape window_output(const InferContext& c, const Window& window, const Shape& input, int64_t channels) {
  Shape out{channels};
  for (size_t i = 0; i < 2; ++i) {
    const int64_t size = input[static_cast<int>(i) + 1];
    const int64_t span = window.dilation[i] * (window.kernel[i] - 1) + 1;
    // Not size + 2 * padding < span: that sum may overflow.
    if (size > kLargest) c.fail(cat("input ", input, ": height and width must be at most ", kLargest));
    const int64_t room = size + 2 * window.padding[i] - span;
    if (room < 0) {
      const std::string dilation = window.dilation == Pair{1, 1} ? "" : " and dilation " + text_of(window.dilation);
      c.fail(cat("kernel ", text_of(window.kernel), " with padding ", text_of(window.padding), dilation,
                 " does not fit the input of ", input[1], " x ", input[2], ": the output would be empty; got ",
                 c.describe(0)));
    }
    out.append(room / window.stride[i] + 1);
  }
  return out;
}

ValueId through_activation(Derivation& d) {
  const std::string activation = d.attributes().text("activation");
  if (activation == "none") return d.output_gradient();
  return d.emit(activation + "_gradient", {d.output_gradient(), d.output()});
}

double no_flops(const Graph&, const Node&) { return 0; }

}  // namespace brisk::graph
