// Rows of the reductions and of the operations that move elements.
#include <limits>

#include "cases/table.h"

namespace brisk::test {
namespace {

using Axes = std::vector<int64_t>;

std::vector<OpCase> reduce_cases() {
  struct Reduction {
    std::string name;
    ValueType x;
    Axes axes;
    std::vector<int64_t> batches;
  };
  const std::vector<Reduction> reductions = {
      {"tails", b({3}), {0}, all_tails()},
      {"last", b({4, 5}), {1}, some_tails()},
      {"first", b({4, 5}), {0}, some_tails()},
      {"middle", b({3, 4, 5}), {1}, some_tails()},
      {"outer", b({3, 4, 5}), {0, 2}, few_tails()},
      {"image", b({5, 7, 3}), {1, 2}, some_tails()},
      {"all", b({3, 4, 5}), {0, 1, 2}, few_tails()},
      {"nothing", b({3, 4}), {}, few_tails()},
      {"one", b({1}), {0}, some_tails()},
      {"two_rows", b({3, 4}, 2), {1}, some_tails()},
      {"two_rows_all", b({6}, 2), {0}, few_tails()},
      {"large", b({2, 1031}), {1}, {1, 19}},
      {"pooling", b({67, 4, 4}), {1, 2}, {1, 17}},
      {"no_batch", p({7, 67}), {1}, {1}},
      {"no_batch_first", p({7, 67}), {0}, {1}},
      {"no_batch_all", p({31, 129}), {0, 1}, {1}},
      {"no_batch_one", p({1, 1}), {0, 1}, {1}},
      {"four", b({2, 3, 2, 5}), {1, 3}, few_tails()},
  };
  std::vector<OpCase> rows;
  for (const Reduction& r : reductions) {
    for (const std::string op : {"reduce_sum", "reduce_mean"}) {
      for (const bool keep : {false, true}) {
        rows.push_back({op + "_" + r.name + (keep ? "_keep" : ""),
                        op,
                        {{"axes", r.axes}, {"keep", keep}},
                        {in(r.x)},
                        r.batches,
                        kSum});
      }
    }
  }
  // Infinities in some sums, NaN in others, far apart in long ones.
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
  const Fill rare = each([=](Random&, int64_t i) { return i % 1031 != 7 ? 0.5 : i / 1031 % 3 == 1 ? kNaN : kInf; });
  for (const std::string op : {"reduce_sum", "reduce_mean"}) {
    const Attributes last = {{"axes", Axes{1}}, {"keep", false}};
    rows.push_back({op + "_special", op, last, {in(b({5, 1031}), rare)}, {1, 7}, kFunction, false});
    rows.push_back({op + "_special_no_batch", op, last, {in(p({5, 1031}), rare)}, {1}, kFunction, false});
    rows.push_back({op + "_of_equals",
                    op,
                    {{"axes", Axes{0, 1}}, {"keep", false}},
                    {in(b({131, 131}), constant(0.1))},
                    {3},
                    kSum});
    rows.push_back({op + "_of_equals_no_batch",
                    op,
                    {{"axes", Axes{0, 1}}, {"keep", false}},
                    {in(p({131, 1031}), constant(0.1))},
                    {1},
                    kSum});
  }
  return rows;
}

std::vector<OpCase> expand_cases() {
  struct Expansion {
    std::string name;
    ValueType x;
    Axes axes, shape;
    std::vector<int64_t> batches;
  };
  const std::vector<Expansion> expansions = {
      {"tails", b({}), {0}, {3}, all_tails()},
      {"last", b({4}), {1}, {4, 5}, some_tails()},
      {"first", b({5}), {0}, {4, 5}, some_tails()},
      {"image", b({5}), {1, 2}, {5, 7, 3}, some_tails()},
      {"kept", b({5, 1, 1}), {}, {5, 7, 3}, few_tails()},
      {"kept_middle", b({3, 1, 4}), {}, {3, 5, 4}, few_tails()},
      {"mixed", b({1, 4}), {1}, {3, 2, 4}, few_tails()},
      {"nothing", b({3, 4}), {}, {3, 4}, few_tails()},
      {"two_rows", b({3}, 2), {0}, {4, 3}, some_tails()},
      {"no_batch", p({7}), {1}, {7, 67}, {1}},
      {"no_batch_number", p({}), {0, 1}, {31, 129}, {1}},
      {"large", b({3}), {1}, {3, 1031}, {1, 19}},
  };
  std::vector<OpCase> rows;
  for (const Expansion& e : expansions) {
    rows.push_back(
        {"expand_" + e.name, "expand", {{"axes", e.axes}, {"shape", e.shape}}, {in(e.x)}, e.batches, kExact});
  }
  return rows;
}

std::vector<OpCase> movement_cases() {
  std::vector<OpCase> rows;
  const auto row = [&](const std::string& op, const std::string& name, Attributes attributes,
                       std::vector<CaseInput> inputs, std::vector<int64_t> batches) {
    rows.push_back({op + "_" + name, op, std::move(attributes), std::move(inputs), std::move(batches), kExact});
  };
  row("reshape", "flatten", {{"rows", int64_t{1}}, {"shape", Axes{24}}}, {in(b({2, 3, 4}))}, some_tails());
  row("reshape", "to_rows", {{"rows", int64_t{2}}, {"shape", Axes{12}}}, {in(b({2, 3, 4}))}, few_tails());
  row("reshape", "from_rows", {{"rows", int64_t{1}}, {"shape", Axes{6, 4}}}, {in(b({4}, 6))}, few_tails());
  row("reshape", "no_batch", {{"rows", int64_t{0}}, {"shape", Axes{6, 4}}}, {in(p({24}))}, {1});

  row("concat", "tails", {{"axis", int64_t{0}}}, {in(b({2})), in(b({3}))}, all_tails());
  row("concat", "channels", {{"axis", int64_t{0}}}, {in(b({2, 3, 4})), in(b({5, 3, 4})), in(b({1, 3, 4}))},
      some_tails());
  row("concat", "last", {{"axis", int64_t{2}}}, {in(b({2, 3, 4})), in(b({2, 3, 1}))}, few_tails());
  row("concat", "middle", {{"axis", int64_t{1}}}, {in(b({2, 3, 4})), in(b({2, 1, 4}))}, few_tails());
  row("concat", "one_input", {{"axis", int64_t{0}}}, {in(b({3}))}, few_tails());
  row("concat", "two_rows", {{"axis", int64_t{0}}}, {in(b({2}, 2)), in(b({3}, 2))}, some_tails());
  row("concat", "two_rows_last", {{"axis", int64_t{1}}}, {in(b({2, 3}, 2)), in(b({2, 1}, 2))}, few_tails());
  row("concat", "no_batch", {{"axis", int64_t{1}}}, {in(p({7, 3})), in(p({7, 64}))}, {1});
  row("concat", "i64", {{"axis", int64_t{0}}},
      {in(b({2}, 1, DType::i64), labels(9)), in(b({3}, 1, DType::i64), labels(9))}, some_tails());
  row("concat", "u8", {{"axis", int64_t{1}}},
      {in(b({2, 3}, 1, DType::u8), labels(256, 0)), in(b({2, 1}, 1, DType::u8), labels(256, 0))}, some_tails());
  row("concat", "large", {{"axis", int64_t{0}}}, {in(b({67, 5})), in(b({129, 5}))}, {1, 33});

  row("slice", "tails", {{"axis", int64_t{0}}, {"count", int64_t{2}}, {"first", int64_t{1}}}, {in(b({4}))},
      all_tails());
  row("slice", "middle", {{"axis", int64_t{1}}, {"count", int64_t{2}}, {"first", int64_t{3}}}, {in(b({2, 5, 3}))},
      some_tails());
  row("slice", "last", {{"axis", int64_t{2}}, {"count", int64_t{1}}, {"first", int64_t{0}}}, {in(b({2, 5, 3}))},
      few_tails());
  row("slice", "whole", {{"axis", int64_t{0}}, {"count", int64_t{4}}, {"first", int64_t{0}}}, {in(b({4, 3}))},
      few_tails());
  row("slice", "two_rows", {{"axis", int64_t{0}}, {"count", int64_t{2}}, {"first", int64_t{2}}}, {in(b({4, 3}, 2))},
      some_tails());
  row("slice", "i64", {{"axis", int64_t{0}}, {"count", int64_t{2}}, {"first", int64_t{1}}},
      {in(b({4, 3}, 1, DType::i64), labels(9))}, some_tails());
  row("slice", "no_batch", {{"axis", int64_t{1}}, {"count", int64_t{33}}, {"first", int64_t{17}}}, {in(p({7, 67}))},
      {1});

  row("pad_slice", "tails", {{"axis", int64_t{0}}, {"first", int64_t{1}}, {"size", int64_t{4}}}, {in(b({2}))},
      all_tails());
  row("pad_slice", "middle", {{"axis", int64_t{1}}, {"first", int64_t{3}}, {"size", int64_t{5}}}, {in(b({2, 2, 3}))},
      some_tails());
  row("pad_slice", "last", {{"axis", int64_t{2}}, {"first", int64_t{0}}, {"size", int64_t{3}}}, {in(b({2, 5, 1}))},
      few_tails());
  row("pad_slice", "whole", {{"axis", int64_t{0}}, {"first", int64_t{0}}, {"size", int64_t{4}}}, {in(b({4, 3}))},
      few_tails());
  row("pad_slice", "two_rows", {{"axis", int64_t{0}}, {"first", int64_t{2}}, {"size", int64_t{4}}}, {in(b({2, 3}, 2))},
      some_tails());
  row("pad_slice", "no_batch", {{"axis", int64_t{1}}, {"first", int64_t{17}}, {"size", int64_t{67}}}, {in(p({7, 33}))},
      {1});
  return rows;
}

std::vector<OpCase> maximum_cases() {
  std::vector<OpCase> rows;
  const auto row = [&](const std::string& name, ValueType x, int64_t axis, std::vector<int64_t> batches, Fill fill,
                       bool smooth) {
    ValueType y = x;
    y.shape = {};
    for (int i = 0; i < x.shape.rank(); ++i) {
      if (i != axis) y.shape.append(x.shape[i]);
    }
    ValueType index = y;
    index.dtype = DType::i32;
    const int64_t size = x.shape[static_cast<int>(axis)];
    rows.push_back({"reduce_max_" + name, "reduce_max", {{"axis", axis}}, {in(x, fill)}, batches, kExact, smooth});
    rows.push_back({"reduce_max_gradient_" + name,
                    "reduce_max_gradient",
                    {{"axis", axis}, {"size", size}},
                    {in(y), in(index, labels(size, 0))},
                    batches,
                    kExact});
  };
  row("tails", b({3}), 0, all_tails(), uniform(), true);
  row("middle", b({3, 5, 4}), 1, some_tails(), uniform(), true);
  row("last", b({3, 5}), 1, few_tails(), uniform(), true);
  row("equals", b({7, 2}), 0, some_tails(), quarters(), false);
  row("two_rows", b({4, 3}, 2), 0, some_tails(), uniform(), true);
  row("large", b({2, 1031}), 1, {1, 19}, uniform(), true);
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
  row("special", b({3}), 0, some_tails(), values({-kInf, -kInf, -kInf, 1, kNaN, kNaN, kInf, 2, kInf}), false);
  return rows;
}

std::vector<OpCase> permute_cases() {
  std::vector<OpCase> rows;
  const auto row = [&](const std::string& name, ValueType x, Axes axes, std::vector<int64_t> batches, Fill fill) {
    rows.push_back({"permute_" + name,
                    "permute",
                    {{"axes", std::move(axes)}},
                    {in(x, std::move(fill))},
                    std::move(batches),
                    kExact});
  };
  row("tails", b({2, 3}), {1, 0}, all_tails(), uniform());
  row("channels_first", b({4, 5, 3}), {2, 0, 1}, some_tails(), uniform());
  row("channels_last", b({3, 4, 5}), {1, 2, 0}, some_tails(), uniform());
  row("last_stays", b({3, 4, 5}), {1, 0, 2}, few_tails(), uniform());
  row("ends", b({3, 4, 5}), {2, 1, 0}, few_tails(), uniform());
  row("heads", b({2, 3, 4, 5}), {1, 0, 3, 2}, few_tails(), uniform());
  row("ones", b({1, 4, 1}), {2, 1, 0}, few_tails(), uniform());
  row("same", b({2, 3}), {0, 1}, few_tails(), uniform());
  row("two_rows", b({2, 3}, 2), {1, 0}, some_tails(), uniform());
  row("large", b({67, 33}), {1, 0}, {1, 19}, uniform());
  row("no_batch", p({7, 67}), {1, 0}, {1}, uniform());
  row("no_batch_last_stays", p({7, 5, 67}), {1, 0, 2}, {1}, uniform());
  row("i64", b({4, 3}, 1, DType::i64), {1, 0}, some_tails(), labels(9));
  row("i32", b({4, 3}, 1, DType::i32), {1, 0}, some_tails(), labels(9));
  row("u8", b({5, 4, 3}, 1, DType::u8), {2, 0, 1}, some_tails(), labels(256, 0));
  row("u8_no_batch", p({5, 4}, DType::u8), {1, 0}, {1}, labels(256, 0));
  return rows;
}

std::vector<OpCase> pad_cases() {
  std::vector<OpCase> rows;
  const auto row = [&](const std::string& name, ValueType x, Axes before, Axes after, double value,
                       std::vector<int64_t> batches) {
    rows.push_back({"pad_" + name,
                    "pad",
                    {{"after", std::move(after)}, {"before", std::move(before)}, {"value", value}},
                    {in(x)},
                    std::move(batches),
                    kExact});
  };
  row("tails", b({3}), {1}, {2}, 0.5, all_tails());
  row("image", b({3, 4, 5}), {1, 2}, {3, 0}, 0, some_tails());
  row("below", b({3, 4, 5}), {0, 0}, {2, 0}, -1, few_tails());
  row("left", b({4, 5}), {0, 3}, {0, 0}, 0.25, few_tails());
  row("nothing", b({4, 5}), {0, 0}, {0, 0}, 7, few_tails());
  row("two_rows", b({2, 3}, 2), {1, 1}, {1, 1}, 2, some_tails());
  row("large", b({67, 33}), {2, 2}, {2, 2}, 0, {1, 19});
  row("no_batch", p({7, 67}), {1, 2}, {0, 3}, -2, {1});
  return rows;
}

std::vector<OpCase> batch_sum_cases() {
  std::vector<OpCase> rows;
  for (const auto& [name, type, batches] :
       std::vector<std::tuple<std::string, ValueType, std::vector<int64_t>>>{{"tails", b({3}), all_tails()},
                                                                             {"number", b({}), some_tails()},
                                                                             {"image", b({5, 7, 3}), some_tails()},
                                                                             {"two_rows", b({4, 3}, 2), some_tails()},
                                                                             {"large", b({1031}), {1, 19}},
                                                                             {"large_batch", b({2}), {300, 1037}}}) {
    rows.push_back({"batch_sum_" + name, "batch_sum", {}, {in(type)}, batches, kSum});
  }
  rows.push_back({"batch_sum_of_equals", "batch_sum", {}, {in(b({3}), constant(0.1))}, {20011}, kSum});
  return rows;
}

}  // namespace

std::vector<OpCase> shape_cases() {
  std::vector<OpCase> rows = reduce_cases();
  append(rows, expand_cases());
  append(rows, batch_sum_cases());
  append(rows, movement_cases());
  append(rows, maximum_cases());
  append(rows, permute_cases());
  rows.push_back({"constant_matrix",
                  "constant",
                  {{"shape", Axes{2, 3}}, {"values", std::vector<double>{1, -2, 0.5, 1e-3, 1e30, 0}}},
                  {},
                  {1, 5},
                  {1e-7}});
  append(rows, pad_cases());
  return rows;
}

}  // namespace brisk::test
