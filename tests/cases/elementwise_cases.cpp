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

const std::vector<double> kSpecial = {0.0, -0.0, 1.0, kNaN, kInf, -kInf, 3e38, -2.0, 1e-30, 5.0, 0.25};
/// The same in reverse without one: pairs of all kinds, two of them of equal numbers.
const std::vector<double> kSpecialShifted(kSpecial.rbegin(), kSpecial.rend() - 1);

std::vector<OpCase> binary_cases(const std::string& op) {
  std::vector<OpCase> rows;
  // A difference of floats is rounded once, as every other result here; divisors stay away from zero.
  const Fill second = op == "div" ? uniform(0.5, 2) : uniform();
  for (const Form& form : forms()) {
    rows.push_back(
        {op + "_" + form.name, op, {}, {in(form.a), in(form.b, second)}, form.batches, {1e-7, Measure::element}});
  }
  rows.push_back({op + "_special",
                  op,
                  {},
                  {in(b({11}), values(kSpecial)), in(b({11}), values(kSpecialShifted))},
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
      {"leaky_relu", {{"slope", 0.25}}, uniform(), special, {1e-7}},
      {"elu",
       {{"alpha", 1.5}},
       uniform(-3, 2),
       {kNaN, kInf, -kInf, 0, 1e-30, -1e-30, -1e-3, -17, -90, -200},
       kFunction},
      {"gelu",
       {},
       uniform(-5, 5),
       {kNaN, kInf, -kInf, 0, 1e-30, -1e-30, 1e-4, -7, 7, -12, -14, -20, 40, 3e38, -3e38},
       kFunction},
      {"gelu_tanh",
       {},
       uniform(-5, 5),
       {kNaN, kInf, -kInf, 0, 1e-30, -1e-30, 1e-4, -7, 7, -9, -11, -20, 40, 3e38, -3e38},
       kFunction},
      {"silu", {}, uniform(-5, 5), {kNaN, kInf, -kInf, 0, 1e-30, -40, 40, -88, -103, 110, 3e38, -3e38}, kFunction},
      {"softplus", {}, uniform(-5, 5), {kNaN, kInf, -kInf, 0, 1e-30, 19.9, 20.1, -20, -87, 3e38, -3e38}, kFunction},
      {"sqrt", {}, uniform(0.1, 4), {kNaN, kInf, -kInf, 0, -0.0, 1, -1, 2, 1e-30, 3e38}, {1e-7}},
      {"abs", {}, uniform(), special, kExact},
      {"clamp", {{"high", 0.625}, {"low", -0.5}}, uniform(), special, kExact},
      {"compare_scalar", {{"relation", std::string("greater")}, {"value", 0.25}}, uniform(), special, kExact},
      {"stop_gradient", {}, uniform(), special, kExact},
  };
}

/// With exponents of every kind: even, odd, negative, fractions.
std::vector<OpCase> power_cases() {
  const std::vector<double> special = {kNaN, kInf, -kInf, 0, -0.0, 1, -1, 2, -2, 1e-30, -1e-30, 3e38, -3e38, 0.999, 7};
  std::vector<OpCase> rows;
  for (const auto& [name, exponent] : std::vector<std::pair<const char*, double>>{{"zero", 0},
                                                                                  {"one", 1},
                                                                                  {"two", 2},
                                                                                  {"three", 3},
                                                                                  {"eight", 8},
                                                                                  {"minus_one", -1},
                                                                                  {"minus_two", -2},
                                                                                  {"half", 0.5},
                                                                                  {"third", 1.0 / 3},
                                                                                  {"minus_fraction", -2.7},
                                                                                  {"large", 77}}) {
    const bool any_base = exponent == std::trunc(exponent) && exponent >= 0;
    const Fill fill = any_base ? uniform(-1.5, 1.5) : uniform(0.3, 2);
    append(rows, unary_cases({"pow", {{"exponent", exponent}}, fill, special, {2e-7}}, std::string("_") + name));
  }
  return rows;
}

std::vector<OpCase> compare_cases() {
  std::vector<OpCase> rows;
  for (const std::string relation : {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal"}) {
    const auto row = [&](const std::string& name, CaseInput x, CaseInput y, std::vector<int64_t> batches) {
      rows.push_back({"compare_" + relation + "_" + name,
                      "compare",
                      {{"relation", relation}},
                      {std::move(x), std::move(y)},
                      std::move(batches),
                      kExact});
    };
    for (const Form& form : forms()) {
      if (relation == "less" || std::string_view(form.name) == "tails")
        row(form.name, in(form.a, quarters()), in(form.b, quarters()), form.batches);
    }
    row("special", in(b({11}), values(kSpecial)), in(b({11}), values(kSpecialShifted)), some_tails());
    rows.push_back({"compare_scalar_" + relation + "_special_too",
                    "compare_scalar",
                    {{"relation", relation}, {"value", 1.0}},
                    {in(b({11}), values(kSpecial))},
                    some_tails(),
                    kExact});
  }
  return rows;
}

/// Operands of an operation of three, and how they broadcast: the first has the result's type.
struct ThreeForm {
  const char* name;
  ValueType a, b, c;
  std::vector<int64_t> batches;
};

std::vector<ThreeForm> three_forms() {
  return {{"tails", b({3}), b({3}), b({3}), all_tails()},
          {"large", b({13, 9, 11}), b({13, 9, 11}), b({13, 9, 11}), {1, 19, 67}},
          {"number_a_sample", b({}), b({}), b({}), some_tails()},
          {"channels", b({3, 4, 5}), p({3, 1, 1}), b({1, 4, 1}), few_tails()},
          {"lower_ranks", b({2, 3, 4}), b({4}), b({3, 1}), few_tails()},
          {"weights", b({5}), p({5}), p({}), some_tails()},
          {"two_rows", b({3, 2}, 2), b({2}, 2), p({3, 1}), few_tails()},
          {"no_batch", p({3, 17}), p({17}), p({}), {1}},
          {"no_batch_large", p({67, 129}), p({67, 129}), p({67, 1}), {1}}};
}

std::vector<OpCase> three_operand_cases() {
  std::vector<OpCase> rows;
  const Fill condition = values({0, 1, 1, -0.0, 0.25, 0, 0, -3, 1, 0, kInf, kNaN, 0});
  for (const ThreeForm& form : three_forms()) {
    const auto row = [&](const std::string& op, Attributes attributes, std::vector<CaseInput> inputs) {
      const std::string suffix = attributes.has("chosen") && attributes.flag("chosen") ? "_chosen" : "";
      rows.push_back(
          {op + suffix + "_" + form.name, op, std::move(attributes), std::move(inputs), form.batches, kExact});
    };
    for (const char* op : {"minimum_gradient", "maximum_gradient"}) {
      row(op, {}, {in(form.a), in(form.b, quarters()), in(form.c, quarters())});
    }
    row("where", {}, {in(form.b, condition), in(form.a), in(form.c)});
    row("where_gradient", {{"chosen", true}}, {in(form.b, condition), in(form.a)});
    row("where_gradient", {{"chosen", false}}, {in(form.c, condition), in(form.a)});
  }
  const CaseInput zeros_and_ones = in(b({4}), values({0, 1, 0, 1})), nan = in(b({4}), constant(kNaN));
  rows.push_back({"where_hides_nan", "where", {}, {zeros_and_ones, nan, in(b({4}))}, some_tails(), kExact, false});
  rows.push_back({"where_gradient_hides_nan",
                  "where_gradient",
                  {{"chosen", true}},
                  {zeros_and_ones, in(b({4}), values({kNaN, 1, kInf, 2}))},
                  some_tails(),
                  kExact,
                  false});
  return rows;
}

/// Whole numbers of a range.
Fill whole(int64_t low, int64_t high) {
  return each([=](Random& random, int64_t) { return static_cast<double>(low + random.below(high - low)); });
}

/// Between f32 and 16 bits: ties, the smallest and largest numbers, NaN.
std::vector<OpCase> low_cast_cases() {
  std::vector<OpCase> rows;
  const Fill edges = values(
      {0.0,      -0.0,  1.0,    1.00048828125,         1.00146484375, 1.00390625, 1.01171875, 65504,
       65519.99, 65520, -65536, 3.3895313892515355e38, 3.4e38,        6e-8,       2.98e-8,    2.9802322387695312e-8,
       6.1e-5,   -1e-7, 0.1,    -3.14159265,           kNaN,          kInf,       -kInf});
  for (const DType low : {DType::f16, DType::bf16}) {
    for (const bool narrows : {true, false}) {
      const auto row = [&](const std::string& name, Shape shape, bool batched, std::vector<int64_t> batches,
                           const Fill& fill) {
        const DType from = narrows ? DType::f32 : low, to = narrows ? low : DType::f32;
        rows.push_back({std::string("cast_") + brisk::name(from) + "_" + brisk::name(to) + "_" + name,
                        "cast",
                        {{"dtype", std::string(brisk::name(to))}},
                        {in(batched ? b(shape, 1, from) : p(shape, from), fill)},
                        std::move(batches),
                        kExact});
      };
      row("edges", {23}, true, all_tails(), edges);
      row("large", {37, 61}, true, {19}, uniform(-300, 300));
      row("no_batch", {13}, false, {1}, uniform());
      row("no_batch_large", {131, 129}, false, {1}, uniform(-1e-3, 1e-3));
    }
  }
  return rows;
}

std::vector<OpCase> cast_cases() {
  const std::vector<std::pair<DType, Fill>> from = {
      {DType::f32, uniform(-400, 400)},
      {DType::f32, values({kNaN, kInf, -kInf, 0.99, -0.99, 255.5, 256, -1, 1e10, -1e10, 2147483648.0, 1e19, -1e19})},
      {DType::u8, whole(0, 256)},
      {DType::i32, whole(INT32_MIN, INT32_MAX)},
      {DType::i64, whole(-(int64_t{1} << 40), int64_t{1} << 40)}};
  std::vector<OpCase> rows;
  for (size_t i = 0; i < from.size(); ++i) {
    for (const DType to : {DType::f32, DType::u8, DType::i32, DType::i64}) {
      const auto row = [&](const std::string& name, ValueType type, std::vector<int64_t> batches) {
        rows.push_back(
            {std::string("cast_") + brisk::name(type.dtype) + std::to_string(i) + "_" + brisk::name(to) + "_" + name,
             "cast",
             {{"dtype", std::string(brisk::name(to))}},
             {in(type, from[i].second)},
             std::move(batches),
             kExact});
      };
      const DType dtype = from[i].first;
      row("tails", b({3}, 1, dtype), i == 2 ? all_tails() : some_tails());
      row("rows", b({2, 7}, 2, dtype), few_tails());
      row("large", b({37, 61}, 1, dtype), {19});
      row("no_batch", p({13}, dtype), {1});
    }
  }
  append(rows, low_cast_cases());
  for (const DType dtype : {DType::u8, DType::i32, DType::i64}) {
    rows.push_back({std::string("stop_gradient_") + brisk::name(dtype),
                    "stop_gradient",
                    {},
                    {in(b({5}, 1, dtype), whole(0, 256))},
                    few_tails(),
                    kExact});
  }
  return rows;
}

std::vector<OpCase> gradient_cases(const std::string& op, Attributes attributes, Fill value,
                                   Tolerance tolerance = {5e-7}) {
  std::vector<OpCase> rows;
  for (const auto& [name, type, batches] :
       std::vector<std::tuple<const char*, ValueType, std::vector<int64_t>>>{{"tails", b({3}), all_tails()},
                                                                             {"image", b({5, 7, 3}), some_tails()},
                                                                             {"large", b({23, 11, 9}), {33}},
                                                                             {"two_rows", b({5}, 2), some_tails()},
                                                                             {"no_batch", p({131}), {1}}}) {
    rows.push_back({op + "_" + name, op, attributes, {in(type), in(type, value)}, batches, tolerance});
  }
  rows.push_back({op + "_special",
                  op,
                  attributes,
                  {in(b({9}), values({1, 2, 3, 4, 5, 6, -7, 8, -9})),
                   in(b({9}), values({kNaN, 0, 1, -1, 0.25, -0.0, 1e-30, kInf, -kInf}))},
                  some_tails(),
                  tolerance,
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
  for (const char* op : {"add", "sub", "mul", "div", "minimum", "maximum"}) append(rows, binary_cases(op));
  for (const Unary& unary : unaries()) append(rows, unary_cases(unary));
  append(rows, gradient_cases("relu_gradient", {}, uniform()));
  append(rows, gradient_cases("tanh_gradient", {}, uniform(-0.9, 0.9)));
  append(rows, gradient_cases("sigmoid_gradient", {}, uniform(0, 1)));
  append(rows, gradient_cases("huber_gradient", {{"delta", 0.5}}, uniform()));
  append(rows, gradient_cases("leaky_relu_gradient", {{"slope", 0.25}}, uniform()));
  append(rows, gradient_cases("elu_gradient", {{"alpha", 1.5}}, uniform(-1.4, 2)));
  append(rows, gradient_cases("abs_gradient", {}, uniform(), kExact));
  append(rows, gradient_cases("clamp_gradient", {{"high", 0.25}, {"low", -1.0}}, uniform(-2, 2), kExact));
  // They cross zero.
  constexpr Tolerance kCrossing = {1e-6, Measure::element, 3e-7};
  for (const char* op : {"gelu_gradient", "gelu_tanh_gradient", "silu_gradient"}) {
    append(rows, gradient_cases(op, {}, uniform(-6, 6), kCrossing));
  }
  append(rows, power_cases());
  append(rows, compare_cases());
  append(rows, three_operand_cases());
  append(rows, cast_cases());
  append(rows, dropout_cases());
  return rows;
}

}  // namespace brisk::test
