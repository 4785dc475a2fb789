// Reference of the elementwise operations, NumPy's broadcasting included, of element types and of dropout.
#include <algorithm>
#include <cmath>

#include "oracle/low_floats.h"
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

/// function(elements of all inputs) for each element of the result.
template <class F>
void broadcast(Frame& f, F function) {
  const Shape& shape = f.out_type().shape;
  const int64_t elements = shape.count(), rows = f.rows(f.out_type());
  for (int i = 0; i < f.count(); ++i) {
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
      const auto x = [&](int i) { return f.in(i).data[broadcast_from(shape, row, e, f.in_type(i))]; };
      f.out().data[static_cast<size_t>(row * elements + e)] = function(x);
    }
  }
}

template <class F>
void binary(Frame& f, F function) {
  f.require(f.count() == 2, "needs two inputs");
  broadcast(f, [&](const auto& x) { return function(x(0), x(1)); });
}

template <class F>
void ternary(Frame& f, F function) {
  f.require(f.count() == 3, "needs three inputs");
  broadcast(f, [&](const auto& x) { return function(x(0), x(1), x(2)); });
}

template <class F>
void unary(Frame& f, F function) {
  f.require(f.in(0).shape == f.out().shape, "shape changes");
  for (size_t i = 0; i < f.out().data.size(); ++i) f.out().data[i] = function(f.in(0).data[i]);
}

double normal_below(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }
double normal_density(double x) { return std::exp(-0.5 * x * x) / std::sqrt(8 * std::atan(1.0)); }
double gelu_argument(double x) { return std::sqrt(2 / std::atan(1.0)) * (x + 0.044715 * x * x * x); }

// Functions like x above and 0 below: at the infinities their limits.
double gelu(double x) { return std::isinf(x) ? relu(x) : x * normal_below(x); }
double gelu_tanh(double x) { return std::isinf(x) ? relu(x) : x * sigmoid(gelu_argument(x)); }
double silu(double x) { return std::isinf(x) ? relu(x) : x * sigmoid(x); }
double softplus(double x) { return relu(x) + std::log1p(std::exp(-std::fabs(x))); }
double step(double x) { return x > 0 ? 1 : 0; }
double gelu_slope(double x) { return std::isinf(x) ? step(x) : normal_below(x) + x * normal_density(x); }
double silu_slope(double x) { return std::isinf(x) ? step(x) : sigmoid(x) * (1 + x * sigmoid(-x)); }
double gelu_tanh_slope(double x) {
  if (std::fabs(x) > 50) return step(x);
  const double z = gelu_argument(x), slope = std::sqrt(2 / std::atan(1.0)) * (1 + 3 * 0.044715 * x * x);
  return sigmoid(z) * (1 + x * slope * sigmoid(-z));
}

