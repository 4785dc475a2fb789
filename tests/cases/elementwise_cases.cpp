// Rows of the elementwise operations and of dropout.
#include <cmath>
#include <limits>

#include "cases/table.h"

namespace brisk::test {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

/// The ways in which two operands fit together.
struct Form {
  const char* name;
  ValueType a, b;
  std::vector<int64_t> batches;
};

std::vector<Form> forms() {
  return {
      {"tails", b({3}), b({3}), all_tails()},
      {"same", b({5, 3, 2}), b({5, 3, 2}), some_tails()},
      {"large", b({13, 9, 11}), b({13, 9, 11}), {1, 19, 67}},
      {"one_number_a_sample", b({}), b({}), some_tails()},
      {"weight_vector", b({7}), p({7}), some_tails()},
      {"weight_first", p({7}), b({7}), some_tails()},
      {"weight_of_lower_rank", b({2, 3, 4}), p({4}), few_tails()},
      {"weight_of_higher_rank", b({4}), p({2, 3, 4}), few_tails()},
      {"weight_per_channel", b({3, 4, 5}), p({3, 1, 1}), few_tails()},
      {"weight_in_the_middle", b({3, 4, 5}), p({4, 1}), few_tails()},
      {"weight_scalar", b({3, 5}), p({}), some_tails()},
      {"lower_rank", b({2, 3, 4}), b({4}), few_tails()},
      {"lower_rank_first", b({4}), b({2, 3, 4}), few_tails()},
      {"middle_repeats", b({2, 3, 4}), b({2, 1, 4}), some_tails()},
      {"first_repeats", b({2, 3, 4}), b({1, 3, 4}), few_tails()},
      {"both_repeat", b({1, 5}), b({4, 1}), some_tails()},
      {"number_and_vector", b({}), b({3}), some_tails()},
      {"two_rows", b({3, 2}, 2), b({3, 2}, 2), some_tails()},
      {"two_rows_lower_rank", b({3, 2}, 2), b({2}, 2), few_tails()},
      {"two_rows_same_size", b({2, 3}, 2), b({3}, 2), few_tails()},
      {"two_rows_weight", b({3, 2}, 2), p({3, 2}), few_tails()},
      {"two_rows_weight_of_two", b({2}, 2), p({2, 2}), few_tails()},
      {"three_rows_number", b({}, 3), p({}), some_tails()},
      {"no_batch", p({3, 17}), p({3, 17}), {1}},
      {"no_batch_large", p({67, 129}), p({67, 129}), {1}},
      {"no_batch_repeats", p({3, 1, 17}), p({5, 1}), {1}},
      {"no_batch_scalar", p({}), p({}), {1}},
      {"no_batch_and_scalar", p({16}), p({}), {1}},
      {"weight_times_number", p({3, 4}), b({}), few_tails()},
  };
}

std::vector<OpCase> binary_cases(const std::string& op) {
  std::vector<OpCase> rows;
  // A difference of floats is rounded once, as every other result here; divisors stay away from zero.
  const Fill second = op == "div" ? uniform(0.5, 2) : uniform();
  for (const Form& form : forms()) {
    rows.push_back(
        {op + "_" + form.name, op, {}, {in(form.a), in(form.b, second)}, form.batches, {1e-7, Measure::element}});
  }
  const std::vector<double> special = {0.0, -0.0, 1.0, kNaN, kInf, -kInf, 3e38, -2.0, 1e-30, 5.0, 0.25};
  std::vector<double> shifted(special.rbegin(), special.rend());
  shifted.pop_back();
  rows.push_back({op + "_special",
                  op,
                  {},
                  {in(b({11}), values(special)), in(b({11}), values(shifted))},
                  some_tails(),
                  {1e-7, Measure::element},
                  false});
  return rows;
}

struct Unary {
  std::string op;
  Attributes attributes;
  Fill fill;
  std::vector<double> special;
  Tolerance tolerance;
};

std::vector<OpCase> unary_cases(const Unary& u, const std::string& suffix = "") {
  std::vector<OpCase> rows;
  const auto row = [&](const std::string& name, ValueType type, std::vector<int64_t> batches) {
    rows.push_back(
        {u.op + suffix + "_" + name, u.op, u.attributes, {in(type, u.fill)}, std::move(batches), u.tolerance});
  };
  row("tails", b({3}), all_tails());
  row("number", b({}), some_tails());
  row("image", b({5, 7, 3}), some_tails());
  row("large", b({23, 11, 9}), {1, 33});
  row("two_rows", b({5}, 2), some_tails());
  row("no_batch_number", p({}), {1});
  row("no_batch", p({67}), {1});
  row("no_batch_large", p({31, 401}), {1});
  rows.push_back({u.op + suffix + "_special",
                  u.op,
                  u.attributes,
                  {in(b({1}), values(u.special))},
                  all_tails(),
                  u.tolerance,
                  false});
  rows.push_back({u.op + suffix + "_special_no_batch",
                  u.op,
                  u.attributes,
                  {in(p({static_cast<int64_t>(u.special.size()) * 5}), values(u.special))},
                  {1},
                  u.tolerance,
                  false});
  return rows;
}

std::vector<Unary> unaries() {
  const std::vector<double> special = {kNaN, kInf, -kInf, 0.0, -0.0, 1e-30, -1e-30, 1.0, -1.0, 3e38, -3e38};
  return {
      {"relu", {}, uniform(), special, kExact},
      {"identity", {}, uniform(), special, kExact},
      {"tanh",
       {},
       uniform(-3, 3),
       {kNaN, kInf, -kInf, 0, 1e-30, 1e-4, -1e-4, 0.01, 0.3, -0.6, 8.9, -9.1, 40, -90, 3e38},
       kFunction},
      {"sigmoid",
       {},
       uniform(-4, 4),
       {kNaN, kInf, -kInf, 0, 1e-30, 17, -17, 40, -40, 86, -86, 100, -100, 3e38, -3e38},
       kFunction},
      {"exp",
       {},
       uniform(-4, 4),
       {kNaN, kInf, -kInf, 0, 1e-30, 88.5, 88.8, -87, -100, 1000, -1000, 60, -60, 3e38, -3e38},
       kFunction},
      {"log",
       {},
       uniform(0.01, 9),
       {kNaN, kInf, -kInf, 0, 1, -1, 1.0000001, 0.9999999, 2e-38, 3e38, 1e-5, 1e20, 0.5, 2},
       kFunction},
      {"reciprocal", {{"numerator", 1.5}}, uniform(0.2, 3), {kNaN, kInf, -kInf, 0, -0.0, 1, -2, 1e20, 3e37}, {2e-7}},
      {"scale", {{"factor", -1.25}}, uniform(), special, {1e-7}},
      {"add_scalar", {{"value", 0.75}}, uniform(), special, {1e-7, Measure::element, 1e-7}},
      {"huber", {{"delta", 0.5}}, uniform(), special, {3e-7}},
  };
}

std::vector<OpCase> gradient_cases(const std::string& op, Attributes attributes, Fill value) {
  std::vector<OpCase> rows;
  for (const auto& [name, type, batches] :
       std::vector<std::tuple<const char*, ValueType, std::vector<int64_t>>>{{"tails", b({3}), all_tails()},
                                                                             {"image", b({5, 7, 3}), some_tails()},
                                                                             {"large", b({23, 11, 9}), {33}},
                                                                             {"two_rows", b({5}, 2), some_tails()},
                                                                             {"no_batch", p({131}), {1}}}) {
    rows.push_back({op + "_" + name, op, attributes, {in(type), in(type, value)}, batches, {5e-7}});
  }
  rows.push_back({op + "_special",
                  op,
                  attributes,
                  {in(b({7}), values({1, 2, 3, 4, 5, 6, -7})), in(b({7}), values({kNaN, 0, 1, -1, 0.25, -0.0, 1e-30}))},
                  some_tails(),
                  {5e-7},
                  false});
  return rows;
}

std::vector<OpCase> dropout_cases() {
  std::vector<OpCase> rows;
  const auto row = [&](const std::string& name, double rate, ValueType type, std::vector<int64_t> batches,
                       oracle::Run run) {
    const int64_t stream = 0x7A3C51E90B6D428F;
    rows.push_back({"dropout_" + name,
                    "dropout",
                    {{"rate", rate}, {"stream", stream}},
                    {in(type)},
                    std::move(batches),
                    {2e-7},
                    true,
                    run});
  };
  row("tails", 0.5, b({3}), all_tails(), {});
  row("number", 0.5, b({}), some_tails(), {});
  row("image", 0.25, b({5, 7, 3}), some_tails(), {});
  row("large", 0.1, b({23, 11, 9}), {5, 33}, {});
  row("two_rows", 0.3, b({5}, 2), some_tails(), {});
  row("none", 0, b({9}), few_tails(), {});
  row("all", 1, b({9}), few_tails(), {});
  row("later", 0.5, b({9}), few_tails(), {false, 0x123456789A, 1001});
  return rows;
}

}  // namespace

std::vector<OpCase> elementwise_cases() {
  std::vector<OpCase> rows;
  for (const char* op : {"add", "sub", "mul", "div"}) append(rows, binary_cases(op));
  for (const Unary& unary : unaries()) append(rows, unary_cases(unary));
  append(rows, gradient_cases("relu_gradient", {}, uniform()));
  append(rows, gradient_cases("tanh_gradient", {}, uniform(-0.9, 0.9)));
  append(rows, gradient_cases("sigmoid_gradient", {}, uniform(0, 1)));
  append(rows, gradient_cases("huber_gradient", {{"delta", 0.5}}, uniform()));
  append(rows, dropout_cases());
  return rows;
}

}  // namespace brisk::test
