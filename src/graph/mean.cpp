// Mean: arithmetic, and the terms that programs make by themselves.
#include "brisk/ops/reduce.h"
#include "graph/loss_rows.h"

namespace brisk {

using graph::Access;
using graph::Layer;

Mean operator+(Mean a, const Mean& b) {
  a.terms_.insert(a.terms_.end(), b.terms_.begin(), b.terms_.end());
  return a;
}

Mean operator*(Mean a, double factor) {
  for (Mean::Term& term : a.terms_) {
    term.factor *= factor;
    if (!graph::finite_f32(term.factor))
      throw Error(ErrorCode::option, "Mean",
                  cat("factor ", factor, " makes the factor of '", term.name, "' ", term.factor,
                      "; it must be finite as an f32"));
  }
  return a;
}

Mean operator-(Mean a) { return std::move(a) * -1; }
Mean operator-(Mean a, const Mean& b) { return std::move(a) + -b; }
Mean operator*(double factor, Mean a) { return std::move(a) * factor; }
Mean operator/(Mean a, double divisor) { return std::move(a) * (1 / divisor); }

Var graph::only_value(const Vars& values) {
  if (values.size() == 1) return values.entries()[0].second;
  std::string names;
  for (const auto& [name, value] : values.entries()) names += (names.empty() ? "" : ", ") + name;
  throw Error(ErrorCode::data, "loss",
              cat("compares one output with one target, there are ", values.size(), " (", names,
                  "); write it as a function of (const Vars& out, const Vars& target)"));
}

Var LossFunction::single(const Vars& values) { return graph::only_value(values); }

Mean sample_mean(Var x, SampleMeanOptions options, Where where) {
  graph::require_batch("sample_mean", x, where);
  Layer layer(x, "sample_mean", options.name, where);
  return graph::row_term(options.name, reduce_rows(layer, "reduce_mean", x), where);
}

Mean per_batch(Var value, PerBatchOptions options, Where where) {
  if (options.name.empty())
    throw Error(ErrorCode::option, "per_batch.name", "missing; for example per_batch(value, {.name = \"penalty\"})",
                where);
  const graph::ValueType& type = Access::type(value);
  if (type.batched() || type.shape.rank() != 0 || type.dtype != DType::f32)
    throw Error(ErrorCode::shape, cat("per_batch '", options.name, "'"),
                cat("takes one f32 number of the whole micro-batch, got ", type,
                    type.batched() ? "; sample_mean() takes one a sample, batch_mean() makes one of all" : ""),
                where);
  const auto tracer = Access::tracer(value);
  graph::ValueId like = graph::kNoValue;  // the smallest value of as many rows as there are samples
  for (size_t i = 0; i < tracer->graph.values.size(); ++i) {
    const graph::Value& known = tracer->graph.values[i];
    if (known.producer < 0 || known.type.rows != 1 || known.type.dtype != DType::f32) continue;
    if (like == graph::kNoValue || known.type.elements() < tracer->graph.type(like).elements())
      like = static_cast<graph::ValueId>(i);
  }
  if (like == graph::kNoValue)
    throw Error(ErrorCode::state, cat("per_batch '", options.name, "'"), "nothing in this function has samples", where);
  Layer layer(value, "per_batch", options.name, where);
  const Var rows = reduce_rows(layer, "reduce_sum", graph::zeros_like(layer, Access::make(tracer, like)));
  return graph::row_term(options.name, layer.apply("add", {rows, value}, {}), where);
}

}  // namespace brisk
