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

/// A weighted sum of means over samples. Only sums and scalings of means exist, so that windows and tails stay exact.
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
  friend BRISK_EXPORT Mean operator*(Mean a, double factor);
  friend BRISK_EXPORT Mean operator*(double factor, Mean a);

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

struct CrossEntropyOptions {
  std::vector<double>
      class_weights{};  ///< one per class, >= 0; empty: all 1. The mean divides by the sum of the targets' weights
  int64_t ignore_index = -100;  ///< rows with this label count nothing
  double label_smoothing = 0;   ///< e in [0, 1): the target becomes (1 - e) onehot + e / classes (PyTorch's rule)
  std::string name{"loss"};
};
/// Mean over the valid rows of -log softmax(logits)[label]. logits: [N, classes] f32; labels: [N] i64 in [0, classes).
/// A label outside raises Error [data] that names the sample. No valid row at all: 0.
BRISK_EXPORT Mean cross_entropy(Var logits, Var labels, CrossEntropyOptions options = {}, Where where = Where::here());
BRISK_EXPORT LossFunction cross_entropy(CrossEntropyOptions options = {});

struct MseOptions {
  std::string name{"loss"};
};
/// Mean of (output - target)^2 over all elements. Shapes must be equal: nothing is broadcast.
BRISK_EXPORT Mean mse(Var output, Var target, MseOptions options = {}, Where where = Where::here());
BRISK_EXPORT LossFunction mse(MseOptions options = {});

struct HuberOptions {
  double delta = 1;  ///< > 0: quadratic below, linear above
  std::string name{"loss"};
};
/// Mean over all elements of 0.5 d^2 where |d| <= delta, else delta (|d| - 0.5 delta), d = output - target (PyTorch's
/// HuberLoss).
BRISK_EXPORT Mean huber(Var output, Var target, HuberOptions options = {}, Where where = Where::here());
BRISK_EXPORT LossFunction huber(HuberOptions options = {});

struct AccuracyOptions {
  int64_t ignore_index = -100;  ///< rows with this label count nothing
  std::string name{"accuracy"};
};
/// Share of rows whose largest logit is the label's (the first of equals; a row with NaN is wrong).
BRISK_EXPORT Mean accuracy(Var logits, Var labels, AccuracyOptions options = {}, Where where = Where::here());
BRISK_EXPORT MetricFunction accuracy(AccuracyOptions options = {});

}  // namespace brisk
