// The few doors into a step.
#include "train/step_access.h"

#include <cmath>

#include "core/text.h"
#include "exec/step_impl.h"
#include "train/summary.h"

namespace brisk::train {

void resolve_schedule(Step& step, int64_t updates_per_epoch, int64_t total_updates) {
  step.impl().resolve_schedule(updates_per_epoch, step.batch() * step.accumulate(), total_updates);
}

std::vector<std::pair<std::string, double>> count_targets(Step& step, const Feed& feed) {
  step.impl().feed(feed);
  return step.impl().count();
}

void check_rows(Step& step, int64_t rows) { step.impl().check_batch(rows); }

std::vector<Field> keep_outputs(Step& step) { return step.impl().keep_outputs(); }

void evaluate(Step& step, const Feed& feed, const std::vector<void*>& outputs) {
  step.impl().feed(feed);
  step.impl().evaluate(outputs.data());
}

DescribeRow describe_rows(Step& step, DescribeRow describe) {
  return std::exchange(step.impl().describe_row, std::move(describe));
}

StepTotals read_reported(Step& step) { return step.impl().read_reported(); }

int64_t micro_batches(const Step& step) { return step.impl().micro_batches(); }

int64_t unreported_micro_batches(const Step& step) { return step.impl().unreported_micro_batches(); }

int64_t expected_updates(const Step& step) { return step.impl().expected_updates(); }

void take_reports(Step& step) { step.impl().take_reports(); }

void forget_reports(Step& step) { step.impl().forget_reports(); }

WindowReports::WindowReports(Step& step, std::function<void()> call) : step_(step) {
  step.impl().window_reported = std::move(call);
}
WindowReports::~WindowReports() { step_.impl().window_reported = nullptr; }

std::string machine_text(const Step& step) {
  const double megabytes = static_cast<double>(step.plan().bytes().total) / 1e6;
  const std::string size = megabytes < 10 ? cat(std::round(megabytes * 10) / 10) : grouped(std::llround(megabytes));
  return cat(size, " MB, ", step.impl().target_name(), ", ", name(step.impl().precision));
}

}  // namespace brisk::train
