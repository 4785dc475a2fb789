// Losses and metrics as users write them: nodes that give one value a row, wrapped in a Mean.
#include "brisk/loss.h"

#include <limits>
#include <optional>

#include "brisk/ops/shape.h"
#include "graph/loss_rows.h"

namespace brisk {
namespace {

using graph::Access;
using graph::Attributes;
using graph::finite_f32;
using graph::Layer;
using graph::reduce_rows;
using graph::require_batch;
using graph::row_term;

/// Elementwise losses do not broadcast: [N, 1] against [N] is a mistake that would cost a quiet N x N.
void require_same(const char* what, const Var& output, const Var& target, Where where) {
  const graph::ValueType &a = Access::type(output), &b = Access::type(target);
  if (a.dtype != b.dtype)
    throw Error(ErrorCode::shape, what,
                cat("output is ", name(a.dtype), ", target is ", name(b.dtype), "; both must be f32"), where);
  if (!(a == b)) throw Error(ErrorCode::shape, what, cat("output ", a, ", target ", b, "; reshape one"), where);
  require_batch(what, output, where);
}

/// Elementwise steps under one loss's name.
class Steps {
 public:
  explicit Steps(Layer& layer) : layer_(layer) {}
  Var operator()(const char* op, Var x) { return layer_.apply(op, {x}, {}); }
  Var operator()(const char* op, Var a, Var b) { return layer_.apply(op, {a, b}, {}); }
  Var scale(Var x, double factor) { return factor == 1 ? x : layer_.apply("scale", {x}, {{"factor", factor}}); }
  Var add(Var x, double value) { return value == 0 ? x : layer_.apply("add_scalar", {x}, {{"value", value}}); }
  Var is_zero(Var x) {
    return layer_.apply("compare_scalar", {x}, {{"relation", std::string("equal")}, {"value", 0.0}});
  }
  /// f where t is not 0, else 0 (t itself), also where f is not finite.
  Var unless_zero(Var t, Var f) { return layer_.apply("where", {is_zero(t), t, f}, {}); }

