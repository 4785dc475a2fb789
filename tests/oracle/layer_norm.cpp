// Reference of layer normalisation (Ba, Kiros and Hinton, 2016) and group normalisation (Wu and He, 2018).
#include <cmath>

#include "oracle/rules.h"

namespace brisk::oracle {
namespace {

/// What is normalised together lies side by side: `lines` of `size` elements; which parameter an element has.
struct Lines {
  int64_t lines = 1, size = 1;
  int64_t channels = 0;  ///< of a row; 0: each element of a line has a parameter of its own
  int64_t per_channel = 1;

  size_t parameter(int64_t line, int64_t i) const {
    return static_cast<size_t>(channels == 0 ? i : (line * size + i) / per_channel % channels);
  }
};

Lines lines_of(const Frame& f, const graph::ValueType& type) {
  Lines l;
  const bool groups = f.node.attributes.has("groups");
  const int64_t dims = groups ? 0 : f.integer("dims");
  if (groups) {
    l.channels = type.shape[0];
    l.per_channel = type.shape.count() / l.channels;
    l.size = type.shape.count() / f.integer("groups");
  } else {
    for (int i = 0; i < type.shape.rank(); ++i) {
      if (i >= type.shape.rank() - dims) l.size *= type.shape[i];
    }
  }
  l.lines = f.rows(type) * type.shape.count() / l.size;
  return l;
}

void norm(Frame& f) {
  const Lines l = lines_of(f, f.in_type(0));
  for (int64_t line = 0; line < l.lines; ++line) {
    const double* x = f.in(0).data.data() + line * l.size;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < l.size; ++i) mean += x[i] / static_cast<double>(l.size);
    for (int64_t i = 0; i < l.size; ++i) variance += (x[i] - mean) * (x[i] - mean) / static_cast<double>(l.size);
    const double inverse = 1 / std::sqrt(variance + f.real("epsilon"));
    f.out(1).data[static_cast<size_t>(line)] = mean;
    f.out(2).data[static_cast<size_t>(line)] = inverse;
    for (int64_t i = 0; i < l.size; ++i) {
      const size_t p = l.parameter(line, i);
      const double weight = f.count() > 1 ? f.in(1).data[p] : 1, bias = f.count() > 1 ? f.in(2).data[p] : 0;
      f.out().data[static_cast<size_t>(line * l.size + i)] = (x[i] - mean) * inverse * weight + bias;
    }
  }
}

void gradient(Frame& f) {
  const Lines l = lines_of(f, f.in_type(1));
  for (int64_t line = 0; line < l.lines; ++line) {
    const double* dy = f.in(0).data.data() + line * l.size;
    const double* x = f.in(1).data.data() + line * l.size;
    const double mean = f.in(2).data[static_cast<size_t>(line)], inverse = f.in(3).data[static_cast<size_t>(line)];
    const auto weight = [&](int64_t i) { return f.count() > 4 ? f.in(4).data[l.parameter(line, i)] : 1.0; };
    const auto normalised = [&](int64_t i) { return (x[i] - mean) * inverse; };
    double sum = 0, product = 0;
    for (int64_t i = 0; i < l.size; ++i) {
      sum += dy[i] * weight(i);
      product += dy[i] * weight(i) * normalised(i);
    }
    for (int64_t i = 0; i < l.size; ++i) {
      const auto size = static_cast<double>(l.size);
      f.out().data[static_cast<size_t>(line * l.size + i)] =
          inverse * (dy[i] * weight(i) - sum / size - normalised(i) * product / size);
      if (f.count() == 4) continue;
      f.out(1).data[l.parameter(line, i)] += dy[i] * normalised(i);
      f.out(2).data[l.parameter(line, i)] += dy[i];
    }
  }
}

}  // namespace

const std::vector<Rule>& layer_norm_rules() {
  static const std::vector<Rule> rules = {
      {"layer_norm", norm},
      {"layer_norm_gradient", gradient},
      {"group_norm", norm},
      {"group_norm_gradient", gradient},
  };
  return rules;
}

}  // namespace brisk::oracle
