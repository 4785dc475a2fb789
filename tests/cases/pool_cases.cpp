// Rows of pooling and resizing.
#include <limits>

#include "cases/table.h"

namespace brisk::test {
namespace {

struct Pooling {
  std::string name;
  int64_t channels, height, width;
  std::vector<int64_t> kernel, stride, padding = {0, 0};
  std::vector<int64_t> batches = few_tails();
  int64_t rows = 1;

  ValueType input() const { return b({channels, height, width}, rows); }
  ValueType output(DType dtype = DType::f32) const { return b({channels, out(height, 0), out(width, 1)}, rows, dtype); }
  Attributes attributes() const { return {{"kernel", kernel}, {"stride", stride}, {"padding", padding}}; }
  Attributes with_input() const {
    Attributes a = attributes();
    a.set("input", std::vector<int64_t>{channels, height, width});
    return a;
  }

 private:
  int64_t out(int64_t size, size_t i) const { return (size + 2 * padding[i] - kernel[i]) / stride[i] + 1; }
};

std::vector<Pooling> poolings() {
  return {
      {"tails", 2, 2, 4, {2, 2}, {2, 2}, {0, 0}, all_tails()},
      {"one", 1, 1, 1, {1, 1}, {1, 1}, {0, 0}, some_tails()},
      {"2x2", 5, 8, 6, {2, 2}, {2, 2}, {0, 0}, some_tails()},
      {"2x2_odd", 3, 7, 9, {2, 2}, {2, 2}, {0, 0}, some_tails()},
      {"lenet", 20, 24, 24, {2, 2}, {2, 2}, {0, 0}, {1, 4, 17}},
      {"3x3_stride2", 3, 9, 7, {3, 3}, {2, 2}, {1, 1}, some_tails()},
      {"3x3_stride1", 3, 5, 6, {3, 3}, {1, 1}, {1, 1}},
      {"3x3_stride3", 2, 10, 11, {3, 3}, {3, 3}},
      {"not_square", 3, 7, 8, {2, 3}, {3, 2}, {1, 0}},
      {"overlapping", 2, 6, 7, {4, 3}, {1, 2}, {2, 1}},
      {"gaps", 2, 9, 8, {2, 2}, {3, 4}},
      {"whole_image", 5, 6, 7, {6, 7}, {1, 1}},
      {"2x2_padding", 3, 4, 5, {2, 2}, {2, 2}, {1, 1}},
      {"5x5", 2, 9, 9, {5, 5}, {2, 2}, {2, 2}},
      {"two_rows", 3, 5, 6, {2, 2}, {2, 2}, {0, 0}, some_tails(), 2},
      {"many_channels", 67, 4, 4, {2, 2}, {2, 2}, {0, 0}, {1, 17}},
  };
}

/// The choices of a max-pool over quarters: what the gradient's index input really holds.
Fill chosen(const Pooling& p) {
  return [p](const OpCase&, int64_t count, Random& random) {
    NodeCase forward{"max_pool2d", p.attributes(), {}, count / p.output().elements()};
    const int64_t elements = forward.samples * p.input().elements();
    std::vector<double> x;
    for (int64_t i = 0; i < elements; ++i) x.push_back(static_cast<double>(random.below(17)) / 4);
    forward.inputs.push_back({p.input(), x});
    return expected(forward)[1].data;
  };
}

std::vector<OpCase> resize_cases() {
  struct Resize {
    std::string name;
    int64_t height, width, out_height, out_width;
    std::vector<int64_t> batches = few_tails();
    int64_t rows = 1;
  };
  const std::vector<Resize> sizes = {
      {"twofold", 3, 5, 6, 10, some_tails()},
      {"half", 8, 6, 4, 3},
      {"odd", 5, 7, 8, 3},
      {"one_pixel", 1, 1, 4, 3},
      {"to_one", 7, 4, 1, 1},
      {"same", 4, 5, 4, 5},
      {"large", 9, 14, 31, 45, {1, 17}},
      {"reduced", 29, 31, 4, 5},
      {"two_rows", 3, 4, 5, 6, few_tails(), 2},
  };
  std::vector<OpCase> rows;
  for (const Resize& r : sizes) {
    for (const std::string mode : {"nearest", "bilinear", "aligned"}) {
      const bool aligned = mode == "aligned";
      std::vector<double> step;
      for (const auto& [from, to] : {std::pair(r.height, r.out_height), {r.width, r.out_width}}) {
        const double one = aligned ? 1 : 0, many = static_cast<double>(to) - one;
        step.push_back(many > 0 ? (static_cast<double>(from) - one) / many : 0);
      }
      Attributes attributes = {{"aligned", aligned},
                               {"mode", aligned ? "bilinear" : mode},
                               {"size", std::vector<int64_t>{r.out_height, r.out_width}},
                               {"step", step}};
      const ValueType x = b({3, r.height, r.width}, r.rows), y = b({3, r.out_height, r.out_width}, r.rows);
      const std::string name = mode + "_" + r.name;
      rows.push_back({"resize2d_" + name, "resize2d", attributes, {in(x)}, r.batches, kSum});
      attributes.set("input", std::vector<int64_t>{3, r.height, r.width});
      rows.push_back({"resize2d_gradient_" + name, "resize2d_gradient", attributes, {in(y)}, r.batches, kSum});
    }
  }
  return rows;
}

}  // namespace

std::vector<OpCase> pool_cases() {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
  const Fill special = values({kNaN, 1, -kInf, -kInf, -kInf, -2, 3, kInf, -kInf, -kInf, -kInf, -kInf, 0});
  std::vector<OpCase> rows;
  for (const Pooling& p : poolings()) {
    rows.push_back({"max_pool2d_" + p.name, "max_pool2d", p.attributes(), {in(p.input())}, p.batches, kExact});
    rows.push_back({"max_pool2d_ties_" + p.name,
                    "max_pool2d",
                    p.attributes(),
                    {in(p.input(), quarters())},
                    few_tails(),
                    kExact,
                    false});
    rows.push_back({"max_pool2d_special_" + p.name,
                    "max_pool2d",
                    p.attributes(),
                    {in(p.input(), special)},
                    few_tails(),
                    kExact,
                    false});
    rows.push_back({"max_pool2d_gradient_" + p.name,
                    "max_pool2d_gradient",
                    p.with_input(),
                    {in(p.output()), in(p.output(DType::i32), chosen(p))},
                    p.batches,
                    {1e-6, Measure::magnitude}});
    rows.push_back({"avg_pool2d_" + p.name, "avg_pool2d", p.attributes(), {in(p.input())}, p.batches, kSum});
    rows.push_back(
        {"avg_pool2d_gradient_" + p.name, "avg_pool2d_gradient", p.with_input(), {in(p.output())}, p.batches, kSum});
  }
  append(rows, resize_cases());
  return rows;
}

}  // namespace brisk::test
