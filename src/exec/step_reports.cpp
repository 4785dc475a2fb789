// Step::Impl, what runs report: their sums, updates and errors, in the order of the runs. A device that runs ahead of
// the host is told of its next runs before the last ones have ended, so all of this may come two runs late.
#include <algorithm>
#include <cmath>

#include "core/text.h"
#include "exec/faults.h"
#include "exec/step_impl.h"
#include "graph/op_table.h"
#include "optim/schedule_body.h"

namespace brisk {

using backend::Fault;
using graph::Phase;

const Step::Impl::Pending& Step::Impl::pending(int index) const {
  return pending_[static_cast<size_t>(first_pending_ + index) % pending_.size()];
}

/// Takes the report of the oldest run. An error is raised once everything is as after a run that was refused.
void Step::Impl::take() {
  const Pending run = pending(0);
  first_pending_ = (first_pending_ + 1) % static_cast<int>(pending_.size());
  --pending_count_;
  backend::Report report;
  runtime_->report(pending_count_, report);
  const bool trains = run.entry->phase == Phase::train;
  if (trains && run.attempt == failed_attempt_) return;  // it reports the error that its window has met before
  const Fault& fault = report.fault;
  if (trains && (run.updates || fault.kind != Fault::Kind::none)) ended_attempts_ = run.attempt + 1;
  if (trains && fault.kind != Fault::Kind::none) {
    failed_attempt_ = run.attempt;
    if (window_.micro_batches > 0 && attempts_ == run.attempt) end_window();
  }
  if (fault.kind != Fault::Kind::none && fault.kind != Fault::Kind::nonfinite_gradient) {
    if (run.entry->phase == Phase::evaluate) evaluation_samples_ -= run.rows;
    raise(run, fault);
  }
  if (run.rows > 0) take_totals(run, report.totals);
  if (run.rows > 0 && trains) gradient_scale_ = scale_;
  if (run.updates) finish_update(run, report);
}

void Step::Impl::take_late() {
  while (pending_count_ > in_flight_) take();
}

void Step::Impl::take_reports() {
  while (pending_count_ > 0) take();
}

void Step::Impl::forget_reports() noexcept {
  while (pending_count_ > 0) {
    try {
      take();
    } catch (...) {  // what it says is no longer of interest
    }
  }
}

int64_t Step::Impl::unreported_micro_batches() const {
  int64_t count = 0;
  for (int i = 0; i < pending_count_; ++i) {
    count += pending(i).rows > 0 && pending(i).entry->phase == Phase::train;
  }
  return count;
}

int64_t Step::Impl::expected_updates() const {
  int64_t updates = updates_;
  for (int i = 0; i < pending_count_; ++i) updates += pending(i).updates;
  return updates;
}

void Step::Impl::take_totals(const Pending& run, const double* totals) {
  if (run.entry->phase == Phase::count) {
    counted_.clear();
    const std::vector<std::string>& names = run.entry->plan->graph.totals;
    for (size_t i = 0; i < names.size(); ++i) counted_.emplace_back(names[i], totals[2 * i + 1]);
    return;
  }
  const bool trains = run.entry->phase == Phase::train;
  const bool of_window = trains && run.attempt == attempts_ && window_.micro_batches > 0;
  Sums& sums = trains ? train_ : evaluation_;
  for (size_t i = 0; i < sums.sum.size(); ++i) {
    sums.sum[i] += totals[2 * i];
    sums.count[i] += totals[2 * i + 1];
    if (of_window && i < terms_.size()) window_.count[i] += totals[2 * i + 1];
  }
  sums.samples += run.rows;
  if (trains) samples_ += run.rows;
}

/// With a loss scale a gradient that is not finite is no error, unless it is one of many.
void Step::Impl::skip_update(const Pending& run, const backend::Report& report) {
  ++skipped_;
  const int64_t in_row = report.counters[static_cast<size_t>(backend::Counter::skips_in_row)];
  if (in_row < loss_scale_.maximum_skips) return;
  const graph::Graph& graph = run.entry->plan->graph;
  const auto stats = std::find_if(graph.nodes.begin(), graph.nodes.end(),
                                  [](const graph::Node& node) { return node.op->name == "gradient_stats"; });
  const auto bad = static_cast<size_t>(std::max(report.stats[3], 0.0f));
  const int32_t slot = graph.value(stats->inputs[2 + bad]).slot;
  throw Error(ErrorCode::numeric, graph.parameters[static_cast<size_t>(slot)].name,
              cat("its gradient is not finite, ", in_row, " times in a row: attempt ", run.attempt, ", update ",
                  updates_, ", loss scale ", scale_,
                  "; no parameter has moved. Lower the learning rate, look for NaN in the data, "
                  "or use Precision::bf16"));
}

void Step::Impl::finish_update(const Pending& run, const backend::Report& report) {
  const bool skips = precision == Precision::fp16 && report.stats && report.stats[1] != 0;
  if (report.scale && precision == Precision::fp16) scale_ = *report.scale;
  if (skips && report.fault.kind == Fault::Kind::none) {
    skip_update(run, report);
  } else {
    if (report.stats) gradient_norm_ = report.stats[0];
    rate_ = schedule_.at({.updates = updates_});
    if (report.fault.kind != Fault::Kind::none) raise(run, report.fault);
    updates_ = report.counters ? report.counters[static_cast<size_t>(backend::Counter::updates)] : updates_ + 1;
  }
  if (window_reported) window_reported();
}

void Step::Impl::raise(const Pending& run, const Fault& fault) {
  const graph::Graph& graph = run.entry->plan->graph;
  const graph::Node& node = graph.nodes[static_cast<size_t>(std::max(fault.node, 0))];
  if (fault.kind == Fault::Kind::nonfinite_gradient)
    throw Error(
        ErrorCode::numeric, graph.parameters[static_cast<size_t>(std::max<int64_t>(fault.sample, 0))].name,
        cat("its gradient is not finite at update ", updates_, " (learning rate ", rate_,
            "): the update is skipped, no parameter has moved; lower the learning rate, or look for NaN in the data"));
  if (fault.kind == Fault::Kind::user_op) exec::raise_user_op(node, fault.exception);
  // What an index chooses from is the first dimension of the first input, or said by the node.
  const bool is_loss = node.attributes.has("ignore_index");
  const Shape& choices = graph.type(node.inputs[0]).shape;
  const int64_t classes = node.attributes.has("classes") ? node.attributes.integer("classes") : choices[0];
  std::string allowed = cat("allowed 0..", classes - 1);
  if (is_loss) allowed += cat(" or ignore_index ", node.attributes.integer("ignore_index"));
  const int64_t ago = feeds_ - run.feed;
  const std::string row = describe_row ? describe_row(fault.sample, ago)
                                       : cat("row ", fault.sample, " of the micro-batch",
                                             ago > 0 ? cat(" before the last", ago > 1 ? cat(" ", ago) : "") : "");
  const std::string_view op = is_loss && node.op->name != "accuracy" ? "cross_entropy" : node.op->name;
  throw Error(ErrorCode::data, cat(op, " '", node.name, "'"),
              cat(row, " has ", is_loss ? "label " : "index ", fault.value, ", ", allowed,
                  fault.value == classes ? cat("; are the ", is_loss ? "labels" : "indices", " 1-based?")
                                         : "; the update is skipped"),
              node.where);
}

// ---- reading

StepTotals Step::Impl::report(Sums& sums) const {
  StepTotals totals;
  totals.clock = clock();
  totals.gradient_norm = gradient_norm_;
  totals.loss_scale = scale_;
  totals.skipped = skipped_;
  totals.learning_rate = updates_ == 0 && schedule_.resolved() ? schedule_.at({}) : rate_;
  totals.samples = sums.samples;
  for (size_t i = 0; i < sums.sum.size(); ++i) {
    NamedMean mean{i < terms_.size() ? terms_[i].name : metric_names_[i - terms_.size()], sums.sum[i], sums.count[i]};
    if (i < terms_.size()) {
      totals.loss += terms_[i].factor * mean.value();
      totals.terms.push_back(std::move(mean));
    } else {
      totals.metrics.push_back(std::move(mean));
    }
  }
  std::fill(sums.sum.begin(), sums.sum.end(), 0.0);
  std::fill(sums.count.begin(), sums.count.end(), 0.0);
  sums.samples = 0;
  return totals;
}

StepTotals Step::Impl::read_reported() { return report(train_); }

StepTotals Step::Impl::read() {
  take_reports();
  return report(train_);
}

StepTotals Step::Impl::read_evaluation() {
  take_reports();
  evaluation_samples_ = 0;
  return report(evaluation_);
}

Clock Step::Impl::clock() const {
  Clock clock;
  clock.attempts = ended_attempts_;
  clock.updates = updates_;
  clock.samples = samples_;
  if (runtime_) clock.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  return clock;
}

}  // namespace brisk
