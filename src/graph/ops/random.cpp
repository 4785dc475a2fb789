// Operations that draw random numbers: a pure function of (stream, attempt, sample, element), never of how work is cut.
#include "brisk/ops/random.h"

#include <cmath>

#include "graph/ops/front.h"

namespace brisk::graph {
namespace {

Types infer_dropout(const InferContext& c) {
  real_in(c, "rate", 0, 1);
  return {want_batched(c, 0, "input", "[N, ...]")};
}

// The same stream draws the same mask: what was dropped gets no gradient, and nothing need be kept.
void derive_dropout(Derivation& d) {
  if (d.wants(0)) d.set(0, d.emit("dropout", {d.output_gradient()}, d.attributes()));
}

Types infer_stochastic_depth(const InferContext& c) {
  if (real_in(c, "rate", 0, 1) == 1) c.fail("rate = 1: must be below 1");
  return {want_batched(c, 0, "input", "[N, ...]")};
}

void derive_stochastic_depth(Derivation& d) {
  if (d.wants(0)) d.set(0, d.emit("stochastic_depth", {d.output_gradient()}, d.attributes()));
}

double finite(const InferContext& c, std::string_view name) {
  const double value = c.attributes().real(name);
  if (!std::isfinite(static_cast<float>(value))) c.fail(cat(name, " = ", value, ": must be a finite number as an f32"));
  return value;
}

Types infer_normal(const InferContext& c) {
  if (finite(c, "deviation") < 0) c.fail("deviation must be at least 0");
  finite(c, "mean");
  return {batched(1, sizes_of(c, "shape"))};
}

Types infer_uniform(const InferContext& c) {
  if (static_cast<float>(finite(c, "low")) >= static_cast<float>(finite(c, "high"))) c.fail("low must be below high");
  return {batched(1, sizes_of(c, "shape"))};
}

void become_identity(Graph& graph, int32_t index) {
  Node& node = graph.nodes[static_cast<size_t>(index)];
  node.op = &op("identity");
  node.attributes = {};
}

}  // namespace

std::span<const OpInfo> random_ops() {
  static const std::vector<OpInfo> ops = {
      {.name = "dropout",
       .attributes = {{"rate", Kind::real}, {"stream", Kind::integer}},
       .infer = infer_dropout,
       .derive = derive_dropout,
       .elementwise = true,
       .random = true,
       .training_only = true,
       .evaluation = become_identity},
      {.name = "stochastic_depth",
       .attributes = {{"rate", Kind::real}, {"stream", Kind::integer}},
       .infer = infer_stochastic_depth,
       .derive = derive_stochastic_depth,
       .random = true,
       .training_only = true,
       .evaluation = become_identity},
      {.name = "random_normal",
       .minimum_inputs = 0,
       .maximum_inputs = 0,
       .attributes =
           {{"deviation", Kind::real}, {"mean", Kind::real}, {"shape", Kind::integers}, {"stream", Kind::integer}},
       .infer = infer_normal,
       .random = true,
       .flops = flops_per_output<40>},
      {.name = "random_uniform",
       .minimum_inputs = 0,
       .maximum_inputs = 0,
       .attributes = {{"high", Kind::real}, {"low", Kind::real}, {"shape", Kind::integers}, {"stream", Kind::integer}},
       .infer = infer_uniform,
       .random = true,
       .flops = flops_per_output<20>},
  };
  return ops;
}

}  // namespace brisk::graph

namespace brisk {

Var dropout(Var x, double rate, DropoutOptions options, Where where) {
  using namespace graph;
  check_option(rate >= 0 && rate <= 1, "dropout.rate", rate,
               "must be from 0 to 1; it is the share of elements set to 0", where);
  // The stream's key is made of the final name, when the trace ends.
  return Layer(x, "dropout", options.name, where).apply("dropout", {x}, {{"rate", rate}, {"stream", int64_t{0}}});
}

Var stochastic_depth(Var x, double rate, StochasticDepthOptions options, Where where) {
  using namespace graph;
  check_option(rate >= 0 && rate < 1, "stochastic_depth.rate", rate,
               "must be at least 0 and less than 1; it is the share of samples set to 0", where);
  return Layer(x, "stochastic_depth", options.name, where)
      .apply("stochastic_depth", {x}, {{"rate", rate}, {"stream", int64_t{0}}});
}

namespace {

std::vector<int64_t> sizes_of(const char* function, const Shape& shape, Where where) {
  for (const int64_t size : shape)
    if (size < 1)
      throw Error(ErrorCode::shape, cat(function, ".shape = ", shape), "each size must be at least 1", where);
  return graph::list(shape);
}

void check_finite(const char* field, double value, Where where) {
  graph::check_option(std::isfinite(static_cast<float>(value)), field, value, "must be a finite number as an f32",
                      where);
}

}  // namespace

Var random_normal(Shape shape, RandomNormalOptions options, Where where) {
  check_finite("random_normal.mean", options.mean, where);
  check_finite("random_normal.deviation", options.deviation, where);
  graph::check_option(options.deviation >= 0, "random_normal.deviation", options.deviation, "must be at least 0",
                      where);
  return graph::Layer("random_normal", options.name, where)
      .apply("random_normal", {},
             {{"deviation", options.deviation},
              {"mean", options.mean},
              {"shape", sizes_of("random_normal", shape, where)},
              {"stream", int64_t{0}}});
}

Var random_uniform(Shape shape, RandomUniformOptions options, Where where) {
  check_finite("random_uniform.high", options.high, where);
  check_finite("random_uniform.low", options.low, where);
  graph::check_option(static_cast<float>(options.low) < static_cast<float>(options.high), "random_uniform.low",
                      options.low, cat("must be below high = ", options.high), where);
  return graph::Layer("random_uniform", options.name, where)
      .apply("random_uniform", {},
             {{"high", options.high},
              {"low", options.low},
              {"shape", sizes_of("random_uniform", shape, where)},
              {"stream", int64_t{0}}});
}

}  // namespace brisk