double minimum(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double maximum(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double sign(double x) { return std::isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0; }

void clamp(Frame& f) {
  unary(f, [low = f.real("low"), high = f.real("high")](double x) { return x < low ? low : x > high ? high : x; });
}

bool holds(const std::string& relation, double a, double b) {
  if (relation == "less") return a < b;
  if (relation == "less_equal") return a <= b;
  if (relation == "greater") return a > b;
  if (relation == "greater_equal") return a >= b;
  return relation == "equal" ? a == b : a != b;
}

double limited(double x, double low, double high) { return std::isnan(x) ? 0 : std::min(std::max(x, low), high); }

/// Integers that a double holds exactly.
double converted(double x, DType from, DType to) {
  const bool cut = from == DType::f32;
  switch (to) {
    case DType::f32:
      return static_cast<double>(static_cast<float>(x));
    case DType::f16:
    case DType::bf16:
      return rounded_to(to, x);
    case DType::u8:
      return cut ? std::trunc(limited(x, 0, 255)) : static_cast<double>(static_cast<uint8_t>(static_cast<int64_t>(x)));
    case DType::i32:
      return cut ? std::trunc(limited(x, INT32_MIN, INT32_MAX))
                 : static_cast<double>(static_cast<int32_t>(static_cast<int64_t>(x)));
    default:
      return cut ? std::trunc(limited(x, -0x1p63, 0x1p63)) : x;
  }
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
  if (name == "relu") return relu(x);
  if (name == "tanh") return std::tanh(x);
  if (name == "sigmoid") return sigmoid(x);
  return name == "silu" ? x * sigmoid(x) : x;
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
      {"minimum", [](Frame& f) { binary(f, minimum); }},
      {"maximum", [](Frame& f) { binary(f, maximum); }},
      {"leaky_relu", [](Frame& f) { unary(f, [k = f.real("slope")](double x) { return x > 0 ? x : k * x; }); }},
      {"elu", [](Frame& f) { unary(f, [k = f.real("alpha")](double x) { return x > 0 ? x : k * std::expm1(x); }); }},
      {"gelu", [](Frame& f) { unary(f, gelu); }},
      {"gelu_tanh", [](Frame& f) { unary(f, gelu_tanh); }},
      {"silu", [](Frame& f) { unary(f, silu); }},
      {"softplus", [](Frame& f) { unary(f, softplus); }},
      {"sqrt", [](Frame& f) { unary(f, [](double x) { return std::sqrt(x); }); }},
      {"abs", [](Frame& f) { unary(f, [](double x) { return std::fabs(x); }); }},
      {"pow", [](Frame& f) { unary(f, [p = f.real("exponent")](double x) { return std::pow(x, p); }); }},
      {"clamp", clamp},
      {"compare",
       [](Frame& f) { binary(f, [&](double a, double b) { return holds(f.text("relation"), a, b) ? 1.0 : 0.0; }); }},
      {"compare_scalar",
       [](Frame& f) { unary(f, [&](double x) { return holds(f.text("relation"), x, f.real("value")) ? 1.0 : 0.0; }); }},
      {"where", [](Frame& f) { ternary(f, [](double c, double a, double b) { return c != 0 ? a : b; }); }},
      {"where_gradient",
       [](Frame& f) {
         binary(f, [chosen = f.flag("chosen")](double c, double dy) { return (c != 0) == chosen ? dy : 0.0; });
       }},
      {"cast",
       [](Frame& f) { unary(f, [&](double x) { return converted(x, f.in_type(0).dtype, f.out_type().dtype); }); }},
      {"stop_gradient", [](Frame& f) { unary(f, [](double x) { return x; }); }},
      {"minimum_gradient",
       [](Frame& f) { ternary(f, [](double dy, double a, double b) { return b < a    ? 0.0
                                                                            : a == b ? dy / 2
                                                                                     : dy; }); }},
      {"maximum_gradient",
       [](Frame& f) { ternary(f, [](double dy, double a, double b) { return b > a    ? 0.0
                                                                            : a == b ? dy / 2
                                                                                     : dy; }); }},
      {"relu_gradient",
       [](Frame& f) { binary(f, [](double dy, double y) { return std::isnan(y) ? y
                                                                 : y > 0       ? dy
                                                                               : 0.0; }); }},
      {"leaky_relu_gradient",
       [](Frame& f) {
         binary(f, [k = f.real("slope")](double dy, double y) { return std::isnan(y) ? y : y > 0 ? dy : k * dy; });
       }},
      {"elu_gradient",
       [](Frame& f) { binary(f, [k = f.real("alpha")](double dy, double y) { return y > 0 ? dy : dy * (y + k); }); }},
      {"gelu_gradient", [](Frame& f) { binary(f, [](double dy, double x) { return dy * gelu_slope(x); }); }},
      {"gelu_tanh_gradient", [](Frame& f) { binary(f, [](double dy, double x) { return dy * gelu_tanh_slope(x); }); }},
      {"silu_gradient", [](Frame& f) { binary(f, [](double dy, double x) { return dy * silu_slope(x); }); }},
      {"tanh_gradient", [](Frame& f) { binary(f, [](double dy, double y) { return dy * (1 - y * y); }); }},
      {"sigmoid_gradient", [](Frame& f) { binary(f, [](double dy, double y) { return dy * y * (1 - y); }); }},
      {"abs_gradient", [](Frame& f) { binary(f, [](double dy, double x) { return dy * sign(x); }); }},
      {"clamp_gradient",
       [](Frame& f) {
         binary(f, [low = f.real("low"), high = f.real("high")](double dy, double x) {
           return std::isnan(x) ? x : low < x && x < high ? dy : 0.0;
         });
       }},
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
