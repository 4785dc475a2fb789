// The loop. The position in the data is the source of epochs and samples, the step's clock that of updates.
#include "train/fit_loop.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <utility>

#include "core/log.h"
#include "core/machine.h"
#include "data/fill.h"
#include "train/step_access.h"

namespace brisk::train {
namespace {

constexpr int kReportsPerEpoch = 10;
constexpr int kMaximumPrefetch = 1 << 16;
constexpr double kSecondsBetweenLooks = 1;
constexpr int64_t kMaximumWorkers = 1024;
constexpr int kMostAutomaticWorkers = 16;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void check_period(const std::string& field, const Duration& duration) {
  if (duration.set() && !(duration.count() > 0 && std::isfinite(duration.count()))) {
    throw Error(ErrorCode::option, cat(field, " = ", duration.text()), "must be a finite length of more than 0");
  }
}

FitOptions checked(const FitOptions& options, bool has_validation) {
  check_duration("FitOptions.duration", options.duration, false);
  check_period("FitOptions.evaluate_every", options.evaluate_every);
  check_period("FitOptions.log_every", options.log_every);
  if (options.time_limit.set()) check_duration("FitOptions.time_limit", options.time_limit, true);
  check_early_stop(options.early_stop, has_validation);
  if (options.prefetch < 0 || options.prefetch > kMaximumPrefetch) {
    throw Error(ErrorCode::option, cat("FitOptions.prefetch = ", options.prefetch),
                cat("must be 0 to ", kMaximumPrefetch));
  }
  if (const int64_t workers = options.workers.value(); workers < 0 || workers > kMaximumWorkers) {
    throw Error(ErrorCode::option, cat("FitOptions.workers = ", workers), cat("must be 0 to ", kMaximumWorkers));
  }
  return options;
}

EpochShape shape_of(const Step& step, const Dataset& dataset, const FitOptions& options) {
  const EpochShape shape{dataset.size(), step.batch(), step.accumulate(), options.drop_last};
  const std::string owner = data_set_text(dataset.name());
  if (shape.samples < 1) throw Error(ErrorCode::data, owner, "has no samples");
  if (shape.micro_batches() == 0) {
    throw Error(ErrorCode::option, "FitOptions.drop_last = true",
                cat("leaves no micro-batch: ", owner, " has ", shape.samples, " samples, a micro-batch ", shape.batch,
                    "; use a smaller batch or .drop_last = false"));
  }
  if (shape.samples < shape.batch) {
    log_warning("StepOptions.batch = ", shape.batch, ": ", owner, " has ", shape.samples,
                " samples, so each epoch is one micro-batch of ", shape.samples);
  }
  return shape;
}

/// Where the run begins: where the last one ended, or at the next whole epoch when the data set has another size.
Start start_of(const TrainerState& state, const EpochShape& shape) {
  Start start{state.position, state.clock.samples, state.clock.updates};
  const bool moved = state.data_samples != shape.samples || start.position.micro >= shape.micro_batches();
  if (start.position.micro > 0 && moved) start.position = {start.position.epoch + 1, 0};
  return start;
}

Duration log_period(const FitOptions& options, const EpochShape& shape) {
  if (options.log_every.set()) return options.log_every;
  const int64_t updates = std::max<int64_t>(1, shape.updates() / kReportsPerEpoch);
  return {static_cast<double>(updates), Duration::Unit::updates};
}

double epochs_wanted(const Duration& duration) {
  return duration.unit() == Duration::Unit::epochs ? duration.count() : 0;
}

}  // namespace

Stopwatch::Stopwatch() : start_ns_(now_ns()) {}
double Stopwatch::seconds() const { return static_cast<double>(now_ns() - start_ns_) * 1e-9; }

RowNames::RowNames(Step& step, const Dataset& dataset) : step_(step) {
  const std::string name = dataset.name();
  const std::string suffix = name == "data set" ? " of the data set" : cat(" of \"", name, "\"");
  previous_ = describe_rows(step_, [this, suffix](int64_t row, int64_t feeds_ago) {
    const int64_t look = looks_ - 1 - feeds_ago;
    if (look < 0 || feeds_ago >= kKept) return cat("row ", row);
    const std::vector<int64_t>& samples = samples_[static_cast<size_t>(look % kKept)];
    const bool known = row >= 0 && row < static_cast<int64_t>(samples.size());
    return known ? cat("sample ", samples[static_cast<size_t>(row)], suffix) : cat("row ", row);
  });
}
void RowNames::look_at(const Batch* batch) {
  const std::span<const int64_t> indices = batch->indices();
  samples_[static_cast<size_t>(looks_++ % kKept)].assign(indices.begin(), indices.end());
}
RowNames::~RowNames() { describe_rows(step_, std::move(previous_)); }

data::BatcherOptions reading_options(const Dataset& dataset, const Count& workers) {
  data::BatcherOptions out;
  const bool ahead = workers.set() ? workers.value() > 0 : !data::is_in_memory(dataset);
  out.reading = ahead ? data::Reading::ahead : data::Reading::caller;
  if (ahead) out.workers = workers.value_or(std::min(allowed_threads(), kMostAutomaticWorkers));
  return out;
}

EvaluationResult evaluate_all(Step& step, BoundData& data, const HostMetrics& host_metrics, const Count& workers) {
  RowNames names(step, *data.dataset);
  step.read_evaluation();
  GatheredRows gathered(host_metrics, data.dataset->size());
  data::BatcherOptions options = reading_options(*data.dataset, workers);
  options.batch = step.batch();
  data::Batcher batcher(*data.dataset, options);
  while (const Batch* batch = batcher.next()) {
    names.look_at(batch);
    const Feed& feed = data.binding.feed(*batch);
    train::evaluate(step, feed, gathered.slots());
    gathered.add_targets(feed, batch->size());
  }
  EvaluationResult out = evaluation_of(step.read_evaluation());
  for (NamedMean& value : gathered.values()) out.metrics.push_back(std::move(value));
  return out;
}

FitLoop::FitLoop(Parts parts, const FitOptions& options)
    : parts_(std::move(parts)),
      options_(checked(options, parts_.validation != nullptr)),
      shape_(shape_of(*parts_.step, *parts_.train->dataset, options_)),
      start_(start_of(*parts_.state, shape_)),
      horizon_(horizon(options_.duration, shape_, start_)),
      seconds_before_(parts_.state->clock.seconds),
      evaluate_trigger_(options_.evaluate_every, parts_.state->clock),
      log_trigger_(log_period(options_, shape_), parts_.state->clock),
      events_(options_.run_folder),
      progress_(options_.progress, options_.log_every.set()),
      best_(options_.early_stop),
      control_(parts_.validation != nullptr),
      signals_(options_.stop_on_signals),
      counted_micro_batches_(micro_batches(*parts_.step)),
      reports_(*parts_.step, [this] { follow_reports(); }) {
  parts_.state->position = start_.position;
  parts_.state->data_samples = shape_.samples;
  parts_.state->statistics = {};
  for (auto& [call, listens] : parts_.callbacks.update)
    listeners_.push_back({std::move(call), Trigger(listens.every, parts_.state->clock), {}});
}

void FitLoop::update_clock() {
  Clock& clock = parts_.state->clock;
  clock.epochs = epochs_at(shape_, parts_.state->position);
  clock.seconds = seconds_before_ + elapsed();
  clock.attempts = parts_.step->clock().attempts;
  clock.updates = expected_updates(*parts_.step);
  parts_.state->statistics.seconds = elapsed();
}

/// As far as the step has reported; at the end of an epoch all is.
Position FitLoop::reported_position() const {
  const Position& position = parts_.state->position;
  const int64_t reported = micro_batches(*parts_.step) - unreported_micro_batches(*parts_.step);
  return {position.epoch, position.micro + reported - counted_micro_batches_};
}

Clock FitLoop::reported_clock() const {
  const TrainerState& state = *parts_.state;
  const Position reported = reported_position();
  Clock clock = state.clock;
  clock.epochs = epochs_at(shape_, reported);
  clock.samples += shape_.rows_before(reported.micro) - shape_.rows_before(state.position.micro);
  clock.seconds = seconds_before_ + elapsed();
  const Clock of_step = parts_.step->clock();
  clock.attempts = of_step.attempts;
  clock.updates = of_step.updates;
  return clock;
}

ProgressState FitLoop::progress_state(const Clock& clock) const {
  ProgressState out;
  out.clock = clock;
  out.epochs_wanted = epochs_wanted(options_.duration);
  const double done = static_cast<double>(done_micro_batches_);
  if (horizon_.micro_batches > 0) out.fraction = done / static_cast<double>(horizon_.micro_batches);
  if (out.fraction > 0) out.seconds_left = elapsed() * (1 - out.fraction) / out.fraction;
  out.samples_per_s = samples_per_s_;
  out.values = values_;
  return out;
}

FitResult FitLoop::run() {
  begin();
  try {
    train();
    close_window();
    take_reports();
    tell();
    report_rest();
    const bool evaluated = evaluated_updates_ == parts_.state->clock.updates;
    if (parts_.validation != nullptr && !evaluated && result_.reason != StopReason::signal) evaluate();
    if (result_.reason == StopReason::finished) asked_to_end();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::numeric || !stepping_) throw;
    stepping_ = false;
    result_.reason = StopReason::diverged;
    result_.message = error.what();
    forget_reports(*parts_.step);
    counted_micro_batches_ = micro_batches(*parts_.step);
    update_clock();
    tell();
    report_rest();
  }
  finish();
  return std::move(result_);
}

