// Losses and metrics as users write them: nodes that give one value a row, wrapped in a Mean.
#include "brisk/loss.h"

#include <cmath>
#include <limits>
#include <numeric>

#include "core/text.h"
#include "graph/trace.h"

namespace brisk {
namespace {

using graph::Access;
using graph::Attributes;
using graph::Layer;

/// As the kernels hold it.
bool finite(double value) { return std::isfinite(static_cast<float>(value)); }

/// [N, ...] -> [N]: the mean of each sample's elements.
Var row_mean(Layer& layer, Var x) {
  const graph::ValueType& type = Access::type(x);
  if (type.shape.rank() == 0) return x;
  std::vector<int64_t> axes(static_cast<size_t>(type.shape.rank()));
  std::iota(axes.begin(), axes.end(), int64_t{0});
  return layer.apply("reduce_mean", {x}, {{"axes", axes}, {"keep", false}});
}

void require_batch(const char* what, const Var& x, Where where) {
  if (!Access::type(x).batched())
    throw Error(ErrorCode::shape, what, cat("needs one value a sample, got ", Access::type(x), " without a batch"),
                where);
}

/// Elementwise losses do not broadcast: [N, 1] against [N] is a mistake that would cost a quiet N x N.
void require_same(const char* what, const Var& output, const Var& target, Where where) {
  const graph::ValueType &a = Access::type(output), &b = Access::type(target);
  if (a.dtype != b.dtype)
    throw Error(ErrorCode::shape, what,
                cat("output is ", name(a.dtype), ", target is ", name(b.dtype), "; both must be f32"), where);
  if (!(a == b)) throw Error(ErrorCode::shape, what, cat("output ", a, ", target ", b, "; reshape one"), where);
  require_batch(what, output, where);
}

Mean row_term(const std::string& name, Var per_row, Where where) {
  Mean::Term term;
  term.name = name;
  term.per_row = per_row;
  term.where = where;
  return Mean(term);
}

Var only(const Vars& values) {
  if (values.size() == 1) return values.entries()[0].second;
  std::string names;
  for (const auto& [name, value] : values.entries()) names += (names.empty() ? "" : ", ") + name;
  throw Error(ErrorCode::data, "loss",
              cat("compares one output with one target, there are ", values.size(), " (", names,
                  "); write it as a function of (const Vars& out, const Vars& target)"));
}

std::vector<Field> like_output(const Vars& outputs) {
  const graph::ValueType& type = Access::type(only(outputs));
  return {Field{"target", type.shape, DType::f32}};
}

std::vector<Field> label_of_output(const Vars& outputs) {
  only(outputs);
  return {Field{"target", {}, DType::i64}};
}

/// The weight output of a loss node that also gives it.
Var second_output(const Var& first) {
  const auto tracer = Access::tracer(first);
  const graph::Graph& graph = tracer->graph;
  const auto& node = graph.nodes[static_cast<size_t>(graph.value(Access::value(first)).producer)];
  return Access::make(tracer, node.outputs[1]);
}

}  // namespace

Mean operator+(Mean a, const Mean& b) {
  a.terms_.insert(a.terms_.end(), b.terms_.begin(), b.terms_.end());
  return a;
}

Mean operator*(Mean a, double factor) {
  for (Mean::Term& term : a.terms_) {
    term.factor *= factor;
    if (!finite(term.factor))
      throw Error(ErrorCode::option, "Mean",
                  cat("factor ", factor, " makes the factor of '", term.name, "' ", term.factor,
                      "; it must be finite as an f32"));
  }
  return a;
}

Mean operator*(double factor, Mean a) { return std::move(a) * factor; }

Var LossFunction::single(const Vars& values) { return only(values); }

Mean sample_mean(Var x, SampleMeanOptions options, Where where) {
  require_batch("sample_mean", x, where);
  Layer layer(x, "sample_mean", options.name, where);
  return row_term(options.name, row_mean(layer, x), where);
}

Mean cross_entropy(Var logits, Var labels, CrossEntropyOptions options, Where where) {
  const auto refuse = [&](const char* field, double value, const char* allowed) {
    throw Error(ErrorCode::option, cat("cross_entropy.", field, " = ", value), allowed, where);
  };
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1))
    refuse("label_smoothing", options.label_smoothing, "must be in [0, 1)");
  for (const double weight : options.class_weights)
    if (!(weight >= 0 && finite(weight))) refuse("class_weights", weight, "each must be finite as an f32, at least 0");
  Layer layer(logits, "cross_entropy", options.name, where);
  const graph::ValueType& type = Access::type(logits);
  if (type.dtype != DType::f32 || type.shape.rank() != 1 || !type.batched())
    throw Error(ErrorCode::shape, cat("cross_entropy '", options.name, "'"),
                cat("logits must be [N, classes], got ", type), where);
  const int64_t classes = type.shape[0];
  if (const size_t weights = options.class_weights.size(); weights != 0 && static_cast<int64_t>(weights) != classes)
    throw Error(ErrorCode::option, "cross_entropy.class_weights",
                cat("has ", weights, " numbers; it takes one for each of the ", classes, " classes, or none"), where);
  const graph::ValueType& label_type = Access::type(labels);
  if (label_type.dtype != DType::i64 || label_type.shape.rank() != 0)
    throw Error(ErrorCode::shape, cat("cross_entropy '", options.name, "'"),
                cat("labels must be [N] i64 (class indices), got ", label_type, " ", name(label_type.dtype)), where);
  const Var log_probabilities = layer.apply("log_softmax", {logits}, {{"axis", int64_t{0}}});
  Mean::Term term;
  term.name = options.name;
  term.per_row = layer.apply("negative_log_likelihood", {log_probabilities, labels},
                             {{"class_weights", options.class_weights},
                              {"ignore_index", options.ignore_index},
                              {"label_smoothing", options.label_smoothing}});
  term.row_weight = second_output(term.per_row);
  term.explicit_count = options.ignore_index != CrossEntropyOptions{}.ignore_index || !options.class_weights.empty();
  term.where = where;
  return Mean(term);
}

