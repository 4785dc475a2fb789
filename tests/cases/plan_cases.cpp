// Rows of the operations that passes add: loading and storing, totals, seeds, gradients and the optimizers' walks.
#include <limits>

#include "cases/table.h"

namespace brisk::test {
namespace {

const Attributes kSlot = {{"slot", int64_t{0}}};

std::vector<std::pair<std::string, ValueType>> moved_types() {
  return {{"number", b({})},
          {"features", b({3})},
          {"image", b({5, 7, 3})},
          {"large", b({23, 11, 9})},
          {"two_rows", b({5}, 2)},
          {"labels", b({}, 1, DType::i64)},
          {"label_rows", b({}, 3, DType::i64)},
          {"indices", b({4}, 1, DType::i32)}};
}

std::vector<OpCase> mover_cases() {
  std::vector<OpCase> rows;
  for (const auto& [name, type] : moved_types()) {
    const std::vector<int64_t> batches = type.elements() > 1000 ? some_tails() : all_tails();
    const Fill fill = type.dtype == DType::f32 ? uniform() : labels(1000);
    rows.push_back({"load_" + name, "load", {}, {at(Place::input, 0, type, fill)}, batches, kExact});
    rows.push_back({"store_" + name, "store", kSlot, {in(type, fill)}, batches, kExact});
  }
  rows.push_back(
      {"load_bytes", "load", {}, {at(Place::input, 0, b({7}, 1, DType::u8), labels(256, 255))}, some_tails(), kExact});
  rows.push_back({"load_special",
                  "load",
                  {},
                  {at(Place::input, 0, b({3}), values({std::numeric_limits<double>::quiet_NaN(), -0.0, 3e38, 1e-30}))},
                  some_tails(),
                  kExact,
                  false});
  return rows;
}

std::vector<OpCase> total_cases() {
  // Totals are kept in double, so that a long epoch loses nothing.
  constexpr Tolerance kDouble = {1e-12, Measure::magnitude};
  const std::vector<std::vector<double>> before = {{1e6 + 0.125, 12345}};
  std::vector<OpCase> rows;
  for (const int64_t m : {1, 3}) {
    const std::string suffix = m == 1 ? "" : "_three_rows";
    const ValueType row = b({}, m);
    rows.push_back({"total" + suffix, "total", kSlot, {in(row)}, all_tails(), kDouble, true, {}, before});
    rows.push_back({"total_weighted" + suffix,
                    "total",
                    kSlot,
                    {in(row), in(row, quarters())},
                    all_tails(),
                    kDouble,
                    true,
                    {},
                    before});
    rows.push_back(
        {"seed_rows" + suffix, "seed_rows", {}, {at(Place::scalar, 0, p({})), in(row)}, all_tails(), kExact});
    rows.push_back({"seed_rows_scaled" + suffix,
                    "seed_rows",
                    {},
                    {at(Place::scalar, 0, p({})), in(row), at(Place::state, 0, p({}), constant(1024))},
                    some_tails(),
                    kExact});
    rows.push_back(
        {"seed_count" + suffix, "seed_count", {{"factor", 0.5}}, {in(row, uniform(0, 1))}, all_tails(), {2e-7}});
  }
  rows.push_back({"total_large_batch", "total", kSlot, {in(b({}))}, {1000, 4099}, kDouble, true, {}, before});
  rows.push_back(
      {"seed_count_large_batch", "seed_count", {{"factor", 1.0}}, {in(b({}), uniform(0, 1))}, {1000, 4099}, {2e-7}});
  rows.push_back(
      {"seed_count_of_nothing", "seed_count", {{"factor", 1.0}}, {in(b({}), constant(0))}, few_tails(), kExact});
  return rows;
}

std::vector<std::pair<std::string, Shape>> parameter_shapes() {
  return {{"one", {1}}, {"bias", {67}}, {"kernel", {5, 3, 3, 7}}, {"large", {131, 129}}, {"number", {}}};
}

std::vector<OpCase> gradient_cases() {
  std::vector<OpCase> rows;
  for (const auto& [name, shape] : parameter_shapes()) {
    const auto count = static_cast<size_t>(shape.count());
    rows.push_back({"store_gradient_" + name, "store_gradient", kSlot, {in(p(shape))}, {1}, kExact});
    rows.push_back({"store_gradient_again_" + name,
                    "store_gradient",
                    kSlot,
                    {in(p(shape))},
                    {1},
                    {1e-7},
                    true,
                    {true, 0, 0},
                    {std::vector<double>(count, 0.375)}});
  }
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
  const auto stats = [&](const std::string& name, double ratio, std::vector<std::pair<Shape, Fill>> gradients,
                         double clip_norm = 0, double scale = 0) {
    std::vector<CaseInput> inputs = {at(Place::scalar, 0, p({}), constant(ratio))};
    if (scale != 0) inputs.push_back(at(Place::state, 0, p({}), constant(scale)));
    for (size_t i = 0; i < gradients.size(); ++i) {
      inputs.push_back(at(Place::gradient, static_cast<int32_t>(i), p(gradients[i].first), gradients[i].second));
    }
    rows.push_back({"gradient_stats_" + name,
                    "gradient_stats",
                    {{"clip_norm", clip_norm}, {"scaled", scale != 0}},
                    std::move(inputs),
                    {1},
                    {3e-7}});
  };
  stats("one", 1, {{{1}, uniform()}});
  stats("many", 0.5,
        {{{67}, uniform()}, {{1}, uniform()}, {{131, 129}, uniform()}, {{5, 3, 3, 7}, uniform()}, {{}, uniform()}});
  stats("zero", 1, {{{67}, constant(0)}});
  stats("large", 1, {{{100}, constant(1e20)}});
  stats("squares_overflow", 1, {{{128}, constant(1e19)}});
  stats("clip", 0.5, {{{67}, uniform()}, {{131, 129}, uniform()}}, 0.75);
  stats("clip_is_wide_enough", 1, {{{3}, values({1, 2, 2})}}, 3);
  stats("clip_of_nothing", 1, {{{67}, constant(0)}}, 1);
  stats("scaled_down", 1e-21, {{{100}, constant(1e20)}});
  stats("large_and_small", 1, {{{2}, values({1e20, 1})}, {{67}, uniform()}});
  stats("tiny", 1, {{{128}, constant(1e-25)}});
  stats("infinite", 1, {{{67}, uniform()}, {{2}, values({kInf, 1})}});
  stats("nan", 1, {{{2}, values({kNaN, 1})}, {{67}, values({1, -kInf})}});
  stats("scaled", 0.5, {{{67}, uniform()}, {{131, 129}, uniform()}}, 0, 65536);
  stats("scaled_clip", 1, {{{67}, uniform()}, {{131, 129}, uniform()}}, 0.0001, 1024);
  stats("scaled_infinite", 1, {{{67}, uniform()}, {{2}, values({1, kInf})}, {{3}, values({kNaN})}}, 1, 65536);
  return rows;
}

/// Scalars of a walk and its statistics, then the parameters of `shapes`, each with gradient and moments.
std::vector<CaseInput> walk_inputs(const std::vector<double>& scalars, int moments, const std::vector<Shape>& shapes) {
  std::vector<CaseInput> inputs;
  for (size_t i = 0; i < scalars.size(); ++i) {
    inputs.push_back(at(Place::scalar, static_cast<int32_t>(i), p({}), constant(scalars[i])));
  }
  inputs.push_back(in(p({4}), values({1.5, 0, 0.625, -1})));
  for (size_t k = 0; k < shapes.size(); ++k) {
    const auto slot = static_cast<int32_t>(k);
    inputs.push_back(at(Place::parameter, slot, p(shapes[k])));
    inputs.push_back(at(Place::gradient, slot, p(shapes[k])));
    if (moments > 0) inputs.push_back(at(Place::moment1, slot, p(shapes[k])));
    if (moments > 1) inputs.push_back(at(Place::moment2, slot, p(shapes[k]), uniform(0, 1)));
  }
  return inputs;
}

std::vector<OpCase> walk_cases() {
  std::vector<OpCase> rows;
  constexpr Tolerance kWalk = {3e-7, Measure::output};
  const std::vector<Shape> several = {{67}, {131, 129}, {1}, {5, 3, 3, 7}, {}};
  const std::vector<double> scales = {1, 0.5, 10, 1, 2}, decays = {0, 0.01, 0.1, 0.3, 0};
  const auto sgd = [&](const std::string& name, double momentum, double dampening, bool nesterov, double first) {
    rows.push_back({"sgd_walk_" + name,
                    "sgd_walk",
                    {{"dampening", dampening},
                     {"momentum", momentum},
                     {"nesterov", nesterov},
                     {"rate_scale", scales},
                     {"shadow", std::string("none")},
                     {"shadowed", std::vector<int64_t>()},
                     {"weight_decay", decays}},
                    walk_inputs({0.1, 0.75, first}, momentum != 0 ? 1 : 0, several),
                    {1},
                    kWalk});
  };
  sgd("plain", 0, 0, false, 0);
  sgd("plain_first", 0, 0, false, 1);
  sgd("momentum", 0.9, 0, false, 0);
  sgd("momentum_first", 0.9, 0, false, 1);
  sgd("dampened", 0.9, 0.5, false, 0);
  sgd("dampened_first", 0.9, 0.5, false, 1);
  sgd("nesterov", 0.9, 0, true, 0);
  sgd("nesterov_first", 0.9, 0, true, 1);
  for (const bool decoupled : {false, true}) {
    for (const auto& [name, bias1, bias2] : {std::tuple("early", 0.1, 0.001), {"late", 1.0, 0.95}}) {
      rows.push_back({std::string("adam_walk_") + (decoupled ? "decoupled_" : "coupled_") + name,
                      "adam_walk",
                      {{"beta1", 0.9},
                       {"beta2", 0.999},
                       {"decoupled", decoupled},
                       {"epsilon", 1e-8},
                       {"rate_scale", scales},
                       {"shadow", std::string("none")},
                       {"shadowed", std::vector<int64_t>()},
                       {"weight_decay", decays}},
                      walk_inputs({0.01, 0.75, bias1, bias2}, 2, several),
                      {1},
                      {1e-6, Measure::output}});
    }
  }
  rows.push_back({"batch_norm_commit",
                  "batch_norm_commit",
                  {{"chained", false}, {"momentum", 0.1}},
                  {in(p({67})), in(p({67})), at(Place::buffer, 0, p({67})), at(Place::buffer, 1, p({67}))},
                  {1},
                  {3e-7, Measure::output}});
  for (const bool again : {false, true}) {
    for (const bool chained : {false, true}) {
      rows.push_back({std::string("batch_norm_commit_staged") + (again ? "_again" : "") + (chained ? "_chained" : ""),
                      "batch_norm_commit",
                      {{"chained", chained}, {"momentum", 0.1}},
                      {in(p({67})), in(p({67})), at(Place::buffer, 0, p({67})), at(Place::buffer, 1, p({67})),
                       at(Place::staged, 0, p({67})), at(Place::staged, 1, p({67}))},
                      {1},
                      {3e-7, Measure::output},
                      true,
                      {again, 0, 0}});
    }
  }
  return rows;
}

std::vector<OpCase> scale_cases() {
  std::vector<OpCase> rows;
  // Counters: updates, good ones since the scale changed, skips in a row, skipped.
  const auto row = [&](const std::string& name, double nonfinite, double scale, std::vector<double> counters,
                       bool scaled = true) {
    rows.push_back({"scale_update_" + name,
                    "scale_update",
                    {{"backoff", 0.5},
                     {"growth", 2.0},
                     {"interval", int64_t{4}},
                     {"maximum", 131072.0},
                     {"minimum", 1.0},
                     {"scaled", scaled}},
                    {in(p({4}), values({1, nonfinite, 1, nonfinite - 1})), at(Place::state, 0, p({}), constant(scale)),
                     at(Place::state, 1, p({4}, DType::i64), values(std::move(counters)))},
                    {1},
                    kExact});
  };
  row("good", 0, 65536, {7, 2, 3, 5});
  row("grows", 0, 65536, {7, 3, 0, 5});
  row("at_maximum", 0, 131072, {7, 3, 0, 5});
  row("backs_off", 2, 65536, {7, 3, 1, 5});
  row("at_minimum", 2, 1, {7, 0, 1, 5});
  row("only_counts", 0, 65536, {7, 3, 1, 5}, false);
  row("only_counts_skips", 1, 65536, {7, 3, 1, 5}, false);
  const auto commit = [&](const std::string& name, double nonfinite) {
    rows.push_back(
        {"commit_staged" + name,
         "commit_staged",
         {},
         {in(p({4}), values({1, nonfinite, 1, -1})), at(Place::staged, 0, p({67})), at(Place::staged, 3, p({9000}))},
         {1},
         kExact,
         true,
         {},
         {std::vector<double>(67, 0.25), std::vector<double>(9000, 0.5)}});
  };
  commit("", 0);
  commit("_of_a_skipped_update", 3);
  return rows;
}

}  // namespace

std::vector<OpCase> plan_cases() {
  std::vector<OpCase> rows = mover_cases();
  append(rows, total_cases());
  append(rows, gradient_cases());
  append(rows, walk_cases());
  append(rows, scale_cases());
  return rows;
}

}  // namespace brisk::test
