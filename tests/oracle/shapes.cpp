// Reference of reductions and of the operations that move elements.
#include <algorithm>
#include <cmath>

#include "oracle/rules.h"

namespace brisk::oracle {
namespace {

bool contains(const std::vector<int64_t>& axes, int64_t axis) {
  return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

/// Where element `flat` of `shape` lands when `axes` are summed away.
int64_t reduced_index(const Shape& shape, const std::vector<int64_t>& axes, int64_t flat) {
  int64_t index = 0, stride = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    const int64_t place = flat % shape[axis];
    flat /= shape[axis];
    if (contains(axes, axis)) continue;
    index += place * stride;
    stride *= shape[axis];
  }
  return index;
}

Shape reduced_shape(const Shape& shape, const std::vector<int64_t>& axes, bool keep) {
  Shape result;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (!contains(axes, axis)) {
      result.append(shape[axis]);
    } else if (keep) {
      result.append(1);
    }
  }
  return result;
}

void reduce(Frame& f, bool mean) {
  const Shape &x = f.in_type(0).shape, &y = f.out_type().shape;
  const std::vector<int64_t>& axes = f.integers("axes");
  f.require(y == reduced_shape(x, axes, f.flag("keep")), "shape " + y.text());
  for (int64_t row = 0; row < f.rows(f.in_type(0)); ++row)
    for (int64_t e = 0; e < x.count(); ++e) {
      f.out().data[static_cast<size_t>(row * y.count() + reduced_index(x, axes, e))] +=
          f.in(0).data[static_cast<size_t>(row * x.count() + e)];
    }
  if (!mean) return;
  for (double& value : f.out().data) value *= static_cast<double>(y.count()) / static_cast<double>(x.count());
}

/// The transpose of reduce_sum: the target's elements read what they would have been added to. `axes` are those that x
/// lacks; along others it may have a single element.
void expand(Frame& f) {
  const Shape &x = f.in_type(0).shape, &y = f.out_type().shape;
  const std::vector<int64_t>& lacking = f.integers("axes");
  f.require(f.integers("shape") == std::vector<int64_t>(y.begin(), y.end()), "shape " + y.text());
  std::vector<int64_t> repeated;
  for (int axis = 0, from = 0; axis < y.rank(); ++axis) {
    if (contains(lacking, axis)) {
      repeated.push_back(axis);
    } else {
      f.require(from < x.rank() && (x[from] == y[axis] || x[from] == 1), "x is " + x.text());
      if (x[from++] == 1) repeated.push_back(axis);
    }
  }
  for (int64_t row = 0; row < f.rows(f.out_type()); ++row)
    for (int64_t e = 0; e < y.count(); ++e) {
      f.out().data[static_cast<size_t>(row * y.count() + e)] =
          f.in(0).data[static_cast<size_t>(row * x.count() + reduced_index(y, repeated, e))];
    }
}

void batch_sum(Frame& f) {
  const size_t elements = f.out().data.size();
  for (size_t i = 0; i < f.in(0).data.size(); ++i) f.out().data[i % elements] += f.in(0).data[i];
}

/// The first of the largest, or the first NaN.
void reduce_max(Frame& f) {
  const Around a = around(f.in_type(0).shape, f.integer("axis"));
  for (size_t i = 0; i < f.out().data.size(); ++i) {
    const auto line = static_cast<int64_t>(i);
    const auto at = [&](int64_t k) {
      return f.in(0).data[static_cast<size_t>((line / a.inner * a.size + k) * a.inner + line % a.inner)];
    };
    int64_t best = 0;
    for (int64_t k = 1; k < a.size && !std::isnan(at(best)); ++k) {
      if (std::isnan(at(k)) || at(k) > at(best)) best = k;
    }
    f.out(0).data[i] = at(best);
    f.out(1).data[i] = static_cast<double>(best);
  }
}

void reduce_max_gradient(Frame& f) {
  const Around a = around(f.out_type().shape, f.integer("axis"));
  for (size_t i = 0; i < f.in(0).data.size(); ++i) {
    const auto line = static_cast<int64_t>(i), best = static_cast<int64_t>(f.in(1).data[i]);
    f.out().data[static_cast<size_t>((line / a.inner * a.size + best) * a.inner + line % a.inner)] = f.in(0).data[i];
  }
}

void constant(Frame& f) {
  for (size_t i = 0; i < f.out().data.size(); ++i) f.out().data[i] = f.reals("values")[i];
}

void reshape(Frame& f) {
  f.require(f.in(0).data.size() == f.out().data.size(), "the number of elements changes");
  f.out().data = f.in(0).data;
}

/// Copies `count` places along `axis` from place `from` of `x` to place `to` of `y`.
void copy_along(const Array& x, const Around& ax, int64_t from, Array& y, const Around& ay, int64_t to, int64_t rows,
                int64_t count) {
  for (int64_t o = 0; o < rows * ax.outer; ++o)
    for (int64_t k = 0; k < count; ++k)
      for (int64_t i = 0; i < ax.inner; ++i) {
        y.data[static_cast<size_t>((o * ay.size + to + k) * ay.inner + i)] =
            x.data[static_cast<size_t>((o * ax.size + from + k) * ax.inner + i)];
      }
}

void concat(Frame& f) {
  const Around y = around(f.out_type().shape, f.integer("axis"));
  int64_t first = 0;
  for (int i = 0; i < f.count(); ++i) {
    const Around x = around(f.in_type(i).shape, f.integer("axis"));
    f.require(x.outer == y.outer && x.inner == y.inner, "sizes");
    copy_along(f.in(i), x, 0, f.out(), y, first, f.rows(f.out_type()), x.size);
    first += x.size;
  }
  f.require(first == y.size, "size along the axis");
}

void slice(Frame& f) {
  const Around x = around(f.in_type(0).shape, f.integer("axis")), y = around(f.out_type().shape, f.integer("axis"));
  f.require(y.size == f.integer("count"), "count");
  copy_along(f.in(0), x, f.integer("first"), f.out(), y, 0, f.rows(f.out_type()), y.size);
}

void pad_slice(Frame& f) {
  const Around x = around(f.in_type(0).shape, f.integer("axis")), y = around(f.out_type().shape, f.integer("axis"));
  f.require(y.size == f.integer("size"), "size");
  copy_along(f.in(0), x, 0, f.out(), y, f.integer("first"), f.rows(f.out_type()), x.size);
}

/// Calls body(index along each dimension, element) for one sample of that shape.
template <class F>
void for_each_place(const Shape& shape, F body) {
  std::vector<int64_t> place(static_cast<size_t>(shape.rank()), 0);
  for (int64_t e = 0; e < shape.count(); ++e) {
    int64_t rest = e;
    for (int axis = shape.rank() - 1; axis >= 0; rest /= shape[axis--])
      place[static_cast<size_t>(axis)] = rest % shape[axis];
    body(place, e);
  }
}

int64_t flat_index(const Shape& shape, const std::vector<int64_t>& place) {
  int64_t flat = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) flat = flat * shape[axis] + place[static_cast<size_t>(axis)];
  return flat;
}

