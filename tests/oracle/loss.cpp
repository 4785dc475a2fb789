// Reference of the classification losses and of accuracy.
#include <cmath>

#include "oracle/rules.h"

namespace brisk::oracle {
namespace {

/// The target of one row: a weight for each class (smoothed), and the row's weight in the mean.
struct Target {
  bool valid = false;  // neither ignored nor out of range
  double weight = 0;
  std::vector<double> classes;
  double sum() const {
    double total = 0;
    for (const double t : classes) total += t;
    return total;
  }
};

/// Calls body(row, target) for each row. A label outside the classes is the node's fault.
template <class F>
void for_each_target(Frame& f, const Array& labels, int64_t classes, F body) {
  const std::vector<double>& weights = f.reals("class_weights");
  const double smoothing = f.real("label_smoothing");
  for (int64_t row = 0; row < labels.shape.count(); ++row) {
    const double label = labels.data[static_cast<size_t>(row)];
    Target target;
    target.classes.assign(static_cast<size_t>(classes), 0.0);
    if (label != static_cast<double>(f.integer("ignore_index"))) {
      target.valid = label >= 0 && label < static_cast<double>(classes);
      if (!target.valid && f.fault.kind == Fault::none) {
        f.fault = {Fault::label, f.index, row, static_cast<int64_t>(label)};
      }
    }
    if (target.valid) {
      for (int64_t c = 0; c < classes; ++c) {
        const double w = weights.empty() ? 1.0 : weights[static_cast<size_t>(c)];
        const bool chosen = static_cast<double>(c) == label;
        target.classes[static_cast<size_t>(c)] =
            w * (smoothing / static_cast<double>(classes) + (chosen ? 1 - smoothing : 0));
        if (chosen) target.weight = w;
      }
    }
    body(row, target);
  }
}

void negative_log_likelihood(Frame& f) {
  const int64_t classes = f.in_type(0).shape[0];
  for_each_target(f, f.in(1), classes, [&](int64_t row, const Target& target) {
    double loss = 0;
    for (int64_t c = 0; c < classes; ++c) {
      const double t = target.classes[static_cast<size_t>(c)];
      if (t != 0) loss -= t * f.in(0).data[static_cast<size_t>(row * classes + c)];
    }
    f.out(0).data[static_cast<size_t>(row)] = loss;
    f.out(1).data[static_cast<size_t>(row)] = target.weight;
  });
}

void negative_log_likelihood_gradient(Frame& f) {
  const int64_t classes = f.out_type().shape[0];
  f.require(f.integer("classes") == classes, "classes");
  for_each_target(f, f.in(1), classes, [&](int64_t row, const Target& target) {
    for (int64_t c = 0; c < classes; ++c) {
      f.out().data[static_cast<size_t>(row * classes + c)] =
          -f.in(0).data[static_cast<size_t>(row)] * target.classes[static_cast<size_t>(c)];
    }
  });
}

void softmax_cross_entropy(Frame& f) {
  const int64_t classes = f.in_type(0).shape[0];
  for_each_target(f, f.in(1), classes, [&](int64_t row, const Target& target) {
    const double* x = f.in(0).data.data() + row * classes;
    double maximum = x[0], sum = 0, loss = 0;
    for (int64_t c = 1; c < classes; ++c) maximum = std::isnan(maximum) || x[c] <= maximum ? maximum : x[c];
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(x[c] - maximum);
    for (int64_t c = 0; c < classes; ++c) {
      const double t = target.classes[static_cast<size_t>(c)];
      if (t != 0) loss -= t * (x[c] - maximum - std::log(sum));
      f.out(2).data[static_cast<size_t>(row * classes + c)] = std::exp(x[c] - maximum) / sum;
    }
    f.out(0).data[static_cast<size_t>(row)] = loss;
    f.out(1).data[static_cast<size_t>(row)] = target.weight;
  });
}

void softmax_cross_entropy_gradient(Frame& f) {
  const int64_t classes = f.in_type(2).shape[0];
  for_each_target(f, f.in(1), classes, [&](int64_t row, const Target& target) {
    for (int64_t c = 0; c < classes; ++c) {
      const auto at = static_cast<size_t>(row * classes + c);
      const double difference = target.sum() * f.in(2).data[at] - target.classes[static_cast<size_t>(c)];
      f.out().data[at] = target.valid ? f.in(0).data[static_cast<size_t>(row)] * difference : 0.0;
    }
  });
}

/// A row counts as correct when the first of its largest logits is the label's; with a NaN in it, never.
void accuracy(Frame& f) {
  const int64_t classes = f.in_type(0).shape[0];
  for (int64_t row = 0; row < f.rows(f.in_type(0)); ++row) {
    const double label = f.in(1).data[static_cast<size_t>(row)];
    if (label == static_cast<double>(f.integer("ignore_index"))) continue;
    const double* x = f.in(0).data.data() + row * classes;
    int64_t best = 0;
    bool nan = false;
    for (int64_t c = 0; c < classes; ++c) {
      nan = nan || std::isnan(x[c]);
      if (x[c] > x[best]) best = c;
    }
    f.out(0).data[static_cast<size_t>(row)] = !nan && static_cast<double>(best) == label ? 1.0 : 0.0;
    f.out(1).data[static_cast<size_t>(row)] = 1.0;
  }
}

}  // namespace

const std::vector<Rule>& loss_rules() {
  static const std::vector<Rule> rules = {
      {"negative_log_likelihood", negative_log_likelihood},
      {"negative_log_likelihood_gradient", negative_log_likelihood_gradient},
      {"softmax_cross_entropy", softmax_cross_entropy},
      {"softmax_cross_entropy_gradient", softmax_cross_entropy_gradient},
      {"accuracy", accuracy},
  };
  return rules;
}

}  // namespace brisk::oracle