void FitLoop::begin() {
  resolve_schedule(*parts_.step, shape_.updates(), horizon_.total_updates);
  // A short last micro-batch is met at the end of an epoch: what it cannot do is said now.
  check_rows(*parts_.step, shape_.rows(0));
  check_rows(*parts_.step, shape_.rows(shape_.micro_batches() - 1));
  parts_.step->read();
  if (options_.early_stop.monitor.set()) {  // an unknown name is refused before anything is trained
    EvaluationResult known = evaluation_of(parts_.step->read_evaluation());
    for (const auto& [name, metric] : parts_.host_metrics->functions) known.metrics.push_back({name});
    known.metric(options_.early_stop.monitor.name());
  }
  result_.machine = parts_.facts.machine;
  parts_.facts.duration = options_.duration.text();
  parts_.facts.train_samples = shape_.samples;
  if (parts_.validation != nullptr) parts_.facts.validation_samples = parts_.validation->dataset->size();
  events_.start(parts_.state->clock, parts_.facts);
  if (horizon_.micro_batches == 0) {
    log_warning("FitOptions.duration = ", options_.duration.text(), ": already reached after ",
                parts_.state->clock.updates, " updates; it counts from the trainer's start, so nothing is trained");
  }
}

void FitLoop::train() {
  const Position& position = parts_.state->position;
  data::BatcherOptions reading = reading_options(*parts_.train->dataset, options_.workers);
  reading.batch = shape_.batch;
  reading.drop_last = options_.drop_last;
  reading.lookahead = shape_.accumulate > 1 ? shape_.accumulate : 0;
  reading.prefetch = options_.prefetch;
  reading.seed = options_.seed;
  reading.shuffle = options_.shuffle;
  data::Batcher batcher(*parts_.train->dataset, reading);
  parts_.state->statistics.workers = batcher.reads_ahead() ? reading.workers : 0;
  RowNames names(*parts_.step, *parts_.train->dataset);
  batcher.seek({position.epoch, shape_.rows_before(position.micro)});
  while (position < horizon_.end) {
    if (window_micro_batches_ == 0 && shape_.accumulate > 1) announce_window(batcher, names);
    micro_batch(batcher, names);
    if (window_micro_batches_ != 0) continue;
    after_update();
    if (ends_early()) return;
  }
}

