// Reference of pooling and resizing.
#include <algorithm>
#include <cmath>
#include <utility>

#include "oracle/rules.h"

namespace brisk::oracle {
namespace {

struct Pooling {
  int64_t planes, h, w, ho, wo;  // planes = rows x channels
  int64_t kernel[2], stride[2], padding[2];
};

Pooling pooling(const Frame& f, const graph::ValueType& x, const graph::ValueType& y) {
  Pooling p{};
  p.planes = f.rows(x) * x.shape[0];
  p.h = x.shape[1], p.w = x.shape[2], p.ho = y.shape[1], p.wo = y.shape[2];
  for (size_t i = 0; i < 2; ++i) {
    p.kernel[i] = f.integers("kernel")[i];
    p.stride[i] = f.integers("stride")[i];
    p.padding[i] = f.integers("padding")[i];
  }
  f.require(x.shape[0] == y.shape[0] && f.rows(x) == f.rows(y), "channels or rows");
  f.require(p.ho == (p.h + 2 * p.padding[0] - p.kernel[0]) / p.stride[0] + 1, "output height");
  f.require(p.wo == (p.w + 2 * p.padding[1] - p.kernel[1]) / p.stride[1] + 1, "output width");
  return p;
}

/// Calls body(output index, plane, row x W + column) for every element of every window, padding left out.
template <class F>
void for_each_element(const Pooling& p, F body) {
  for (int64_t plane = 0; plane < p.planes; ++plane)
    for (int64_t i = 0; i < p.ho; ++i)
      for (int64_t j = 0; j < p.wo; ++j)
        for (int64_t a = 0; a < p.kernel[0]; ++a)
          for (int64_t b = 0; b < p.kernel[1]; ++b) {
            const int64_t row = i * p.stride[0] - p.padding[0] + a, column = j * p.stride[1] - p.padding[1] + b;
            if (row < 0 || row >= p.h || column < 0 || column >= p.w) continue;
            body(static_cast<size_t>((plane * p.ho + i) * p.wo + j), plane, row * p.w + column);
          }
}

/// The first NaN of a window wins, else the first maximum.
void max_pool2d(Frame& f) {
  const Pooling p = pooling(f, f.in_type(0), f.out_type());
  std::vector<bool> begun(f.out().data.size());
  for_each_element(p, [&](size_t y, int64_t plane, int64_t at) {
    const double x = f.in(0).data[static_cast<size_t>(plane * p.h * p.w + at)];
    double& best = f.out().data[y];
    if (begun[y] && (std::isnan(best) || !(x > best || std::isnan(x)))) return;
    begun[y] = true;
    best = x;
    f.out(1).data[y] = static_cast<double>(at);
  });
}

void max_pool2d_gradient(Frame& f) {
  const Pooling p = pooling(f, f.out_type(), f.in_type(0));
  const int64_t outputs = p.ho * p.wo;
  for (size_t y = 0; y < f.in(0).data.size(); ++y) {
    const int64_t plane = static_cast<int64_t>(y) / outputs;
    f.out().data[static_cast<size_t>(plane * p.h * p.w + static_cast<int64_t>(f.in(1).data[y]))] += f.in(0).data[y];
  }
}

/// The divisor counts padding, as PyTorch's default does.
void avg_pool2d(Frame& f) {
  const Pooling p = pooling(f, f.in_type(0), f.out_type());
  const double share = 1.0 / static_cast<double>(p.kernel[0] * p.kernel[1]);
  for_each_element(p, [&](size_t y, int64_t plane, int64_t at) {
    f.out().data[y] += share * f.in(0).data[static_cast<size_t>(plane * p.h * p.w + at)];
  });
}

void avg_pool2d_gradient(Frame& f) {
  const Pooling p = pooling(f, f.out_type(), f.in_type(0));
  const double share = 1.0 / static_cast<double>(p.kernel[0] * p.kernel[1]);
  for_each_element(p, [&](size_t y, int64_t plane, int64_t at) {
    f.out().data[static_cast<size_t>(plane * p.h * p.w + at)] += share * f.in(0).data[y];
  });
}

/// The two pixels that output i lies between, and the share of the second. Nearest: twice the same.
struct Between {
  int64_t first, second;
  double share;
};

Between between(const Frame& f, int64_t i, size_t axis, int64_t size) {
  const double step = f.reals("step")[axis], at = static_cast<double>(i);
  if (f.text("mode") == "nearest") {  // PyTorch computes in float
    const auto pixel = static_cast<int64_t>(std::floor(static_cast<float>(i) * static_cast<float>(step)));
    return {std::min(pixel, size - 1), std::min(pixel, size - 1), 0};
  }
  const double position = f.flag("aligned") ? at * step : std::max(0.0, (at + 0.5) * step - 0.5);
  const int64_t first = std::min(static_cast<int64_t>(position), size - 1);
  return {first, std::min(first + 1, size - 1), position - static_cast<double>(first)};
}

/// Calls body(x index, y index, weight) for the four pixels that each output is made of.
template <class F>
void for_each_weight(const Frame& f, const graph::ValueType& x, const graph::ValueType& y, F body) {
  const int64_t h = x.shape[1], w = x.shape[2], ho = y.shape[1], wo = y.shape[2];
  f.require(f.integers("size") == std::vector<int64_t>{ho, wo} && x.shape[0] == y.shape[0], "size");
  for (int64_t plane = 0; plane < f.rows(x) * x.shape[0]; ++plane)
    for (int64_t i = 0; i < ho; ++i)
      for (int64_t j = 0; j < wo; ++j) {
        const Between row = between(f, i, 0, h), column = between(f, j, 1, w);
        for (const auto& [r, a] : {std::pair(row.first, 1 - row.share), {row.second, row.share}})
          for (const auto& [c, b] : {std::pair(column.first, 1 - column.share), {column.second, column.share}})
            body(static_cast<size_t>((plane * h + r) * w + c), static_cast<size_t>((plane * ho + i) * wo + j), a * b);
      }
}

void resize2d(Frame& f) {
  for_each_weight(f, f.in_type(0), f.out_type(),
                  [&](size_t x, size_t y, double weight) { f.out().data[y] += weight * f.in(0).data[x]; });
}

void resize2d_gradient(Frame& f) {
  for_each_weight(f, f.out_type(), f.in_type(0),
                  [&](size_t x, size_t y, double weight) { f.out().data[x] += weight * f.in(0).data[y]; });
}

}  // namespace

const std::vector<Rule>& pool_rules() {
  static const std::vector<Rule> rules = {
      {"max_pool2d", max_pool2d}, {"max_pool2d_gradient", max_pool2d_gradient},
      {"avg_pool2d", avg_pool2d}, {"avg_pool2d_gradient", avg_pool2d_gradient},
      {"resize2d", resize2d},     {"resize2d_gradient", resize2d_gradient},
  };
  return rules;
}

}  // namespace brisk::oracle
