// brisk/loss.h: losses and metrics as means: a sum with its count, exact over any split of the samples.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "brisk/model.h"

namespace brisk {

/// A weighted sum of means over samples. Only sums and scalings of means exist, so that windows and tails stay exact;
/// what else a program makes of a whole micro-batch it asks for with per_batch().
class BRISK_EXPORT Mean {
 public:
  struct Term {
    double factor = 1;
    std::string name{};
    Var per_row{};                ///< [N]
    Var row_weight{};             ///< [N], or empty: every row counts 1
    bool explicit_count = false;  ///< the user asked for a count of its own (ignore_index, class weights)
    Where where{};
  };
  Mean() = default;
  explicit Mean(Term term) : terms_{std::move(term)} {}
  const std::vector<Term>& terms() const { return terms_; }
  friend BRISK_EXPORT Mean operator+(Mean a, const Mean& b);
  friend BRISK_EXPORT Mean operator-(Mean a, const Mean& b);
  friend BRISK_EXPORT Mean operator-(Mean a);
  /// Throws Error [option] when a factor is not finite as an f32.
  friend BRISK_EXPORT Mean operator*(Mean a, double factor);
  friend BRISK_EXPORT Mean operator*(double factor, Mean a);
  friend BRISK_EXPORT Mean operator/(Mean a, double divisor);

 private:
  std::vector<Term> terms_;
};

/// What a loss compares the outputs with, when it can tell: name, shape and element type of each target.
using InferTargets = std::function<std::vector<Field>(const Vars& outputs)>;

/// A function of (outputs, targets) that returns a Mean. From (Var, Var) or (const Vars&, const Vars&) callables.
class LossFunction {
 public:
  template <class F>
  requires(!std::is_same_v<std::decay_t<F>, LossFunction>) LossFunction(F f, InferTargets infer = {})
      : infer_(std::move(infer)) {  // NOLINT
    if constexpr (std::is_invocable_v<F&, Var, Var>) {
      call_ = [f](const Vars& out, const Vars& target) mutable { return Mean(f(single(out), single(target))); };
    } else {
      call_ = [f](const Vars& out, const Vars& target) mutable { return Mean(f(out, target)); };
    }
  }
  Mean operator()(const Vars& outputs, const Vars& targets) const { return call_(outputs, targets); }
  const InferTargets& infer_targets() const { return infer_; }