/// Whether the program or the evaluations have ended the run; the reason is kept.
bool FitLoop::asked_to_end() {
  if (control_.stopped()) {
    result_.reason = StopReason::requested;
    result_.message = control_.message();
  } else if (best_.reason() != StopReason::finished) {
    result_.reason = best_.reason();
    result_.message = best_.text();
  }
  return result_.reason != StopReason::finished;
}

/// Whether anything but the duration has ended the run; the reason is kept.
bool FitLoop::ends_early() {
  if (asked_to_end()) return true;
  const double now = elapsed();
  if (signals_.received() != 0) {
    result_.reason = StopReason::signal;
    result_.signal = signals_.received();
    result_.message = signal_name(result_.signal);
    return true;
  }
  if (!options_.stop_when_file_exists.empty() && now >= next_file_look_) {
    next_file_look_ = now + kSecondsBetweenLooks;
    if (::access(options_.stop_when_file_exists.c_str(), F_OK) == 0) {
      result_.reason = StopReason::requested;
      result_.message = cat(options_.stop_when_file_exists, " exists");
      return true;
    }
  }
  const bool over_time = options_.time_limit.set() && now >= options_.time_limit.count();
  if (over_time && parts_.state->position < horizon_.end) result_.reason = StopReason::time_limit;
  return over_time;
}