void permute(Frame& f) {
  const Shape &x = f.in_type(0).shape, &y = f.out_type().shape;
  const std::vector<int64_t>& axes = f.integers("axes");
  for (int64_t row = 0; row < f.rows(f.in_type(0)); ++row)
    for_each_place(y, [&](const std::vector<int64_t>& place, int64_t e) {
      std::vector<int64_t> from(place.size());
      for (size_t i = 0; i < axes.size(); ++i) from[static_cast<size_t>(axes[i])] = place[i];
      f.out().data[static_cast<size_t>(row * y.count() + e)] =
          f.in(0).data[static_cast<size_t>(row * x.count() + flat_index(x, from))];
    });
}

void pad(Frame& f) {
  const Shape &x = f.in_type(0).shape, &y = f.out_type().shape;
  const std::vector<int64_t>& before = f.integers("before");
  const int first = x.rank() - static_cast<int>(before.size());
  for (double& value : f.out().data) value = f.real("value");
  for (int64_t row = 0; row < f.rows(f.in_type(0)); ++row)
    for_each_place(x, [&](std::vector<int64_t> place, int64_t e) {
      for (size_t i = 0; i < before.size(); ++i) place[static_cast<size_t>(first) + i] += before[i];
      f.out().data[static_cast<size_t>(row * y.count() + flat_index(y, place))] =
          f.in(0).data[static_cast<size_t>(row * x.count() + e)];
    });
}

}  // namespace

Around around(const Shape& shape, int64_t axis) {
  Around a;
  for (int k = 0; k < shape.rank(); ++k) (k < axis ? a.outer : k == axis ? a.size : a.inner) *= shape[k];
  return a;
}

const std::vector<Rule>& shape_rules() {
  static const std::vector<Rule> rules = {
      {"reduce_sum", [](Frame& f) { reduce(f, false); }},
      {"reduce_mean", [](Frame& f) { reduce(f, true); }},
      {"expand", expand},
      {"batch_sum", batch_sum},
      {"reduce_max", reduce_max},
      {"reduce_max_gradient", reduce_max_gradient},
      {"constant", constant},
      {"reshape", reshape},
      {"concat", concat},
      {"slice", slice},
      {"pad_slice", pad_slice},
      {"permute", permute},
      {"pad", pad},
  };
  return rules;
}

}  // namespace brisk::oracle
