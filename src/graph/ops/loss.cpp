// Losses of classes and their metrics: per row, with a weight per row, so that means over any split are exact.
#include <cmath>

#include "graph/ops/rules.h"

namespace brisk::graph {
namespace {

// Attributes of all class losses: weights of `classes` classes (or none) and label smoothing.
void check_options(const InferContext& c, int64_t classes) {
  real_in(c, "label_smoothing", 0, 1);
  const std::vector<double>& weights = c.attributes().reals("class_weights");
  if (!weights.empty() && static_cast<int64_t>(weights.size()) != classes) {
    c.fail(cat("class_weights must have one number for each of the ", classes, " classes, got ", weights.size()));
  }
  for (const double weight : weights) {
    if (!(weight >= 0 && std::isfinite(weight))) {
      c.fail(cat("class_weights has ", weight, ": must be finite and at least 0"));
    }
  }
}

void check_labels(const InferContext& c, int i) { want_batched(c, i, "labels", "[N]", 0, DType::i64); }

Types infer_nll(const InferContext& c) {
  const ValueType& x = want_batched(c, 0, "input", "[N, classes]", 1);
  check_labels(c, 1);
  check_options(c, x.shape[0]);
  return {batched(x.rows, {}), batched(x.rows, {})};
}

Types infer_nll_gradient(const InferContext& c) {
  const ValueType& dloss = want_batched(c, 0, "gradient", "[N]", 0);
  check_labels(c, 1);
  const int64_t classes = integer_in(c, "classes", 1, INT64_MAX);
  check_options(c, classes);
  return {batched(dloss.rows, {classes})};
}

Types infer_cross_entropy(const InferContext& c) {
  Types types = infer_nll(c);
  types.push_back(c.input(0));
  return types;
}

Types infer_cross_entropy_gradient(const InferContext& c) {
  want_batched(c, 0, "gradient", "[N]", 0);
  check_labels(c, 1);
  const ValueType& probabilities = want_batched(c, 2, "probabilities", "[N, classes]", 1);
  check_options(c, probabilities.shape[0]);
  return {probabilities};
}

Types infer_accuracy(const InferContext& c) {
  const ValueType& x = want_batched(c, 0, "input", "[N, classes]", 1);
  check_labels(c, 1);
  return {batched(x.rows, {}), batched(x.rows, {})};
}

void derive_nll(Derivation& d) {
  if (!d.wants(0) || d.output_gradient() == kNoValue) return;
  Attributes attributes = d.attributes();
  attributes.set("classes", d.type(d.input(0)).shape[0]);
  d.set(0, d.emit("negative_log_likelihood_gradient", {d.output_gradient(), d.input(1)}, std::move(attributes)));
}

void derive_cross_entropy(Derivation& d) {
  if (!d.wants(0) || d.output_gradient() == kNoValue) return;
  d.set(0, d.emit("softmax_cross_entropy_gradient", {d.output_gradient(), d.input(1), d.output(2)}, d.attributes()));
}

}  // namespace

std::span<const OpInfo> loss_ops() {
  const std::vector<AttributeInfo> options = {
      {"class_weights", Kind::reals}, {"ignore_index", Kind::integer}, {"label_smoothing", Kind::real}};
  std::vector<AttributeInfo> with_classes = options;
  with_classes.push_back({"classes", Kind::integer});
  static const std::vector<OpInfo> ops = {
      {.name = "negative_log_likelihood",
       .minimum_inputs = 2,
       .maximum_inputs = 2,
       .outputs = 2,
       .attributes = options,
       .infer = infer_nll,
       .derive = derive_nll,
       .backward_reads = Reads::inputs,
       .flops = flops_per_input<2>},
      {.name = "negative_log_likelihood_gradient",
       .minimum_inputs = 2,
       .maximum_inputs = 2,
       .attributes = with_classes,
       .infer = infer_nll_gradient},
      {.name = "softmax_cross_entropy",
       .minimum_inputs = 2,
       .maximum_inputs = 2,
       .outputs = 3,
       .attributes = options,
       .infer = infer_cross_entropy,
       .derive = derive_cross_entropy,
       .backward_reads = Reads::both,
       .flops = flops_per_input<7>},
      {.name = "softmax_cross_entropy_gradient",
       .minimum_inputs = 3,
       .maximum_inputs = 3,
       .attributes = options,
       .infer = infer_cross_entropy_gradient,
       .flops = [](const Graph& g,
                   const Node& n) { return 2.0 * static_cast<double>(g.type(n.outputs[0]).elements()); }},
      {.name = "accuracy",
       .minimum_inputs = 2,
       .maximum_inputs = 2,
       .outputs = 2,
       .attributes = {{"ignore_index", Kind::integer}},
       .infer = infer_accuracy,
       .flops = flops_per_input<1>},
  };
  return ops;
}

}  // namespace brisk::graph