/// Tells the step how many samples and counted rows the next window has, so that its gradient is divided by them.
void FitLoop::announce_window(data::Batcher& batcher, RowNames& names) {
  const Position& position = parts_.state->position;
  const int64_t end = horizon_.end.epoch == position.epoch ? horizon_.end.micro : shape_.micro_batches();
  const int64_t last = std::min(position.micro + shape_.accumulate, end);
  std::vector<std::pair<std::string, double>> counts;
  const int64_t samples = shape_.rows_before(last) - shape_.rows_before(position.micro);
  counts.emplace_back("samples", static_cast<double>(samples));
  for (int64_t k = 0; counts_terms_ && k < last - position.micro; ++k) {
    const Batch* batch = batcher.peek(k);
    names.look_at(batch);
    const auto terms = count_targets(*parts_.step, parts_.train->binding.feed(*batch));
    counts_terms_ = !terms.empty();
    for (size_t i = 0; i < terms.size(); ++i) {
      if (k == 0) {
        counts.push_back(terms[i]);
      } else {
        counts[i + 1].second += terms[i].second;
      }
    }
  }
  parts_.step->expect(counts);
}

void FitLoop::micro_batch(data::Batcher& batcher, RowNames& names) {
  const Batch* batch = batcher.next();
  parts_.state->statistics.data_wait_s = batcher.wait_seconds();
  names.look_at(batch);
  const Feed& feed = parts_.train->binding.feed(*batch);
  stepping_ = true;
  parts_.step->run(feed);
  stepping_ = false;
  TrainerState& state = *parts_.state;
  ++counted_micro_batches_;
  state.clock.samples += batch->size();
  ++state.position.micro;
  ++done_micro_batches_;
  window_micro_batches_ = (window_micro_batches_ + 1) % shape_.accumulate;
  if (state.position.micro == shape_.micro_batches()) end_epoch(batcher);
  update_clock();
  if (progress_.wants_tick(state.clock.seconds)) progress_.tick(progress_state(state.clock));
}

void FitLoop::end_epoch(data::Batcher& batcher) {
  close_window();
  take_reports();
  batcher.next();  // the end mark
  read();
  result_.train = epoch_totals_;
  epoch_totals_ = {};
  parts_.state->position = {parts_.state->position.epoch + 1, 0};
}

void FitLoop::close_window() {
  stepping_ = true;
  parts_.step->flush();
  stepping_ = false;
  window_micro_batches_ = 0;
  update_clock();
}

void FitLoop::after_update() {
  const bool ends = !(parts_.state->position < horizon_.end);
  if (ends) {
    take_reports();
    report_rest();
  }
  tell();
  const bool due = evaluate_trigger_.due(parts_.state->clock);
  if (parts_.validation != nullptr && (control_.take_evaluation() || due)) evaluate();
}

/// Another window has been reported, on a device that runs ahead up to two runs late: who waits for it is due.
void FitLoop::follow_reports() {
  const Clock clock = reported_clock();
  const auto make = [&](Interval& interval, Listener* listener) {
    read();
    due_.push_back({listener, take(interval, clock)});
  };
  if (log_trigger_.due(clock)) make(report_, nullptr);
  for (Listener& listener : listeners_)
    if (listener.trigger.due(clock)) make(listener.interval, &listener);
}

