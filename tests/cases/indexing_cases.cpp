// Rows of the operations that take or give indices.
#include <limits>

#include "cases/table.h"

namespace brisk::test {
namespace {

/// Indices below `choices`, many of them repeated.
Fill indices(int64_t choices) {
  return each([=](Random& random, int64_t) { return static_cast<double>(random.below(choices)); });
}
/// The same with some that no choice has; the first is reported.
Fill bad_indices(int64_t choices) {
  return each([=](Random& random, int64_t i) {
    return i % 7 == 5 ? (i % 2 == 0 ? -1.0 : static_cast<double>(choices)) : static_cast<double>(random.below(choices));
  });
}

struct Pick {
  std::string name;
  int64_t choices;
  Shape index;
  std::vector<int64_t> batches;
  int64_t rows = 1;
};

std::vector<OpCase> gather_cases() {
  std::vector<OpCase> rows;
  for (const Pick& p : {Pick{"tails", 3, {}, all_tails()}, Pick{"several", 5, {4}, some_tails()},
                        Pick{"one_choice", 1, {3}, few_tails()}, Pick{"two_rows", 4, {2}, some_tails(), 2},
                        Pick{"two_rows_number", 6, {}, some_tails(), 2}, Pick{"many", 1031, {3}, {1, 17}}}) {
    const ValueType x = b({p.choices}, p.rows), index = b(p.index, p.rows, DType::i64), y = b(p.index, p.rows);
    rows.push_back({"gather_" + p.name, "gather", {}, {in(x), in(index, indices(p.choices))}, p.batches, kExact});
    rows.push_back({"gather_gradient_" + p.name,
                    "gather_gradient",
                    {{"classes", p.choices}},
                    {in(y), in(index, indices(p.choices))},
                    p.batches,
                    kSum});
  }
  rows.push_back(
      {"gather_bad", "gather", {}, {in(b({3})), in(b({2}, 1, DType::i64), bad_indices(3))}, {3, 18}, kExact, false});
  return rows;
}

std::vector<OpCase> argmax_cases() {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();
  std::vector<OpCase> rows;
  const auto row = [&](const std::string& name, ValueType x, Fill fill, std::vector<int64_t> batches) {
    rows.push_back({"argmax_" + name, "argmax", {}, {in(x, std::move(fill))}, std::move(batches), kExact, false});
  };
  row("tails", b({3}), uniform(), all_tails());
  row("equals", b({7}), quarters(), some_tails());
  row("lines", b({4, 5}), quarters(), some_tails());
  row("two_rows", b({3, 6}, 2), uniform(), some_tails());
  row("one", b({1}), uniform(), few_tails());
  row("many", b({1031}), uniform(), {1, 17});
  row("special", b({4}), values({-kInf, -kInf, -kInf, -kInf, 1, kNaN, 2, kNaN, kInf, 3, kInf, 1, kNaN, kInf, 1}),
      some_tails());
  return rows;
}

std::vector<OpCase> embedding_cases() {
  std::vector<OpCase> rows;
  struct Table {
    Pick pick;
    int64_t features;
  };
  for (const auto& [p, features] :
       {Table{{"tails", 5, {}, all_tails()}, 3}, Table{{"words", 7, {4}, some_tails()}, 17},
        Table{{"image", 4, {2, 3}, few_tails()}, 5}, Table{{"two_rows", 6, {2}, some_tails(), 2}, 33},
        Table{{"number", 3, {}, few_tails()}, 1}, Table{{"large", 301, {9}, {1, 19}}, 67}}) {
    const ValueType index = b(p.index, p.rows, DType::i64);
    Shape y = p.index;
    y.append(features);
    rows.push_back({"embedding_" + p.name,
                    "embedding",
                    {},
                    {in(brisk::test::p({p.choices, features})), in(index, indices(p.choices))},
                    p.batches,
                    kExact});
    rows.push_back({"embedding_gradient_" + p.name,
                    "embedding_gradient",
                    {{"count", p.choices}},
                    {in(b(y, p.rows)), in(index, indices(p.choices))},
                    p.batches,
                    kSum});
    rows.push_back(
        {"one_hot_" + p.name, "one_hot", {{"classes", p.choices}}, {in(index, indices(p.choices))}, p.batches, kExact});
  }
  const CaseInput bad = in(b({3}, 2, DType::i64), bad_indices(4));
  rows.push_back({"embedding_bad", "embedding", {}, {in(p({4, 5})), bad}, {3, 18}, kExact, false});
  rows.push_back({"one_hot_bad", "one_hot", {{"classes", int64_t{4}}}, {bad}, {3, 18}, kExact, false});
  return rows;
}

}  // namespace

std::vector<OpCase> indexing_cases() {
  std::vector<OpCase> rows = gather_cases();
  append(rows, argmax_cases());
  append(rows, embedding_cases());
  return rows;
}

}  // namespace brisk::test
