// Reference of the one user's operation that the case table knows: y = x sigmoid(b x), b per channel.
#include <cmath>

#include "brisk/op.h"
#include "oracle/rules.h"

namespace brisk::oracle {
namespace {

void check(const Frame& f) {
  f.require(f.node.attributes.object("op").name() == "learnt_swish", "an operation of the user's without a reference");
}

/// Channel of an element of a value [N, channels, ...].
size_t channel_of(const Array& x, size_t element) {
  const int64_t area = x.shape.count() / (x.shape[0] * x.shape[1]);
  return element / static_cast<size_t>(area) % static_cast<size_t>(x.shape[1]);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void custom_op(Frame& f) {
  check(f);
  const Array &x = f.in(0), &b = f.in(1);
  for (size_t i = 0; i < x.data.size(); ++i)
    f.out().data[i] = x.data[i] * sigmoid(b.data[channel_of(x, i)] * x.data[i]);
}

void custom_op_gradient(Frame& f) {
  check(f);
  const Array &dy = f.in(0), &x = f.in(1), &b = f.in(2);
  const std::vector<int64_t>& wanted = f.integers("wanted");
  for (size_t i = 0; i < x.data.size(); ++i) {
    const size_t channel = channel_of(x, i);
    const double v = x.data[i], s = sigmoid(b.data[channel] * v);
    if (wanted[0]) f.out().data[i] = dy.data[i] * s * (1 + b.data[channel] * v * (1 - s));
    if (wanted[1]) f.out(wanted[0] ? 1 : 0).data[channel] += dy.data[i] * v * v * s * (1 - s);
  }
}

}  // namespace

const std::vector<Rule>& custom_rules() {
  static const std::vector<Rule> rules = {{"custom_op", custom_op}, {"custom_op_gradient", custom_op_gradient}};
  return rules;
}

}  // namespace brisk::oracle