/// Waits until the step has reported all.
void FitLoop::take_reports() {
  stepping_ = true;
  train::take_reports(*parts_.step);
  stepping_ = false;
  update_clock();
}

/// Tells what is due, in order.
void FitLoop::tell() {
  for (const Due& due : std::exchange(due_, {})) {
    if (due.listener == nullptr) {
      tell_line(due.report);
      continue;
    }
    const double before = elapsed();
    due.listener->call(due.report, control_);
    paused_seconds_ += elapsed() - before;
  }
}

void FitLoop::read() {
  const StepTotals part = read_reported(*parts_.step);
  if (part.samples == 0) return;
  add_totals(epoch_totals_, part, *parts_.factors);
  add_totals(report_.totals, part, *parts_.factors);
  for (Listener& listener : listeners_) add_totals(listener.interval.totals, part, *parts_.factors);
}

/// What the interval holds; it begins anew.
UpdateReport FitLoop::take(Interval& interval, const Clock& clock) {
  StepTotals totals = std::exchange(interval.totals, {});
  const double now = training_seconds(), seconds = now - std::exchange(interval.begin_s, now);
  UpdateReport out;
  out.clock = clock;
  out.gradient_norm = totals.gradient_norm;
  out.learning_rate = totals.learning_rate;
  out.loss = totals.loss;
  out.loss_scale = totals.loss_scale;
  out.metrics = std::move(totals.metrics);
  out.samples = totals.samples;
  out.skipped = totals.skipped;
  out.samples_per_s = seconds > 0 ? static_cast<double>(totals.samples) / seconds : 0;
  out.terms = std::move(totals.terms);
  return out;
}

/// What the lines before have left.
void FitLoop::report_rest() {
  read();
  if (report_.totals.samples == 0) return;
  due_.push_back({nullptr, take(report_, reported_clock())});
  tell();
}

void FitLoop::tell_line(const UpdateReport& report) {
  samples_per_s_ = report.samples_per_s;
  values_ = values_text(report.loss, report.terms, report.metrics);
  events_.train(report);
  progress_.report(progress_state(report.clock), report);
}

void FitLoop::evaluate() {
  take_reports();
  tell();
  const double before = elapsed();
  EvaluationReport found{evaluate_all(*parts_.step, *parts_.validation, *parts_.host_metrics, options_.workers)};
  evaluated_updates_ = parts_.state->clock.updates;
  parts_.state->statistics.evaluation_s += elapsed() - before;
  update_clock();
  found.clock = parts_.state->clock;
  found.is_best = best_.take(found.metric(best_.monitor().name()));
  if (found.is_best) keep_best(found);
  result_.evaluation = found;
  events_.evaluation(found.clock, found);
  const std::string values = values_text(found.loss, found.terms, found.metrics);
  progress_.line(cat("validation after ", epochs_text(found.clock.epochs), ", ", grouped(found.clock.updates),
                     " updates: ", values));
  for (const EvaluationCallback& call : parts_.callbacks.evaluation) call(found, control_);
  paused_seconds_ += elapsed() - before;
}

void FitLoop::keep_best(const EvaluationReport& report) {
  result_.best = report;
  if (!options_.early_stop.restore_best) return;
  best_parameters_.clear();
  for (const Parameter& parameter : parts_.model->parameters())
    best_parameters_.emplace_back(parameter.name, parts_.model->parameter(parameter.name));
}

void FitLoop::finish() {
  for (const auto& [name, value] : best_parameters_) parts_.model->set_parameter(name, value);
  if (!best_parameters_.empty()) result_.evaluation = result_.best;
  update_clock();
  if (epoch_totals_.samples > 0) result_.train = epoch_totals_;
  result_.clock = parts_.state->clock;
  events_.finish(result_.clock, result_.reason, result_.message);
  progress_.line(result_.text());
}

}  // namespace brisk::train