 private:
  BRISK_EXPORT static Var single(const Vars& values);
  std::function<Mean(const Vars&, const Vars&)> call_;
  InferTargets infer_;
};
using MetricFunction = LossFunction;

struct SampleMeanOptions {
  std::string name{"loss"};
};
/// Mean over all samples of the mean of each sample's elements. x: [N, ...].
BRISK_EXPORT Mean sample_mean(Var x, SampleMeanOptions options = {}, Where where = Where::here());

struct PerBatchOptions {
  std::string name{};  ///< required: it shows in the logs that this term is not a mean over samples
};
/// One number that was computed from a whole micro-batch (a value without a batch, as batch_mean() gives). Over several
/// micro-batches it is the mean of theirs, each weighed by its rows: unlike all other terms, it depends on how a window
/// or a data set is split.
BRISK_EXPORT Mean per_batch(Var value, PerBatchOptions options, Where where = Where::here());

// The losses below have two forms: a function of values, and one of options alone that makes a LossFunction for a Step
// or Trainer of one output and one target. Shapes of output and target must be equal, nothing is broadcast: Error
// [shape] "mse: output [N, 1], target [N]; reshape one". What is NaN in a sample makes the loss NaN.

struct CrossEntropyOptions {
  std::vector<double>
      class_weights{};  ///< one per class, >= 0; empty: all 1. The mean divides by the sum of the targets' weights
  int64_t ignore_index = -100;  ///< rows with this label count nothing
  double label_smoothing = 0;   ///< e in [0, 1): the target becomes (1 - e) target + e / classes (PyTorch's rule)
  std::string name{"loss"};
};
/// Mean over the rows of -log softmax(logits)[target]. logits: [N, classes] f32. target: labels [N] i64 in [0,
/// classes), or probabilities [N, classes] f32, for which the loss is -sum over the classes of target x log
/// softmax(logits) (mixup, teachers; class_weights then weigh the classes' parts, the mean is over all rows;
/// ignore_index is for labels). A label outside raises Error [data] that names the sample. No valid row at all: 0. The
/// second form takes labels; with StepOptions.targets =
/// {{"target", {classes}}}, probabilities.
BRISK_EXPORT Mean cross_entropy(Var logits, Var target, CrossEntropyOptions options = {}, Where where = Where::here());
BRISK_EXPORT LossFunction cross_entropy(CrossEntropyOptions options = {}, Where where = Where::here());

struct BceWithLogitsOptions {
  std::string name{"loss"};
  double pos_weight = 1;  ///< >= 0: factor of the part that wants a 1
};
/// Mean over all elements of -pos_weight t log sigmoid(x) - (1 - t) log(1 - sigmoid(x)), exact for large |x| too
/// (PyTorch's BCEWithLogitsLoss). logits: [N, ...] f32; target: the same shape, or one number for all elements; in [0,
/// 1].
BRISK_EXPORT Mean bce_with_logits(Var logits, Var target, BceWithLogitsOptions options = {},
                                  Where where = Where::here());
BRISK_EXPORT Mean bce_with_logits(Var logits, double target, BceWithLogitsOptions options = {},
                                  Where where = Where::here());
BRISK_EXPORT LossFunction bce_with_logits(BceWithLogitsOptions options = {}, Where where = Where::here());

struct MseOptions {
  std::string name{"loss"};
};
/// Mean of (output - target)^2 over all elements.
BRISK_EXPORT Mean mse(Var output, Var target, MseOptions options = {}, Where where = Where::here());
BRISK_EXPORT LossFunction mse(MseOptions options = {}, Where where = Where::here());

struct L1Options {
  std::string name{"loss"};
};
/// Mean of |output - target| over all elements; its gradient is 0 where they are equal.
BRISK_EXPORT Mean l1(Var output, Var target, L1Options options = {}, Where where = Where::here());
BRISK_EXPORT LossFunction l1(L1Options options = {}, Where where = Where::here());

struct HuberOptions {
  double delta = 1;  ///< > 0: quadratic below, linear above
  std::string name{"loss"};
};
/// Mean over all elements of 0.5 d^2 where |d| <= delta, else delta (|d| - 0.5 delta), d = output - target (PyTorch's
/// HuberLoss).
BRISK_EXPORT Mean huber(Var output, Var target, HuberOptions options = {}, Where where = Where::here());
BRISK_EXPORT LossFunction huber(HuberOptions options = {}, Where where = Where::here());

struct KlDivergenceOptions {
  std::string name{"loss"};
};
/// Mean over the samples of KL(target || output): the sum over a sample's elements of t (log t - x), 0 where t is 0. x:
/// log probabilities [N, ...], as log_softmax() gives; t: probabilities of the same shape. PyTorch's kl_div with
/// reduction "batchmean" (its "mean" divides by the number of elements too).
BRISK_EXPORT Mean kl_divergence(Var log_probabilities, Var target, KlDivergenceOptions options = {},
                                Where where = Where::here());
BRISK_EXPORT LossFunction kl_divergence(KlDivergenceOptions options = {}, Where where = Where::here());

struct TripletMarginOptions {
  double epsilon = 1e-6;  ///< >= 0: added to each difference
  double margin = 1;      ///< >= 0: how much farther the negative must be
  std::string name{"loss"};
};
/// Mean over the samples of max(|anchor - positive| - |anchor - negative| + margin, 0), |d| = sqrt(sum of (d +
/// epsilon)^2) over a sample's elements (PyTorch's TripletMarginLoss with p = 2). All three: [N, ...] of one shape. One
/// form only: it has no target.
BRISK_EXPORT Mean triplet_margin(Var anchor, Var positive, Var negative, TripletMarginOptions options = {},
                                 Where where = Where::here());

struct AccuracyOptions {
  int64_t ignore_index = -100;  ///< rows with this label count nothing
  std::string name{"accuracy"};
};
/// Share of rows whose largest logit is the label's (the first of equals; a row with NaN is wrong).
BRISK_EXPORT Mean accuracy(Var logits, Var labels, AccuracyOptions options = {}, Where where = Where::here());
BRISK_EXPORT MetricFunction accuracy(AccuracyOptions options = {}, Where where = Where::here());

}  // namespace brisk
