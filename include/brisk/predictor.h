// brisk/predictor.h: inference inside a program, beside training, from any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "brisk/feed.h"
#include "brisk/field.h"
#include "brisk/model.h"
#include "brisk/plan.h"
#include "brisk/precision.h"

namespace brisk {

/// Fields out of range are refused with Error [option].
struct PredictorOptions {
  /// Rows of the plans that are made, each at least 1. A call of n rows is split over them, the largest first:
  /// {1, 8, 64} runs 77 = 64 + 8 + 5 x 1. A plan of one row is made in any case, so that every n has a split.
  std::vector<int64_t> batches = {1};
  /// Calls that run at once, each in memory of its own; more wait for their turn, first come first served. Never more
  /// than processors allow: calls that share one would only interrupt each other.
  int concurrency = 1;
  Device device = cpu();  ///< the only one in this release; it also predicts with a model that a GPU trains
  Precision precision = Precision::f32;  ///< 16-bit ones round the values and activations as training does
  int threads = 1;  ///< that work on one call; 1: the caller's alone; 0: as many as this process is allowed
};

/// Of the calls that have returned so far; durations count the wait for a turn, and are exact to 2 %.
struct PredictorStatistics {
  int64_t count = 0;
  double p50_us = 0;  ///< median
  double p99_us = 0;
};

/// A model compiled for inference: dropout off, running statistics used, batch_norm folded into the convolution or
/// linear layer before it. Reads a snapshot of the model's values: neither training nor the end of the Model object
/// changes what it returns, publish() does. Moves, does not copy; run, publish and the readers may be called by all
/// threads at once.
class BRISK_EXPORT Predictor {
 public:
  /// Takes all memory: plans and arenas, and a copy of the values. Throws Error [option], [backend] or [memory].
  explicit Predictor(const Model& model, PredictorOptions options = {});
  Predictor(Predictor&&) noexcept;
  Predictor& operator=(Predictor&&) noexcept;
  ~Predictor();

  /// Any number of rows n >= 0, for a model of one input and one output: input [n, ...], output [n, ...], both host
  /// memory that does not overlap. No allocation, and no lock while computing. Throws Error [data] naming the field,
  /// what is wanted and what is given.
  void run(const ConstView& input, const View& output) const;
  /// The same by name: all inputs, and those outputs that are wanted.
  void run(const Feed& inputs, const Fetch& outputs) const;

  /// Makes the values that the model has now those of every call that begins later; calls under way end with those that
  /// they began with. Blocks no caller. A step of the model that runs in another thread is waited for. Its first call
  /// takes the memory of a second snapshot. Throws Error [weights] when the model is of another structure.
  void publish(const Model& model);
  /// Publications so far.
  int64_t version() const;

  PredictorStatistics statistics() const;
  std::vector<Field> inputs() const;
  std::vector<Field> outputs() const;
  /// Rows of the plans, the largest first.
  std::vector<int64_t> batches() const;
  /// Calls that run at once.
  int concurrency() const;
  /// The plan of so many rows (0: the largest). Throws Error [option] when there is none.
  Plan plan(int64_t batch = 0) const;
  /// What the arenas hold: activations and scratch of each call that may run at once, and the snapshots.
  int64_t bytes() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace brisk
