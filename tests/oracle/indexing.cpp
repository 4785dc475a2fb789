// Reference of the operations that take or give indices.
#include <algorithm>
#include <cmath>

#include "oracle/rules.h"

namespace brisk::oracle {
namespace {

/// Calls body(place among all indices, index) for those in range; the first other one is the node's fault, if `checks`.
template <class F>
void for_each_index(Frame& f, int input, int64_t choices, bool checks, F body) {
  const std::vector<double>& indices = f.in(input).data;
  const int64_t picks = f.in_type(input).shape.count();
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] >= 0 && indices[i] < static_cast<double>(choices)) {
      body(static_cast<int64_t>(i), static_cast<int64_t>(indices[i]));
    } else if (checks && f.fault.kind == Fault::none) {
      f.fault = {Fault::label, f.index, static_cast<int64_t>(i) / picks, static_cast<int64_t>(indices[i])};
    }
  }
}

void gather(Frame& f) {
  const int64_t choices = f.in_type(0).shape[0], picks = f.in_type(1).shape.count();
  for_each_index(f, 1, choices, true, [&](int64_t i, int64_t index) {
    f.out().data[static_cast<size_t>(i)] = f.in(0).data[static_cast<size_t>(i / picks * choices + index)];
  });
}

void gather_gradient(Frame& f) {
  const int64_t choices = f.integer("classes"), picks = f.in_type(1).shape.count();
  for_each_index(f, 1, choices, false, [&](int64_t i, int64_t index) {
    f.out().data[static_cast<size_t>(i / picks * choices + index)] += f.in(0).data[static_cast<size_t>(i)];
  });
}

/// The first of the largest, or the first NaN.
void argmax(Frame& f) {
  const Shape& shape = f.in_type(0).shape;
  const int64_t choices = shape[shape.rank() - 1];
  for (size_t i = 0; i < f.out().data.size(); ++i) {
    const double* x = f.in(0).data.data() + static_cast<int64_t>(i) * choices;
    const double* best = std::find_if(x, x + choices, [](double value) { return std::isnan(value); });
    f.out().data[i] = static_cast<double>((best == x + choices ? std::max_element(x, x + choices) : best) - x);
  }
}

void one_hot(Frame& f) {
  const int64_t choices = f.integer("classes");
  for_each_index(f, 0, choices, true,
                 [&](int64_t i, int64_t index) { f.out().data[static_cast<size_t>(i * choices + index)] = 1; });
}

void embedding(Frame& f) {
  const int64_t choices = f.in_type(0).shape[0], features = f.in_type(0).shape[1];
  for_each_index(f, 1, choices, true, [&](int64_t i, int64_t index) {
    std::copy_n(f.in(0).data.begin() + index * features, features, f.out().data.begin() + i * features);
  });
}

void embedding_gradient(Frame& f) {
  const int64_t choices = f.integer("count"), features = f.out_type().shape[1];
  for_each_index(f, 1, choices, false, [&](int64_t i, int64_t index) {
    for (int64_t k = 0; k < features; ++k) {
      f.out().data[static_cast<size_t>(index * features + k)] += f.in(0).data[static_cast<size_t>(i * features + k)];
    }
  });
}

}  // namespace

const std::vector<Rule>& indexing_rules() {
  static const std::vector<Rule> rules = {
      {"gather", gather},       {"gather_gradient", gather_gradient},       {"argmax", argmax}, {"one_hot", one_hot},
      {"embedding", embedding}, {"embedding_gradient", embedding_gradient},
  };
  return rules;
}

}  // namespace brisk::oracle
