// What the loop asks of a step beyond its public face.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "brisk/step.h"

namespace brisk::train {

/// Gives the optimizer's schedules their lengths.
void resolve_schedule(Step& step, int64_t updates_per_epoch, int64_t total_updates);

/// Rows that count, by term, for the terms that have a count of their own (ignored labels, class weights); empty: none.
std::vector<std::pair<std::string, double>> count_targets(Step& step, const Feed& feed);

/// Throws Error [data] naming the layer when a training micro-batch of so many rows cannot be normalised.
void check_rows(Step& step, int64_t rows);

/// Has each evaluation give the model's outputs, which it returns; before the step's first plan.
std::vector<Field> keep_outputs(Step& step);
/// One evaluation that writes the outputs that keep_outputs() returned, row-major.
void evaluate(Step& step, const Feed& feed, const std::vector<void*>& outputs);

/// Says how messages name a row of the next feeds (null: by its number); returns what did so before.
using DescribeRow = std::function<std::string(int64_t row, int64_t feeds_ago)>;
DescribeRow describe_rows(Step& step, DescribeRow describe);

/// On a device that runs ahead of the host, what a step did is known up to two runs later. Sums of what is known;
/// micro-batches of training so far, and those that are not known; updates if all of them succeed.
StepTotals read_reported(Step& step);
int64_t micro_batches(const Step& step);
int64_t unreported_micro_batches(const Step& step);
int64_t expected_updates(const Step& step);
/// Waits for all runs; throws what one met.
void take_reports(Step& step);
/// The same, whatever they met.
void forget_reports(Step& step);
/// While it lives, `call` is called whenever the end of a window has been reported.
class WindowReports {
 public:
  WindowReports(Step& step, std::function<void()> call);
  ~WindowReports();
  WindowReports(const WindowReports&) = delete;
  WindowReports& operator=(const WindowReports&) = delete;

 private:
  Step& step_;
};

/// "28 MB, cpu avx512, f32": bytes of the plan of a whole micro-batch, target, precision.
std::string machine_text(const Step& step);

}  // namespace brisk::train
