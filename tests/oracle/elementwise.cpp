// Reference of the elementwise operations, NumPy's broadcasting included, and of dropout.
#include <algorithm>
#include <cmath>

#include "oracle/rules.h"

namespace brisk::oracle {
namespace {

double relu(double x) { return std::isnan(x) || x > 0 ? x : 0.0; }
double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Where element `flat` of row `row` of the result is found in an operand whose shape aligns from the right.
size_t broadcast_from(const Shape& result, int64_t row, int64_t flat, const graph::ValueType& operand) {
  int64_t offset = 0, stride = 1;
  const int lacking = result.rank() - operand.shape.rank();
  for (int axis = result.rank() - 1; axis >= 0; --axis) {
    const int64_t place = flat % result[axis];
    flat /= result[axis];
    if (axis < lacking) continue;
    const int64_t size = operand.shape[axis - lacking];
    if (size != 1) offset += place * stride;
    stride *= size;
  }
  return static_cast<size_t>(offset + (operand.batched() ? row * operand.shape.count() : 0));
}

template <class F>
void binary(Frame& f, F function) {
  const Shape& shape = f.out_type().shape;
  const int64_t elements = shape.count(), rows = f.rows(f.out_type());
  for (int i = 0; i < 2; ++i) {
    const graph::ValueType& type = f.in_type(i);
    f.require(!type.batched() || f.rows(type) == rows, "rows disagree");
    f.require(type.shape.rank() <= shape.rank(), "operand of a higher rank than the result");
    for (int k = 0; k < type.shape.rank(); ++k) {
      const int64_t have = type.shape[k], want = shape[shape.rank() - type.shape.rank() + k];
      f.require(have == want || have == 1, "shapes do not broadcast");
    }
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t e = 0; e < elements; ++e) {
      const double a = f.in(0).data[broadcast_from(shape, row, e, f.in_type(0))];
      const double b = f.in(1).data[broadcast_from(shape, row, e, f.in_type(1))];
      f.out().data[static_cast<size_t>(row * elements + e)] = function(a, b);
    }
  }
}

template <class F>
void unary(Frame& f, F function) {
  f.require(f.in(0).shape == f.out().shape, "shape changes");
  for (size_t i = 0; i < f.out().data.size(); ++i) f.out().data[i] = function(f.in(0).data[i]);
}

double clamp_keeping_nan(double x, double bound) { return x > bound ? bound : x < -bound ? -bound : x; }

void huber(Frame& f) {
  const double delta = f.real("delta");
  unary(f, [=](double d) { return std::fabs(d) > delta ? delta * (std::fabs(d) - 0.5 * delta) : 0.5 * d * d; });
}

/// Element e of a sample is dropped when word e % 4 of block e / 4, as a 24-bit fraction, is less than the rate.
void dropout(Frame& f) {
  const double rate = f.real("rate");
  const auto key = static_cast<uint64_t>(f.integer("stream"));
  const int64_t elements = f.in_type(0).elements();
  f.require(f.in_type(0).batched(), "must be batched");
  for (int64_t i = 0; i < f.in(0).shape.count(); ++i) {
    const int64_t sample = f.run.first_sample + i / elements, e = i % elements;
    const uint32_t word = random_word(key, static_cast<uint64_t>(f.run.attempt), static_cast<uint32_t>(sample),
                                      static_cast<uint32_t>(e / 4), static_cast<int>(e % 4));
    const bool keep = static_cast<double>(word >> 8) / 16777216.0 >= rate;
    f.out().data[static_cast<size_t>(i)] = keep && rate < 1 ? f.in(0).data[static_cast<size_t>(i)] / (1 - rate) : 0.0;
  }
}

}  // namespace

uint32_t random_word(uint64_t key, uint64_t attempt, uint32_t sample, uint32_t block, int lane) {
  uint32_t c[4] = {static_cast<uint32_t>(attempt), static_cast<uint32_t>(attempt >> 32), sample, block};
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0], p1 = uint64_t{0xCD9E8D57} * c[2];
    const uint32_t next[4] = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
                              static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    std::copy(next, next + 4, c);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c[lane];
}

double activate(const std::string& name, double x) {
  return name == "relu" ? relu(x) : name == "tanh" ? std::tanh(x) : name == "sigmoid" ? sigmoid(x) : x;
}

const std::vector<Rule>& elementwise_rules() {
  static const std::vector<Rule> rules = {
      {"add", [](Frame& f) { binary(f, [](double a, double b) { return a + b; }); }},
      {"sub", [](Frame& f) { binary(f, [](double a, double b) { return a - b; }); }},
      {"mul", [](Frame& f) { binary(f, [](double a, double b) { return a * b; }); }},
      {"div", [](Frame& f) { binary(f, [](double a, double b) { return a / b; }); }},
      {"relu", [](Frame& f) { unary(f, relu); }},
      {"tanh", [](Frame& f) { unary(f, [](double x) { return std::tanh(x); }); }},
      {"sigmoid", [](Frame& f) { unary(f, sigmoid); }},
      {"exp", [](Frame& f) { unary(f, [](double x) { return std::exp(x); }); }},
      {"log", [](Frame& f) { unary(f, [](double x) { return std::log(x); }); }},
      {"identity", [](Frame& f) { unary(f, [](double x) { return x; }); }},
      {"reciprocal", [](Frame& f) { unary(f, [k = f.real("numerator")](double x) { return k / x; }); }},
      {"scale", [](Frame& f) { unary(f, [k = f.real("factor")](double x) { return k * x; }); }},
      {"add_scalar", [](Frame& f) { unary(f, [k = f.real("value")](double x) { return x + k; }); }},
      {"relu_gradient",
       [](Frame& f) { binary(f, [](double dy, double y) { return std::isnan(y) ? y
                                                                 : y > 0       ? dy
                                                                               : 0.0; }); }},
      {"tanh_gradient", [](Frame& f) { binary(f, [](double dy, double y) { return dy * (1 - y * y); }); }},
      {"sigmoid_gradient", [](Frame& f) { binary(f, [](double dy, double y) { return dy * y * (1 - y); }); }},
      {"huber", huber},
      {"huber_gradient",
       [](Frame& f) {
         binary(f, [k = f.real("delta")](double dy, double d) { return dy * clamp_keeping_nan(d, k); });
       }},
      {"dropout", dropout},
  };
  return rules;
}

}  // namespace brisk::oracle
