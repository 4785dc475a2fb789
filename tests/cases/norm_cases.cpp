// Rows of batch normalization and of softmax.
#include <limits>

#include "cases/table.h"

namespace brisk::test {
namespace {

std::vector<OpCase> batch_norm_cases() {
  struct Norm {
    std::string name;
    ValueType x;
    std::vector<int64_t> batches;
    bool residual;
    std::string activation;
  };
  const std::vector<int64_t> tails = {2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 67};
  const std::vector<Norm> norms = {
      {"features", b({3}), tails, false, "none"},
      {"every_tail", b({2, 2}), all_tails(), false, "none"},
      {"image", b({5, 7, 3}), some_tails(), false, "none"},
      {"image_relu", b({5, 7, 3}), few_tails(), false, "relu"},
      {"image_tanh", b({3, 2, 5}), few_tails(), false, "tanh"},
      {"image_silu", b({3, 4, 5}), some_tails(), false, "silu"},
      {"features_silu", b({67}), {4, 18}, false, "silu"},
      {"image_sigmoid", b({3, 2, 5}), few_tails(), false, "sigmoid"},
      {"residual", b({4, 3, 3}), some_tails(), true, "none"},
      {"residual_relu", b({4, 3, 3}), some_tails(), true, "relu"},
      {"features_relu", b({67}), {4, 18}, false, "relu"},
      {"two_rows", b({3, 2}, 2), some_tails(), true, "relu"},
      {"one_channel", b({1, 5, 5}), few_tails(), false, "none"},
      {"many_channels", b({131, 2, 2}), {2, 17}, false, "none"},
      {"large_image", b({3, 29, 31}), {2, 17}, false, "relu"},
      {"large_batch", b({2, 3}), {300, 1037}, false, "none"},
  };
  std::vector<OpCase> rows;
  for (const Norm& n : norms) {
    const ValueType c = p({n.x.shape[0]});
    std::vector<CaseInput> inputs = {in(n.x, uniform(-2, 2)), in(c, uniform(0.5, 2)), in(c), at(Place::buffer, 0, c),
                                     at(Place::buffer, 1, c, uniform(0.5, 2))};
    if (n.residual) inputs.push_back(in(n.x));
    rows.push_back({"batch_norm_" + n.name,
                    "batch_norm",
                    {{"activation", n.activation}, {"epsilon", 1e-5}, {"momentum", 0.1}},
                    inputs,
                    n.batches,
                    kStatistics});
    rows.push_back({"batch_norm_inference_" + n.name,
                    "batch_norm_inference",
                    {{"activation", n.activation}, {"epsilon", 1e-5}},
                    inputs,
                    n.batches,
                    kStatistics});
    // A sign of relu's input that the reference sees otherwise would be no error of the kernel's: gamma and the
    // deviation are powers of two, all else quarters, so that it is exact.
    const bool relu = n.activation == "relu" && !n.residual, silu = n.activation == "silu";
    const Fill x = relu ? quarters() : uniform(-2, 2), scale = relu ? values({0.5, 1, 2}) : uniform(0.5, 2);
    std::vector<CaseInput> backward = {in(n.x), in(n.x, x), in(c, scale), in(c, relu ? quarters() : uniform(-0.2, 0.2)),
                                       in(c, scale)};
    if (relu || silu) backward.push_back(in(c, relu ? quarters() : uniform()));
    rows.push_back({"batch_norm_gradient_" + n.name,
                    "batch_norm_gradient",
                    {{"activation", relu || silu ? n.activation : std::string("none")}},
                    backward,
                    n.batches,
                    {1e-6, Measure::largest}});
  }
  // Far from zero the variance is a small difference of large squares unless the mean is taken out first.
  rows.push_back({"batch_norm_far_from_zero",
                  "batch_norm",
                  {{"activation", std::string("none")}, {"epsilon", 1e-5}, {"momentum", 0.1}},
                  {in(b({3, 5, 5}), uniform(999, 1001)), in(p({3}), uniform(0.5, 2)), in(p({3})),
                   at(Place::buffer, 0, p({3})), at(Place::buffer, 1, p({3}), uniform(0.5, 2))},
                  {4, 17, 33},
                  {2e-4, Measure::output},
                  false});
  rows.push_back({"batch_norm_constant",
                  "batch_norm",
                  {{"activation", std::string("none")}, {"epsilon", 1e-5}, {"momentum", 0.1}},
                  {in(b({3, 5}), constant(0.1)), in(p({3}), uniform(0.5, 2)), in(p({3})), at(Place::buffer, 0, p({3})),
                   at(Place::buffer, 1, p({3}), uniform(0.5, 2))},
                  {4, 17, 33},
                  {2e-5, Measure::output, 1e-12},
                  false});
  // A long sum of equal numbers has rounding errors of one sign.
  rows.push_back({"batch_norm_constant_images",
                  "batch_norm",
                  {{"activation", std::string("none")}, {"epsilon", 1e-5}, {"momentum", 0.1}},
                  {in(b({1, 32, 32}), constant(0.1)), in(p({1}), constant(1)), in(p({1}), constant(0)),
                   at(Place::buffer, 0, p({1})), at(Place::buffer, 1, p({1}), uniform(0.5, 2))},
                  {67},
                  {1e-5, Measure::output, 1e-4},
                  false});
  // One value a channel: nothing is left of it but the shift, and no statistic is NaN.
  rows.push_back({"batch_norm_one_value",
                  "batch_norm",
                  {{"activation", std::string("none")}, {"epsilon", 1e-5}, {"momentum", 0.1}},
                  {in(b({3})), in(p({3}), uniform(0.5, 2)), in(p({3})), at(Place::buffer, 0, p({3})),
                   at(Place::buffer, 1, p({3}), uniform(0.5, 2))},
                  {1},
                  {2e-6, Measure::output},
                  false});
  return rows;
}

std::vector<OpCase> softmax_cases() {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  struct Lines {
    std::string name;
    ValueType x;
    int64_t axis;
    std::vector<int64_t> batches;
  };
  const std::vector<Lines> lines = {
      {"tails", b({3}), 0, all_tails()},        {"classes", b({10}), 0, some_tails()},
      {"one", b({1}), 0, few_tails()},          {"first", b({5, 3}), 0, few_tails()},
      {"middle", b({2, 5, 3}), 1, few_tails()}, {"last", b({2, 3, 5}), 2, few_tails()},
      {"two_rows", b({7}, 2), 0, some_tails()}, {"many", b({1000}), 0, {1, 17}},
      {"no_batch", p({7, 67}), 1, {1}},         {"no_batch_first", p({7, 67}), 0, {1}},
  };
  std::vector<OpCase> rows;
  for (const Lines& l : lines) {
    const Attributes attributes = {{"axis", l.axis}};
    rows.push_back(
        {"softmax_" + l.name, "softmax", attributes, {in(l.x, uniform(-3, 3))}, l.batches, {1e-6, Measure::output}});
    rows.push_back({"log_softmax_" + l.name,
                    "log_softmax",
                    attributes,
                    {in(l.x, uniform(-3, 3))},
                    l.batches,
                    {1e-6, Measure::output, 1e-6}});
    rows.push_back({"softmax_gradient_" + l.name,
                    "softmax_gradient",
                    attributes,
                    {in(l.x), in(l.x, uniform(0, 0.5))},
                    l.batches,
                    {1e-6, Measure::output, 1e-6}});
    rows.push_back({"log_softmax_gradient_" + l.name,
                    "log_softmax_gradient",
                    attributes,
                    {in(l.x), in(l.x, uniform(-5, -0.1))},
                    l.batches,
                    {1e-6, Measure::output, 1e-6}});
  }
  const Attributes attributes = {{"axis", int64_t{0}}};
  const Fill special = values({1000, 0, -1000, 5, 1e30, -kInf, -kInf, 2, 2, 2, -1e30, 88, 104, 3e38, -3e38});
  for (const std::string op : {"softmax", "log_softmax"}) {
    rows.push_back(
        {op + "_special", op, attributes, {in(b({5}), special)}, some_tails(), {1e-6, Measure::element, 1e-6}, false});
    rows.push_back({op + "_nan",
                    op,
                    attributes,
                    {in(b({3}), values({1, 2, 3, std::numeric_limits<double>::quiet_NaN(), 5, 6}))},
                    few_tails(),
                    {1e-6, Measure::element, 1e-6},
                    false});
  }
  return rows;
}

}  // namespace

std::vector<OpCase> norm_cases() {
  std::vector<OpCase> rows = batch_norm_cases();
  append(rows, softmax_cases());
  return rows;
}

}  // namespace brisk::test