 private:
  Layer& layer_;
};

std::vector<Field> like_output(const Vars& outputs) {
  const graph::ValueType& type = Access::type(graph::only_value(outputs));
  return {Field{"target", type.shape, DType::f32}};
}

std::vector<Field> label_of_output(const Vars& outputs) {
  graph::only_value(outputs);
  return {Field{"target", {}, DType::i64}};
}

/// The weight output of a loss node that also gives it.
Var second_output(const Var& first) {
  const auto tracer = Access::tracer(first);
  const graph::Graph& graph = tracer->graph;
  const auto& node = graph.nodes[static_cast<size_t>(graph.value(Access::value(first)).producer)];
  return Access::make(tracer, node.outputs[1]);
}

void check_cross_entropy(const CrossEntropyOptions& options, Where where) {
  const auto refuse = [&](const char* field, double value, const char* allowed) {
    throw Error(ErrorCode::option, cat("cross_entropy.", field, " = ", value), allowed, where);
  };
  if (!(options.label_smoothing >= 0 && options.label_smoothing < 1))
    refuse("label_smoothing", options.label_smoothing, "must be in [0, 1)");
  for (const double weight : options.class_weights)
    if (!(weight >= 0 && finite_f32(weight)))
      refuse("class_weights", weight, "each must be finite as an f32, at least 0");
}

Mean entropy_of_labels(Layer& layer, Var log_probabilities, Var labels, const CrossEntropyOptions& options,
                       Where where) {
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

Mean entropy_of_probabilities(Layer& layer, Var log_probabilities, Var target, const CrossEntropyOptions& options,
                              Where where) {
  if (options.ignore_index != CrossEntropyOptions{}.ignore_index)
    throw Error(ErrorCode::option, cat("cross_entropy.ignore_index = ", options.ignore_index),
                "is for labels; the target is probabilities", where);
  const double smoothing = options.label_smoothing;
  const int64_t classes = Access::type(target).shape[0];
  Steps steps(layer);
  Var wanted = steps.add(steps.scale(target, 1 - smoothing), smoothing / static_cast<double>(classes));
  if (!options.class_weights.empty()) wanted = steps("mul", wanted, constant(options.class_weights, {classes}, where));
  const Var products = steps.unless_zero(wanted, steps("mul", wanted, log_probabilities));
  return row_term(options.name, steps.scale(reduce_rows(layer, "reduce_sum", products), -1), where);
}

void check_bce(const BceWithLogitsOptions& options, Where where) {
  if (!(options.pos_weight >= 0 && finite_f32(options.pos_weight)))
    throw Error(ErrorCode::option, cat("bce_with_logits.pos_weight = ", options.pos_weight),
                "must be finite as an f32, at least 0", where);
}

}  // namespace

Mean cross_entropy(Var logits, Var target, CrossEntropyOptions options, Where where) {
  check_cross_entropy(options, where);
  Layer layer(logits, "cross_entropy", options.name, where);
  const auto refuse = [&](const std::string& message) {
    throw Error(ErrorCode::shape, cat("cross_entropy '", options.name, "'"), message, where);
  };
  const graph::ValueType &type = Access::type(logits), &given = Access::type(target);
  if (type.dtype != DType::f32 || type.shape.rank() != 1 || !type.batched())
    refuse(cat("logits must be [N, classes], got ", type));
  const int64_t classes = type.shape[0];
  if (const size_t weights = options.class_weights.size(); weights != 0 && static_cast<int64_t>(weights) != classes)
    throw Error(ErrorCode::option, "cross_entropy.class_weights",
                cat("has ", weights, " numbers; it takes one for each of the ", classes, " classes, or none"), where);
  const bool labels = given.dtype == DType::i64 && given.shape.rank() == 0;
  if (!labels && !(given == type))
    refuse(cat("labels must be [N] i64 (class indices), or probabilities ", type, " f32, got ", given, " ",
               name(given.dtype)));
  const Var log_probabilities = layer.apply("log_softmax", {logits}, {{"axis", int64_t{0}}});
  return labels ? entropy_of_labels(layer, log_probabilities, target, options, where)
                : entropy_of_probabilities(layer, log_probabilities, target, options, where);
}

LossFunction cross_entropy(CrossEntropyOptions options, Where where) {
  return {[options, where](Var logits, Var target) { return cross_entropy(logits, target, options, where); },
          label_of_output};
}

// -log sigmoid(x) = softplus(-x), -log(1 - sigmoid(x)) = softplus(x): neither ever takes the difference of two large
// ones.
Mean bce_with_logits(Var logits, Var target, BceWithLogitsOptions options, Where where) {
  check_bce(options, where);
  require_same("bce_with_logits", logits, target, where);
  Layer layer(logits, "bce_with_logits", options.name, where);
  Steps steps(layer);
  const Var one = steps("mul", target, steps("softplus", steps.scale(logits, -1)));
  const Var zero = steps("mul", steps.add(steps.scale(target, -1), 1), steps("softplus", logits));
  const Var sum = steps("add", steps.scale(one, options.pos_weight), zero);
  return row_term(options.name, reduce_rows(layer, "reduce_mean", sum), where);
}

Mean bce_with_logits(Var logits, double target, BceWithLogitsOptions options, Where where) {
  check_bce(options, where);
  if (!(target >= 0 && target <= 1))
    throw Error(ErrorCode::option, cat("bce_with_logits target = ", target), "must be in [0, 1]", where);
  require_batch("bce_with_logits", logits, where);
  Layer layer(logits, "bce_with_logits", options.name, where);
  Steps steps(layer);
  std::optional<Var> sum;
  if (target > 0) sum = steps.scale(steps("softplus", steps.scale(logits, -1)), options.pos_weight * target);
  if (target < 1) {
    const Var zero = steps.scale(steps("softplus", logits), 1 - target);
    sum = sum ? steps("add", *sum, zero) : zero;
  }
  return row_term(options.name, reduce_rows(layer, "reduce_mean", *sum), where);
}

LossFunction bce_with_logits(BceWithLogitsOptions options, Where where) {
  return {[options, where](Var logits, Var target) { return bce_with_logits(logits, target, options, where); },
          like_output};
}

Mean mse(Var output, Var target, MseOptions options, Where where) {
  require_same("mse", output, target, where);
  Layer layer(output, "mse", options.name, where);
  Steps steps(layer);
  const Var difference = steps("sub", output, target);
  return row_term(options.name, reduce_rows(layer, "reduce_mean", steps("mul", difference, difference)), where);
}

LossFunction mse(MseOptions options, Where where) {
  return {[options, where](Var output, Var target) { return mse(output, target, options, where); }, like_output};
}

Mean l1(Var output, Var target, L1Options options, Where where) {
  require_same("l1", output, target, where);
  Layer layer(output, "l1", options.name, where);
  Steps steps(layer);
  const Var distance = steps("abs", steps("sub", output, target));
  return row_term(options.name, reduce_rows(layer, "reduce_mean", distance), where);
}

LossFunction l1(L1Options options, Where where) {
  return {[options, where](Var output, Var target) { return l1(output, target, options, where); }, like_output};
}

Mean huber(Var output, Var target, HuberOptions options, Where where) {
  // With denormals flushed a smaller one would be 0, and so would the loss.
  if (!(options.delta >= std::numeric_limits<float>::min() && finite_f32(options.delta)))
    throw Error(ErrorCode::option, cat("huber.delta = ", options.delta), "must be finite and above 1.2e-38", where);
  require_same("huber", output, target, where);
  Layer layer(output, "huber", options.name, where);
  const Var difference = layer.apply("sub", {output, target}, {});
  const Var losses = layer.apply("huber", {difference}, {{"delta", options.delta}});
  return row_term(options.name, reduce_rows(layer, "reduce_mean", losses), where);
}

LossFunction huber(HuberOptions options, Where where) {
  return {[options, where](Var output, Var target) { return huber(output, target, options, where); }, like_output};
}

Mean kl_divergence(Var log_probabilities, Var target, KlDivergenceOptions options, Where where) {
  require_same("kl_divergence", log_probabilities, target, where);
  Layer layer(log_probabilities, "kl_divergence", options.name, where);
  Steps steps(layer);
  const Var log_target = steps("log", steps("add", target, steps.is_zero(target)));  // log 1 where the target is 0
  const Var terms = steps("mul", target, steps("sub", log_target, log_probabilities));
  return row_term(options.name, reduce_rows(layer, "reduce_sum", steps.unless_zero(target, terms)), where);
}

LossFunction kl_divergence(KlDivergenceOptions options, Where where) {
  return {[options, where](Var output, Var target) { return kl_divergence(output, target, options, where); },
          like_output};
}

Mean triplet_margin(Var anchor, Var positive, Var negative, TripletMarginOptions options, Where where) {
  for (const auto& [field, value] : {std::pair("epsilon", options.epsilon), std::pair("margin", options.margin)})
    if (!(value >= 0 && finite_f32(value)))
      throw Error(ErrorCode::option, cat("triplet_margin.", field, " = ", value),
                  "must be finite as an f32, at least 0", where);
  require_same("triplet_margin", anchor, positive, where);
  require_same("triplet_margin", anchor, negative, where);
  Layer layer(anchor, "triplet_margin", options.name, where);
  Steps steps(layer);
  const auto distance = [&](Var other) {
    const Var difference = steps.add(steps("sub", anchor, other), options.epsilon);
    return steps("sqrt", reduce_rows(layer, "reduce_sum", steps("mul", difference, difference)));
  };
  const Var to_positive = distance(positive), to_negative = distance(negative);
  const Var losses = steps("relu", steps.add(steps("sub", to_positive, to_negative), options.margin));
  return row_term(options.name, losses, where);
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

MetricFunction accuracy(AccuracyOptions options, Where where) {
  return {[options, where](Var logits, Var labels) { return accuracy(logits, labels, options, where); },
          label_of_output};
}

}  // namespace brisk
