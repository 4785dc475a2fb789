// Reference of convolution, linear layers and matrix products.
#include "oracle/rules.h"

namespace brisk::oracle {
namespace {

/// The sizes of a convolution from its input, its output and its attributes.
struct Convolution {
  int64_t n, ci, h, w, co, ho, wo, kh, kw, groups;
  int64_t stride[2], padding[2], dilation[2];
  int64_t group_inputs() const { return ci / groups; }
  int64_t group_outputs() const { return co / groups; }
};

Convolution convolution(const Frame& f, const graph::ValueType& x, const graph::ValueType& y, const Shape& weight) {
  Convolution c{};
  c.n = f.rows(x);
  c.ci = x.shape[0], c.h = x.shape[1], c.w = x.shape[2];
  c.co = y.shape[0], c.ho = y.shape[1], c.wo = y.shape[2];
  c.kh = weight[1], c.kw = weight[2];
  c.groups = f.integer("groups");
  for (size_t i = 0; i < 2; ++i) {
    c.stride[i] = f.integers("stride")[i];
    c.padding[i] = f.integers("padding")[i];
    c.dilation[i] = f.integers("dilation")[i];
  }
  f.require(f.rows(y) == c.n && c.ci % c.groups == 0 && c.co % c.groups == 0, "rows or groups disagree");
  f.require(weight == Shape{c.co, c.kh, c.kw, c.group_inputs()}, "weight is " + weight.text());
  f.require(c.ho == (c.h + 2 * c.padding[0] - c.dilation[0] * (c.kh - 1) - 1) / c.stride[0] + 1, "output height");
  f.require(c.wo == (c.w + 2 * c.padding[1] - c.dilation[1] * (c.kw - 1) - 1) / c.stride[1] + 1, "output width");
  return c;
}

/// Calls body(x index, weight index, y index) for every product of the convolution.
template <class F>
void for_each_product(const Convolution& c, F body) {
  for (int64_t n = 0; n < c.n; ++n)
    for (int64_t o = 0; o < c.co; ++o)
      for (int64_t i = 0; i < c.ho; ++i)
        for (int64_t j = 0; j < c.wo; ++j)
          for (int64_t a = 0; a < c.kh; ++a)
            for (int64_t b = 0; b < c.kw; ++b) {
              const int64_t row = i * c.stride[0] - c.padding[0] + a * c.dilation[0];
              const int64_t column = j * c.stride[1] - c.padding[1] + b * c.dilation[1];
              if (row < 0 || row >= c.h || column < 0 || column >= c.w) continue;
              for (int64_t k = 0; k < c.group_inputs(); ++k) {
                const int64_t channel = o / c.group_outputs() * c.group_inputs() + k;
                body(static_cast<size_t>(((n * c.ci + channel) * c.h + row) * c.w + column),
                     static_cast<size_t>(((o * c.kh + a) * c.kw + b) * c.group_inputs() + k),
                     static_cast<size_t>(((n * c.co + o) * c.ho + i) * c.wo + j));
              }
            }
}

void conv2d(Frame& f) {
  const Convolution c = convolution(f, f.in_type(0), f.out_type(), f.in_type(1).shape);
  Array& y = f.out();
  const int64_t area = c.ho * c.wo;
  if (f.count() > 2) {
    for (size_t i = 0; i < y.data.size(); ++i) {
      y.data[i] = f.in(2).data[static_cast<size_t>(static_cast<int64_t>(i) / area % c.co)];
    }
  }
  for_each_product(c, [&](size_t x, size_t w, size_t o) { y.data[o] += f.in(0).data[x] * f.in(1).data[w]; });
  for (double& value : y.data) value = activate(f.text("activation"), value);
}

void conv2d_input_gradient(Frame& f) {
  f.require(f.integers("input") == std::vector<int64_t>(f.out_type().shape.begin(), f.out_type().shape.end()), "input");
  const Convolution c = convolution(f, f.out_type(), f.in_type(0), f.in_type(1).shape);
  for_each_product(c, [&](size_t x, size_t w, size_t y) { f.out().data[x] += f.in(0).data[y] * f.in(1).data[w]; });
}

void conv2d_weight_gradient(Frame& f) {
  const std::vector<int64_t>& kernel = f.integers("kernel");
  f.require(kernel[0] == f.out_type().shape[1] && kernel[1] == f.out_type().shape[2], "kernel");
  const Convolution c = convolution(f, f.in_type(0), f.in_type(1), f.out_type().shape);
  for_each_product(c, [&](size_t x, size_t w, size_t y) { f.out().data[w] += f.in(0).data[x] * f.in(1).data[y]; });
}

/// Calls body(x index, weight index, y index) for every product of a linear layer.
template <class F>
void for_each_product(int64_t rows, int64_t outputs, int64_t inputs, F body) {
  for (int64_t n = 0; n < rows; ++n)
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t i = 0; i < inputs; ++i) {
        body(static_cast<size_t>(n * inputs + i), static_cast<size_t>(o * inputs + i),
             static_cast<size_t>(n * outputs + o));
      }
}

void linear(Frame& f) {
  const int64_t inputs = f.in_type(0).shape[0], outputs = f.out_type().shape[0];
  f.require(f.in_type(1).shape == Shape{outputs, inputs} && f.in_type(0).shape.rank() == 1, "weight");
  Array& y = f.out();
  for_each_product(f.rows(f.in_type(0)), outputs, inputs,
                   [&](size_t x, size_t w, size_t o) { y.data[o] += f.in(0).data[x] * f.in(1).data[w]; });
  for (size_t i = 0; i < y.data.size(); ++i) {
    if (f.count() > 2) y.data[i] += f.in(2).data[i % static_cast<size_t>(outputs)];
    y.data[i] = activate(f.text("activation"), y.data[i]);
  }
}

void linear_input_gradient(Frame& f) {
  const int64_t inputs = f.out_type().shape[0], outputs = f.in_type(0).shape[0];
  f.require(f.in_type(1).shape == Shape{outputs, inputs}, "weight");
  for_each_product(f.rows(f.in_type(0)), outputs, inputs,
                   [&](size_t x, size_t w, size_t y) { f.out().data[x] += f.in(0).data[y] * f.in(1).data[w]; });
}

void linear_weight_gradient(Frame& f) {
  const int64_t inputs = f.in_type(0).shape[0], outputs = f.in_type(1).shape[0];
  f.require(f.out_type().shape == Shape{outputs, inputs}, "weight");
  for_each_product(f.rows(f.in_type(0)), outputs, inputs,
                   [&](size_t x, size_t w, size_t y) { f.out().data[w] += f.in(0).data[x] * f.in(1).data[y]; });
}

/// The channel of a flat index: the first dimension after the rows.
size_t channel_of(const graph::ValueType& type, size_t flat) {
  const Around a = around(type.shape, 0);
  return static_cast<size_t>(static_cast<int64_t>(flat) / a.inner % a.size);
}

void bias_add(Frame& f) {
  for (size_t i = 0; i < f.out().data.size(); ++i) {
    f.out().data[i] = f.in(0).data[i] + f.in(1).data[channel_of(f.in_type(0), i)];
  }
}

void channel_sum(Frame& f) {
  for (size_t i = 0; i < f.in(0).data.size(); ++i) f.out().data[channel_of(f.in_type(0), i)] += f.in(0).data[i];
}

void matmul(Frame& f) {
  const bool ta = f.flag("transpose_a"), tb = f.flag("transpose_b");
  const Shape &a = f.in_type(0).shape, &b = f.in_type(1).shape;
  f.require(a.rank() == 2 && b.rank() == 2, "matrices have rank 2");
  const int64_t m = a[ta ? 1 : 0], k = a[ta ? 0 : 1], p = b[tb ? 0 : 1], rows = f.rows(f.out_type());
  f.require(b[tb ? 1 : 0] == k && f.out_type().shape == Shape{m, p}, "sizes");
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t first_a = f.in_type(0).batched() ? r * m * k : 0, first_b = f.in_type(1).batched() ? r * k * p : 0;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < p; ++j) {
        double sum = 0;
        for (int64_t q = 0; q < k; ++q) {
          sum += f.in(0).data[static_cast<size_t>(first_a + (ta ? q * m + i : i * k + q))] *
                 f.in(1).data[static_cast<size_t>(first_b + (tb ? j * k + q : q * p + j))];
        }
        f.out().data[static_cast<size_t>((r * m + i) * p + j)] = sum;
      }
  }
}

}  // namespace

const std::vector<Rule>& layer_rules() {
  static const std::vector<Rule> rules = {
      {"conv2d", conv2d},
      {"conv2d_input_gradient", conv2d_input_gradient},
      {"conv2d_weight_gradient", conv2d_weight_gradient},
      {"linear", linear},
      {"linear_input_gradient", linear_input_gradient},
      {"linear_weight_gradient", linear_weight_gradient},
      {"bias_add", bias_add},
      {"channel_sum", channel_sum},
      {"matmul", matmul},
  };
  return rules;
}

}  // namespace brisk::oracle