LossFunction cross_entropy(CrossEntropyOptions options) {
  return {[options](Var logits, Var labels) { return cross_entropy(logits, labels, options, Where{}); },
          label_of_output};
}

Mean mse(Var output, Var target, MseOptions options, Where where) {
  require_same("mse", output, target, where);
  Layer layer(output, "mse", options.name, where);
  const Var difference = layer.apply("sub", {output, target}, {});
  return row_term(options.name, row_mean(layer, layer.apply("mul", {difference, difference}, {})), where);
}

LossFunction mse(MseOptions options) {
  return {[options](Var output, Var target) { return mse(output, target, options, Where{}); }, like_output};
}

Mean huber(Var output, Var target, HuberOptions options, Where where) {
  // With denormals flushed a smaller one would be 0, and so would the loss.
  if (!(options.delta >= std::numeric_limits<float>::min() && finite(options.delta)))
    throw Error(ErrorCode::option, cat("huber.delta = ", options.delta), "must be finite and above 1.2e-38", where);
  require_same("huber", output, target, where);
  Layer layer(output, "huber", options.name, where);
  const Var difference = layer.apply("sub", {output, target}, {});
  return row_term(options.name, row_mean(layer, layer.apply("huber", {difference}, {{"delta", options.delta}})), where);
}

LossFunction huber(HuberOptions options) {
  return {[options](Var output, Var target) { return huber(output, target, options, Where{}); }, like_output};
}

Mean accuracy(Var logits, Var labels, AccuracyOptions options, Where where) {
  Layer layer(logits, "accuracy", options.name, where);
  Mean::Term term;
  term.name = options.name;
  term.per_row = layer.apply("accuracy", {logits, labels}, {{"ignore_index", options.ignore_index}});
  term.row_weight = second_output(term.per_row);
  term.where = where;
  return Mean(term);
}

MetricFunction accuracy(AccuracyOptions options) {
  return {[options](Var logits, Var labels) { return accuracy(logits, labels, options, Where{}); }, label_of_output};
}

}  // namespace brisk
