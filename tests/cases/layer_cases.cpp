// Rows of convolution, linear layers, bias and matrix products, forward and backward.
#include <limits>

#include "cases/table.h"

namespace brisk::test {
namespace {

/// A convolution of which all three operations get a row.
struct Convolution {
  std::string name;
  int64_t in_channels, height, width, out_channels, kernel_height, kernel_width;
  std::vector<int64_t> stride = {1, 1}, padding = {0, 0}, dilation = {1, 1};
  int64_t groups = 1;
  std::vector<int64_t> batches = few_tails();
  int64_t rows = 1;

  int64_t out_height() const { return out(height, kernel_height, 0); }
  int64_t out_width() const { return out(width, kernel_width, 1); }
  ValueType input() const { return b({in_channels, height, width}, rows); }
  ValueType output() const { return b({out_channels, out_height(), out_width()}, rows); }
  ValueType weight() const { return p({out_channels, kernel_height, kernel_width, in_channels / groups}); }
  Attributes geometry() const {
    return {{"stride", stride}, {"padding", padding}, {"dilation", dilation}, {"groups", groups}};
  }

 private:
  int64_t out(int64_t size, int64_t kernel, size_t i) const {
    return (size + 2 * padding[i] - dilation[i] * (kernel - 1) - 1) / stride[i] + 1;
  }
};

std::vector<Convolution> convolutions() {
  return {
      {"1x1_to_1", 1, 1, 1, 1, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1, all_tails()},
      {"tails", 2, 4, 3, 3, 2, 2, {1, 1}, {0, 0}, {1, 1}, 1, all_tails()},
      {"lenet1", 1, 28, 28, 20, 5, 5, {1, 1}, {0, 0}, {1, 1}, 1, {1, 4, 17}},
      {"lenet2", 20, 12, 12, 50, 5, 5, {1, 1}, {0, 0}, {1, 1}, 1, {4, 17}},
      {"lenet_variant1", 1, 27, 29, 19, 3, 3, {1, 1}, {0, 0}, {1, 1}, 1, {4, 17}},
      {"lenet_variant2", 19, 12, 13, 51, 3, 3, {1, 1}, {0, 0}, {1, 1}, 1, {4, 17}},
      {"3x3_same", 16, 9, 7, 24, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, some_tails()},
      {"3x3_same_32", 32, 8, 8, 32, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, {1, 16, 33}},
      {"3x3_same_wide", 8, 6, 33, 8, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, {2, 17}},
      {"3x3_same_4x4", 64, 4, 4, 64, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, {1, 17}},
      {"3x3_same_2x2", 24, 2, 2, 18, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, {1, 17}},
      {"3x3_same_primes", 7, 11, 13, 13, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, {1, 5, 17}},
      {"3x3_valid", 5, 8, 7, 11, 3, 3, {1, 1}, {0, 0}, {1, 1}, 1, some_tails()},
      {"3x3_one_pixel", 5, 1, 1, 4, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, some_tails()},
      {"3x3_stride2", 16, 9, 9, 32, 3, 3, {2, 2}, {1, 1}, {1, 1}, 1, {1, 16, 17}},
      {"3x3_stride2_even", 6, 8, 10, 7, 3, 3, {2, 2}, {1, 1}, {1, 1}, 1, {1, 17}},
      {"1x1", 16, 5, 5, 33, 1, 1, {1, 1}, {0, 0}, {1, 1}, 1, some_tails()},
      {"1x1_stride2", 16, 8, 7, 32, 1, 1, {2, 2}, {0, 0}, {1, 1}, 1, {1, 17}},
      {"1x1_padding", 3, 4, 4, 5, 1, 1, {1, 1}, {1, 1}, {1, 1}, 1},
      {"7x7_stride2", 3, 15, 17, 8, 7, 7, {2, 2}, {3, 3}, {1, 1}, 1, {1, 17}},
      {"not_square", 3, 5, 9, 4, 2, 3, {1, 2}, {1, 0}, {1, 1}, 1},
      {"kernel_row", 4, 6, 9, 5, 1, 5, {1, 1}, {0, 2}, {1, 1}, 1},
      {"kernel_column", 4, 9, 6, 5, 5, 1, {1, 1}, {2, 0}, {1, 1}, 1},
      {"dilated", 3, 11, 12, 4, 3, 3, {1, 1}, {2, 2}, {2, 2}, 1},
      {"dilated_stride", 3, 13, 12, 4, 3, 2, {2, 3}, {2, 1}, {3, 2}, 1},
      {"large_padding", 2, 3, 4, 3, 3, 3, {1, 1}, {4, 5}, {1, 1}, 1},
      {"large_stride", 2, 9, 11, 3, 2, 2, {4, 5}, {0, 0}, {1, 1}, 1},
      {"stride_leaves_rest", 2, 8, 9, 3, 3, 3, {3, 4}, {0, 0}, {1, 1}, 1},
      {"whole_image", 3, 5, 4, 7, 5, 4, {1, 1}, {0, 0}, {1, 1}, 1, some_tails()},
      {"groups2", 6, 7, 5, 4, 3, 3, {1, 1}, {1, 1}, {1, 1}, 2},
      {"groups3_stride", 9, 7, 8, 6, 3, 3, {2, 2}, {1, 1}, {1, 1}, 3},
      {"depthwise", 17, 6, 7, 17, 3, 3, {1, 1}, {1, 1}, {1, 1}, 17, some_tails()},
      {"depthwise_twofold", 5, 6, 7, 10, 3, 3, {1, 1}, {1, 1}, {1, 1}, 5},
      {"depthwise_stride2", 8, 7, 7, 8, 3, 3, {2, 2}, {1, 1}, {1, 1}, 8},
      {"depthwise_wide", 3, 9, 21, 3, 3, 3, {1, 1}, {1, 1}, {1, 1}, 3, {1, 17}},
      {"depthwise_valid", 2, 4, 9, 2, 3, 3, {1, 1}, {0, 0}, {1, 1}, 2},
      {"depthwise_narrow", 2, 5, 2, 2, 3, 3, {1, 1}, {1, 1}, {1, 1}, 2},
      {"depthwise_stride2_even", 3, 8, 18, 3, 3, 3, {2, 2}, {1, 1}, {1, 1}, 3, {1, 17}},
      {"depthwise_stride2_valid", 2, 6, 11, 2, 3, 3, {2, 2}, {0, 0}, {1, 1}, 2},
      {"depthwise_5x5", 4, 7, 12, 4, 5, 5, {1, 1}, {2, 2}, {1, 1}, 4, some_tails()},
      {"depthwise_5x5_tiny", 3, 2, 1, 3, 5, 5, {1, 1}, {2, 2}, {1, 1}, 3},
      {"depthwise_5x5_stride2", 2, 9, 19, 2, 5, 5, {2, 2}, {2, 2}, {1, 1}, 2, {1, 17}},
      {"depthwise_5x5_stride2_even", 2, 10, 8, 2, 5, 5, {2, 2}, {2, 2}, {1, 1}, 2},
      {"depthwise_7x7", 2, 9, 8, 2, 7, 7, {1, 1}, {3, 3}, {1, 1}, 2},
      {"depthwise_large_padding", 2, 3, 4, 2, 3, 3, {1, 1}, {4, 5}, {1, 1}, 2},
      {"depthwise_large_padding_stride2", 2, 3, 4, 2, 3, 3, {2, 2}, {4, 5}, {1, 1}, 2},
      {"depthwise_not_square_stride", 2, 5, 6, 2, 3, 3, {1, 2}, {1, 1}, {1, 1}, 2},
      {"depthwise_two_rows", 3, 5, 6, 3, 3, 3, {1, 1}, {1, 1}, {1, 1}, 3, some_tails(), 2},
      {"depthwise_many_channels", 70, 4, 5, 70, 3, 3, {1, 1}, {1, 1}, {1, 1}, 70, {1, 50}},
      {"depthwise_dilated", 4, 9, 9, 4, 3, 3, {1, 1}, {2, 2}, {2, 2}, 4},
      {"groups_1x1", 8, 5, 5, 12, 1, 1, {1, 1}, {0, 0}, {1, 1}, 4},
      {"many_inputs", 131, 3, 3, 2, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, {1, 17}},
      {"many_outputs", 2, 3, 3, 131, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, {1, 17}},
      {"large_weights", 199, 3, 4, 160, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, {17}},
      {"large_weights_bands", 199, 13, 12, 160, 3, 3, {2, 2}, {1, 1}, {1, 1}, 1, {1}},
      {"two_rows", 3, 5, 6, 4, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1, some_tails(), 2},
      {"5x5_same", 6, 9, 10, 7, 5, 5, {1, 1}, {2, 2}, {1, 1}, 1},
      {"11x11", 2, 14, 13, 3, 11, 11, {1, 1}, {0, 0}, {1, 1}, 1, {1, 17}},
  };
}

// Fast algorithms for 3x3 kernels round more than direct sums do.
constexpr Tolerance kConvolution = {3e-6, Measure::magnitude};

Attributes with(Attributes attributes, std::string_view name, graph::Attribute value) {
  attributes.set(name, std::move(value));
  return attributes;
}

std::vector<OpCase> convolution_cases() {
  std::vector<OpCase> rows;
  for (const Convolution& c : convolutions()) {
    rows.push_back({"conv2d_" + c.name,
                    "conv2d",
                    with(c.geometry(), "activation", std::string("none")),
                    {in(c.input()), in(c.weight())},
                    c.batches,
                    kConvolution});
    rows.push_back({"conv2d_input_gradient_" + c.name,
                    "conv2d_input_gradient",
                    with(c.geometry(), "input", std::vector<int64_t>{c.in_channels, c.height, c.width}),
                    {in(c.output()), in(c.weight())},
                    c.batches,
                    kConvolution});
    rows.push_back({"conv2d_weight_gradient_" + c.name,
                    "conv2d_weight_gradient",
                    with(c.geometry(), "kernel", std::vector<int64_t>{c.kernel_height, c.kernel_width}),
                    {in(c.input()), in(c.output())},
                    c.batches,
                    kConvolution});
  }
  // What follows the sums: every activation, with and without bias, on an ordinary and on a special shape.
  for (const std::string activation : {"none", "relu", "tanh", "sigmoid"}) {
    const Convolution valid = {"", 3, 6, 7, 7, 3, 3};
    const Convolution grouped = {"", 4, 6, 6, 4, 3, 3, {2, 2}, {1, 1}, {1, 1}, 4};
    const Convolution same = {"", 8, 8, 8, 16, 3, 3, {1, 1}, {1, 1}, {1, 1}, 1};
    const Convolution point = {"", 5, 4, 4, 9, 1, 1};
    for (const auto& [name, c] : {std::pair("valid", valid), {"grouped", grouped}, {"same", same}, {"point", point}}) {
      const Attributes attributes = with(c.geometry(), "activation", activation);
      rows.push_back({"conv2d_bias_" + activation + "_" + name,
                      "conv2d",
                      attributes,
                      {in(c.input()), in(c.weight()), in(p({c.out_channels}))},
                      few_tails(),
                      kConvolution});
      if (activation == "none") continue;
      rows.push_back({"conv2d_" + activation + "_" + name,
                      "conv2d",
                      attributes,
                      {in(c.input()), in(c.weight())},
                      few_tails(),
                      kConvolution});
    }
  }
  return rows;
}

std::vector<OpCase> linear_cases() {
  struct Size {
    std::string name;
    int64_t in, out;
    std::vector<int64_t> batches;
    int64_t rows = 1;
  };
  const std::vector<Size> sizes = {
      {"1_to_1", 1, 1, all_tails()},        {"3_to_2", 3, 2, all_tails()},          {"7_to_13", 7, 13, some_tails()},
      {"16_to_16", 16, 16, some_tails()},   {"1_to_67", 1, 67, some_tails()},       {"67_to_1", 67, 1, some_tails()},
      {"800_to_500", 800, 500, {1, 4, 17}}, {"500_to_10", 500, 10, {1, 4, 17, 64}}, {"131_to_97", 131, 97, {2, 33}},
      {"two_rows", 9, 5, some_tails(), 2},  {"128_to_64", 128, 64, {8, 32}},        {"1030_to_3", 1030, 3, {1, 18}},
  };
  std::vector<OpCase> rows;
  for (const Size& s : sizes) {
    const ValueType x = b({s.in}, s.rows), y = b({s.out}, s.rows), w = p({s.out, s.in});
    rows.push_back(
        {"linear_" + s.name, "linear", {{"activation", std::string("none")}}, {in(x), in(w)}, s.batches, kSum});
    rows.push_back({"linear_input_gradient_" + s.name, "linear_input_gradient", {}, {in(y), in(w)}, s.batches, kSum});
    rows.push_back({"linear_weight_gradient_" + s.name, "linear_weight_gradient", {}, {in(x), in(y)}, s.batches, kSum});
  }
  for (const std::string activation : {"none", "relu", "tanh", "sigmoid"}) {
    const Attributes attributes = {{"activation", activation}};
    rows.push_back({"linear_bias_" + activation,
                    "linear",
                    attributes,
                    {in(b({17})), in(p({11, 17})), in(p({11}))},
                    some_tails(),
                    kSum});
    if (activation == "none") continue;
    rows.push_back({"linear_" + activation, "linear", attributes, {in(b({17})), in(p({11, 17}))}, some_tails(), kSum});
  }
  return rows;
}

std::vector<OpCase> channel_cases() {
  std::vector<OpCase> rows;
  const std::vector<std::tuple<std::string, ValueType, std::vector<int64_t>>> types = {
      {"features", b({3}), all_tails()},        {"one", b({1}), some_tails()},
      {"image", b({5, 7, 3}), some_tails()},    {"many_channels", b({131, 2}), {1, 33}},
      {"large_image", b({3, 29, 31}), {1, 19}}, {"two_rows", b({4, 3}, 2), some_tails()},
      {"large_batch", b({2, 3}), {300, 1037}},
  };
  for (const auto& [name, type, batches] : types) {
    rows.push_back({"bias_add_" + name, "bias_add", {}, {in(type), in(p({type.shape[0]}))}, batches, {1e-7}});
    rows.push_back({"channel_sum_" + name, "channel_sum", {}, {in(type)}, batches, kSum});
  }
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
  rows.push_back({"channel_sum_special",
                  "channel_sum",
                  {},
                  {in(b({3, 401}), each([=](Random&, int64_t i) { return i == 1     ? kInf
                                                                         : i == 402 ? kNaN
                                                                                    : 0.5; }))},
                  few_tails(),
                  kFunction,
                  false});
  rows.push_back({"channel_sum_of_equals", "channel_sum", {}, {in(b({2, 32, 32}), constant(0.1))}, {67}, kSum});
  return rows;
}

std::vector<OpCase> matmul_cases() {
  struct Product {
    std::string name;
    int64_t m, k, p;
    int a_rows, b_rows;  // 0: without a batch
    std::vector<int64_t> batches;
  };
  const std::vector<Product> products = {
      {"batched", 3, 5, 4, 1, 1, some_tails()},      {"one", 1, 1, 1, 1, 1, all_tails()},
      {"weight_right", 3, 7, 5, 1, 0, some_tails()}, {"weight_left", 3, 7, 5, 0, 1, some_tails()},
      {"no_batch", 17, 33, 19, 0, 0, {1}},           {"no_batch_large", 67, 129, 131, 0, 0, {1}},
      {"two_rows", 3, 5, 4, 2, 2, few_tails()},      {"two_rows_weight", 2, 3, 5, 2, 0, few_tails()},
      {"large", 19, 33, 17, 1, 1, {1, 17}},          {"row_by_column", 1, 13, 1, 1, 1, few_tails()},
      {"outer", 5, 1, 7, 1, 1, few_tails()},
  };
  std::vector<OpCase> rows;
  for (const Product& q : products) {
    for (const bool ta : {false, true}) {
      for (const bool tb : {false, true}) {
        const Shape a = ta ? Shape{q.k, q.m} : Shape{q.m, q.k}, b = tb ? Shape{q.p, q.k} : Shape{q.k, q.p};
        rows.push_back({"matmul_" + q.name + (ta ? "_ta" : "") + (tb ? "_tb" : ""),
                        "matmul",
                        {{"transpose_a", ta}, {"transpose_b", tb}},
                        {in({DType::f32, q.a_rows, a}), in({DType::f32, q.b_rows, b})},
                        q.batches,
                        kSum});
      }
    }
  }
  return rows;
}

}  // namespace

std::vector<OpCase> layer_cases() {
  std::vector<OpCase> rows = convolution_cases();
  append(rows, linear_cases());
  append(rows, channel_cases());
  append(rows, matmul_cases());
  return rows;
}

}  // namespace brisk::test
