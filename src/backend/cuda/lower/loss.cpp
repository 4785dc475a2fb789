// Losses over class labels, and accuracy.
#include "brisk/kernels/loss.h"

#include <algorithm>

#include "backend/cuda/lower/lower.h"

namespace brisk::backend::cuda {
namespace {

/// Index of the table of class weights; -1: there are none.
int class_weights(const Call& call, Lowering& lowering) {
  const std::vector<double>& weights = call.node.attributes.reals("class_weights");
  if (weights.empty()) return -1;
  return lowering.table(static_cast<int64_t>(weights.size() * sizeof(float)), [weights](const Operands&, void* host) {
    std::transform(weights.begin(), weights.end(), static_cast<float*>(host),
                   [](double weight) { return static_cast<float>(weight); });
  });
}

const float* weights_at(const Operands& o, int table) { return table < 0 ? nullptr : o.table<float>(table); }

/// What all losses have. by_class: the value with classes.
template <class Options>
Options loss(const Call& call, const graph::ValueType& by_class) {
  Options options;
  options.classes = by_class.shape[0];
  options.dtype = by_class.dtype;
  options.ignore_index = call.node.attributes.integer("ignore_index");
  options.label_smoothing = call.node.attributes.real("label_smoothing");
  options.rows = by_class.rows * call.samples;
  return options;
}

}  // namespace

void lower_softmax_cross_entropy(const Call& call, Lowering& lowering) {
  const int weights = class_weights(call, lowering);
  const auto options = loss<kernels::SoftmaxCrossEntropyOptions>(call, call.input(0));
  launch(call, lowering, "softmax_cross_entropy", [=](const Operands& o, CudaStream stream) {
    kernels::SoftmaxCrossEntropyOptions run = options;
    run.class_weights = weights_at(o, weights);
    run.labels = o.input<int64_t>(1);
    run.logits = o.in[0];
    run.loss = o.output<float>(0);
    run.node = o.node;
    run.probabilities = o.out[2];
    run.row_weight = o.output<float>(1);
    run.status = o.status;
    kernels::softmax_cross_entropy(run, stream);
  });
}

void lower_softmax_cross_entropy_gradient(const Call& call, Lowering& lowering) {
  const int weights = class_weights(call, lowering);
  const auto options = loss<kernels::SoftmaxCrossEntropyGradientOptions>(call, call.output(0));
  launch(call, lowering, "softmax_cross_entropy_gradient", [=](const Operands& o, CudaStream stream) {
    kernels::SoftmaxCrossEntropyGradientOptions run = options;
    run.class_weights = weights_at(o, weights);
    run.dlogits = o.out[0];
    run.dloss = o.input<float>(0);
    run.labels = o.input<int64_t>(1);
    run.probabilities = o.in[2];
    kernels::softmax_cross_entropy_gradient(run, stream);
  });
}

void lower_negative_log_likelihood(const Call& call, Lowering& lowering) {
  const int weights = class_weights(call, lowering);
  const auto options = loss<kernels::NegativeLogLikelihoodOptions>(call, call.input(0));
  launch(call, lowering, "negative_log_likelihood", [=](const Operands& o, CudaStream stream) {
    kernels::NegativeLogLikelihoodOptions run = options;
    run.class_weights = weights_at(o, weights);
    run.labels = o.input<int64_t>(1);
    run.log_probabilities = o.in[0];
    run.loss = o.output<float>(0);
    run.node = o.node;
    run.row_weight = o.output<float>(1);
    run.status = o.status;
    kernels::negative_log_likelihood(run, stream);
  });
}

void lower_negative_log_likelihood_gradient(const Call& call, Lowering& lowering) {
  const int weights = class_weights(call, lowering);
  const auto options = loss<kernels::NegativeLogLikelihoodGradientOptions>(call, call.output(0));
  launch(call, lowering, "negative_log_likelihood_gradient", [=](const Operands& o, CudaStream stream) {
    kernels::NegativeLogLikelihoodGradientOptions run = options;
    run.class_weights = weights_at(o, weights);
    run.dloss = o.input<float>(0);
    run.dx = o.out[0];
    run.labels = o.input<int64_t>(1);
    kernels::negative_log_likelihood_gradient(run, stream);
  });
}

void lower_accuracy(const Call& call, Lowering& lowering) {
  const graph::ValueType& logits = call.input(0);
  const kernels::AccuracyOptions options{.classes = logits.shape[0],
                                         .dtype = logits.dtype,
                                         .ignore_index = call.node.attributes.integer("ignore_index"),
                                         .rows = logits.rows * call.samples};
  launch(call, lowering, "accuracy", [=](const Operands& o, CudaStream stream) {
    kernels::AccuracyOptions run = options;
    run.correct = o.output<float>(0);
    run.labels = o.input<int64_t>(1);
    run.logits = o.in[0];
    run.row_weight = o.output<float>(1);
    kernels::accuracy(run, stream);
  });
}

}  // namespace brisk::backend::cuda
