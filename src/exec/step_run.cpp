// Step::Impl, second half: what is fed, windows and runs. In the steady state nothing here allocates.
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/host_view.h"
#include "core/text.h"
#include "exec/fields.h"
#include "exec/model_use.h"
#include "exec/step_impl.h"
#include "graph/op_table.h"
#include "optim/schedule_body.h"

namespace brisk {

using backend::StepList;
using graph::Phase;

// ---- feeding

void Step::Impl::check_fed(size_t index, const ConstView& view) {
  exec::check_rows_of(fields_[index], view);
  input_pointers_[index] = view.raw();
  input_rows_[index] = view.shape()[0];
}

void Step::Impl::feed(const Feed& given) {
  ++feeds_;
  std::fill(input_rows_.begin(), input_rows_.end(), -1);
  rows_without_inputs_ = 0;
  for (const auto& [name, view] : given.entries())
    check_fed(exec::find_field(fields_, name, "is no input of this step; it takes "), view);
  for (size_t i = 0; i < fields_.size(); ++i)
    if (input_rows_[i] < 0)
      throw Error(ErrorCode::data, cat("\"", fields_[i].name, "\""), "is missing from what the step is fed with");
}

void Step::Impl::refuse_call(const char* call, const char* suits) const {
  std::string names;
  for (const Field& field : fields_) names += (names.empty() ? "" : ", ") + field.name;
  const std::string remedy =
      fields_.empty() ? "no input: run(64)" : cat(names, ": run({{\"", fields_[0].name, "\", view}, ...})");
  throw Error(ErrorCode::data, "Step::run", cat(call, " suits a step ", suits, "; this one takes ", remedy));
}

void Step::Impl::feed(const ConstView& input, const ConstView& target) {
  if (fields_.size() != 2) refuse_call("(input, target)", "with one of each");
  ++feeds_;
  check_fed(0, input);
  check_fed(1, target);
}

void Step::Impl::feed(int64_t rows) {
  if (!fields_.empty()) refuse_call("(rows)", "without inputs");
  if (rows < 1 || rows > batch)
    throw Error(ErrorCode::data, cat("Step::run.rows = ", rows), cat("must be from 1 to StepOptions.batch = ", batch));
  ++feeds_;
  rows_without_inputs_ = rows;
}

int64_t Step::Impl::rows_of_feed() {
  if (fields_.empty()) {
    if (rows_without_inputs_ < 1) refuse_call("a feed", "with inputs");
    return rows_without_inputs_;
  }
  const int64_t rows = input_rows_[0];
  for (size_t i = 1; i < fields_.size(); ++i)
    if (input_rows_[i] != rows)
      throw Error(ErrorCode::data, cat("\"", fields_[i].name, "\""),
                  cat("has ", input_rows_[i], " rows, \"", fields_[0].name, "\" has ", rows));
  if (rows < 1)
    throw Error(ErrorCode::data, cat("\"", fields_[0].name, "\""), "has no rows; a micro-batch has at least one");
  if (rows > batch)
    throw Error(ErrorCode::data, cat("\"", fields_[0].name, "\""),
                cat("has ", rows, " rows; StepOptions.batch = ", batch, " is the most"));
  return rows;
}

// ---- windows

void Step::Impl::expect(const std::vector<std::pair<std::string, double>>& counts) {
  seal();
  if (window_.micro_batches > 0)
    throw Error(ErrorCode::state, "Step::expect", "a window is open; tell it before its first micro-batch");
  for (const auto& [name, value] : counts) {
    const bool known = name == "samples" || std::any_of(terms_.begin(), terms_.end(),
                                                        [&wanted = name](const Term& t) { return t.name == wanted; });
    if (!known)
      throw Error(ErrorCode::option, cat("Step::expect \"", name, "\""),
                  "is neither \"samples\" nor a term of the loss");
    if (!(value >= 0) || !std::isfinite(value))
      throw Error(ErrorCode::option, cat("Step::expect \"", name, "\" = ", value), "must be finite and at least 0");
    if (name == "samples" && value < 1)
      throw Error(ErrorCode::option, cat("Step::expect \"samples\" = ", value), "must be at least 1");
  }
  told_ = counts;
}

/// The gradient of an update is the mean over the whole window: each term is seeded with factor / expected count. What
/// a window will hold is known (one micro-batch), told by expect(), or taken to be full; the update corrects the rows
/// by expected / actual, and refuses when another count turned out otherwise.
void Step::Impl::open_window(int64_t rows) {
  const auto told = [&](const std::string& name) {
    for (const auto& [known, value] : told_)
      if (known == name) return value;
    return -1.0;
  };
  window_.samples = 0;
  std::fill(window_.count.begin(), window_.count.end(), 0.0);
  const double samples = told("samples");
  window_.expected_samples = samples > 0 ? samples : static_cast<double>(accumulate == 1 ? rows : accumulate * batch);
  window_.seeds_from_host = accumulate > 1 || !told_.empty();
  for (size_t i = 0; i < terms_.size(); ++i) {
    const double count = terms_[i].counted ? told(terms_[i].name) : -1.0;
    if (window_.seeds_from_host && terms_[i].explicit_count && count < 0)
      throw Error(
          ErrorCode::state, cat("loss term '", terms_[i].name, "'"),
          cat("counts its own rows (ignore_index or class_weights): before a window of ", accumulate,
              " micro-batches say how many, step.expect({{\"", terms_[i].name, "\", 120}}), or let the Trainer count"),
          terms_[i].where);
    window_.expected[i] = count >= 0 ? count : window_.expected_samples * static_cast<double>(terms_[i].rows);
  }
}

void Step::Impl::write_seeds(PlanEntry& entry) {
  for (size_t i = 0; i < terms_.size(); ++i)
    if (entry.seed_slots[i] >= 0)
      scalars_[static_cast<size_t>(entry.seed_slots[i])] =
          window_.expected[i] > 0 ? static_cast<float>(terms_[i].factor / window_.expected[i]) : 0.0f;
}

/// What follows the updates, by slot of the plan's scalars.
void Step::Impl::write_scalars_of(const PlanEntry& entry, int64_t update, float* scalars) const {
  const auto write = [&](int32_t slot, double value) {
    if (slot >= 0) scalars[slot] = static_cast<float>(value);
  };
  write(entry.rate, schedule_.at({.updates = update}));
  for (const Cohort& cohort : entry.cohorts) {
    const auto t = static_cast<double>(update + 1 - cohort.started);
    write(cohort.first, update == cohort.started ? 1.0 : 0.0);
    write(cohort.bias1, 1.0 - std::pow(optimizer.beta1, t));
    write(cohort.bias2, 1.0 - std::pow(optimizer.beta2, t));
  }
}

void Step::Impl::write_update_scalars(PlanEntry& entry) {
  write_scalars_of(entry, expected_updates(), scalars_.data());
  if (entry.ratio >= 0)
    scalars_[static_cast<size_t>(entry.ratio)] =
        static_cast<float>(window_.expected_samples / static_cast<double>(window_.samples));
  fill_schedule(entry);
}

/// Rows of the updates that the device may be at in this run; in one go for many runs.
void Step::Impl::fill_schedule(PlanEntry& entry) {
  if (entry.schedule.empty() || entry.scheduled > expected_updates()) return;
  const size_t width = entry.plan->graph.scalars.size();
  const int64_t last = updates_ + backend::kScheduledUpdates;
  for (int64_t update = std::max(entry.scheduled, updates_); update < last; ++update)
    write_scalars_of(entry, update,
                     entry.schedule.data() + static_cast<size_t>(update % backend::kScheduledUpdates) * width);
  entry.scheduled = last;
}

void Step::Impl::check_counts() {
  const double ratio = window_.expected_samples / static_cast<double>(window_.samples);
  for (size_t i = 0; i < terms_.size(); ++i) {
    if (!terms_[i].counted || !window_.seeds_from_host) continue;
    const double difference = std::abs(window_.count[i] * ratio - window_.expected[i]);
    if (difference <= 1e-6 * std::max(1.0, window_.expected[i])) continue;
    const double count = window_.count[i], expected = window_.expected[i];
    const int64_t samples = window_.samples;
    end_window();
    throw Error(
        ErrorCode::data, cat("loss term '", terms_[i].name, "'"),
        cat("this window has ", samples, " samples, of which ", count, " count; ", expected,
            " were expected, so its gradient would not be the mean. The window is dropped; say before its first "
            "micro-batch step.expect({{\"samples\", ",
            samples, "}, {\"", terms_[i].name, "\", ", count, "}})"),
        terms_[i].where);
  }
}

void Step::Impl::end_window() {
  window_.micro_batches = 0;
  told_.clear();
  ++attempts_;
}

// ---- runs

/// Others may have changed the values since this step's last run.
void Step::Impl::bring_values(PlanEntry& entry) {
  bool changed = false;
  for (size_t i = 0; i < stores_.size(); ++i) {
    const int64_t version = stores_[i]->bring_to(*backend_);
    changed |= version != std::exchange(seen_versions_[i], version);
  }
  values_epoch_ += changed;
  if (shadows_.bytes() == 0 || entry.shadows_of == values_epoch_) return;
  entry.program->refresh_shadows();
  entry.shadows_of = values_epoch_;
}

/// rows: of the micro-batch; 0: there is none, the run is an update.
void Step::Impl::launch(PlanEntry& entry, StepList list, bool accumulates, int64_t rows, void* const* outputs) {
  bring_values(entry);
  backend::RunArguments arguments;
  arguments.inputs = input_pointers_.data();
  arguments.outputs = outputs;
  arguments.accumulate = accumulates;
  arguments.attempt = attempts_;
  arguments.first_sample = entry.phase == Phase::train ? window_.samples : evaluation_samples_;
  arguments.scheduled = entry.scheduled;
  entry.program->run(list, arguments);
  for (const size_t model : entry.writes) seen_versions_[model] = stores_[model]->changed_on(*backend_);
  micro_batches_ += entry.phase == Phase::train && rows > 0;
  pending_[static_cast<size_t>(first_pending_ + pending_count_++) % pending_.size()] = {&entry, attempts_, feeds_, rows,
                                                                                        list != StepList::micro_batch};
}

void Step::Impl::run(Close close) {
  const int64_t rows = rows_of_feed();
  prepare();
  follow_freeze();
  const exec::StepUse use(models_);
  check_batch(rows);
  const bool counted = std::any_of(terms_.begin(), terms_.end(), [](const Term& t) { return t.counted; });
  if (window_.micro_batches == 0)
    open_window(rows);
  else if (!window_.seeds_from_host && counted)
    throw Error(
        ErrorCode::state, "Step::forward_backward",
        "a second micro-batch of a window whose terms count their rows; make the step with .accumulate = 2 or more");
  PlanEntry& entry = entry_for(Phase::train, rows, window_.seeds_from_host);
  const bool accumulates = window_.micro_batches > 0;
  const bool closes = close == Close::when_full && window_.micro_batches + 1 >= accumulate;
  const bool checks = closes && window_.seeds_from_host && counted;
  write_seeds(entry);
  // The update's scalars count this micro-batch too.
  window_.samples += rows;
  if (closes) write_update_scalars(entry);
  window_.samples -= rows;
  launch(entry, closes && !checks ? StepList::micro_batch_and_update : StepList::micro_batch, accumulates, rows);
  window_.samples += rows;
  ++window_.micro_batches;
  if (checks) {
    take_reports();
    check_counts();
    launch(entry, StepList::update, false, 0);
  }
  if (closes) end_window();
  take_late();
}

void Step::Impl::close_window() {
  if (window_.micro_batches == 0)
    throw Error(ErrorCode::state, "Step::update", "there is no gradient yet; call forward_backward first");
  flush();
}

void Step::Impl::flush() {
  if (window_.micro_batches == 0) return;
  const exec::StepUse use(models_);
  if (window_.seeds_from_host && std::any_of(terms_.begin(), terms_.end(), [](const Term& t) { return t.counted; })) {
    take_reports();
    check_counts();
  }
  // Any training plan closes a window; the one of the full batch is there in most cases.
  PlanEntry* entry = nullptr;
  for (const auto& known : entries_)
    if (known->phase == Phase::train && known->seeds_from_host == window_.seeds_from_host) entry = known.get();
  if (!entry) entry = &entry_for(Phase::train, std::min(window_.samples, batch), window_.seeds_from_host);
  write_update_scalars(*entry);
  launch(*entry, StepList::update, false, 0);
  end_window();
  take_late();
}

void Step::Impl::evaluate(void* const* outputs) {
  const int64_t rows = rows_of_feed();
  prepare();
  follow_freeze();
  const exec::StepUse use(models_);
  PlanEntry& entry = entry_for(Phase::evaluate, rows, false);
  launch(entry, StepList::micro_batch, false, rows, outputs);
  evaluation_samples_ += rows;
  if (outputs)
    take_reports();
  else
    take_late();
}

std::vector<std::pair<std::string, double>> Step::Impl::count() {
  const int64_t rows = rows_of_feed();
  prepare();
  const exec::StepUse use(models_);
  PlanEntry& entry = entry_for(Phase::count, rows, false);
  take_reports();
  launch(entry, StepList::micro_batch, false, rows);
  take_reports();
  return counted_;
}

Step::Counters Step::Impl::counters() const { return {runtime_ ? runtime_->entries() : 0, plans_made_}; }

size_t Step::Impl::find_parameter(std::string_view name) const {
  std::vector<std::string> names;
  for (size_t i = 0; i < program_.parameters.size(); ++i) {
    if (program_.parameters[i].name == name && layout_.offsets[i] >= 0) return i;
    if (layout_.offsets[i] >= 0) names.push_back(program_.parameters[i].name);
  }
  const std::string near = closest(name, names);
  throw Error(ErrorCode::state, cat("gradient of \"", name, "\""),
              cat("no such trained parameter", near.empty() ? "" : "; did you mean " + near + "?"));
}

Tensor Step::Impl::gradient(std::string_view name) {
  prepare();
  take_reports();
  const size_t index = find_parameter(name);
  const graph::Segment& segment = segment_of(program_.parameters[index]);
  std::vector<float> canonical(static_cast<size_t>(segment.count));
  backend_->memory().read(canonical.data(), bindings_.gradients[index], segment.count * int64_t{sizeof(float)});
  for (float& element : canonical) element /= gradient_scale_;
  Tensor out(segment.spec.torch_shape);
  exec::to_torch(segment.spec, canonical.data(), out.data<float>());
  return out;
}

void Step::Impl::set_gradient(std::string_view name, const ConstView& value) {
  prepare();
  take_reports();
  const size_t index = find_parameter(name);
  const graph::Segment& segment = segment_of(program_.parameters[index]);
  if (!(value.shape() == segment.spec.torch_shape))
    throw Error(ErrorCode::shape, cat("gradient of \"", name, "\""),
                cat("given ", value.shape(), ", the parameter has ", segment.spec.torch_shape));
  check_host(cat("gradient of \"", name, "\""), value);
  std::vector<float> canonical(static_cast<size_t>(segment.count));
  exec::from_torch(segment.spec, value.data<float>(), canonical.data());
  for (float& element : canonical) element *= scale_;
  backend_->memory().write(bindings_.gradients[index], canonical.data(), segment.count * int64_t{sizeof(float)});
}

}  // namespace brisk
