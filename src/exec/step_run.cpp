// Step::Impl, second half: arenas, windows, runs and sums. In the steady state nothing here allocates.
#include <algorithm>
#include <cmath>

#include "core/host_view.h"
#include "core/machine.h"
#include "core/text.h"
#include "exec/faults.h"
#include "exec/fields.h"
#include "exec/model_use.h"
#include "exec/step_impl.h"
#include "exec/store.h"
#include "graph/op_table.h"
#include "optim/schedule_body.h"

namespace brisk {

using backend::Fault;
using backend::StepList;
using graph::Phase;

// ---- feeding

void Step::Impl::check_fed(size_t index, const ConstView& view) {
  exec::check_rows_of(fields_[index], view);
  input_pointers_[index] = view.raw();
  input_rows_[index] = view.shape()[0];
}

void Step::Impl::feed(const Feed& given) {
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
  check_fed(0, input);
  check_fed(1, target);
}

void Step::Impl::feed(int64_t rows) {
  if (!fields_.empty()) refuse_call("(rows)", "without inputs");
  if (rows < 1 || rows > batch)
    throw Error(ErrorCode::data, cat("Step::run.rows = ", rows), cat("must be from 1 to StepOptions.batch = ", batch));
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

void Step::Impl::write_update_scalars(PlanEntry& entry) {
  const auto write = [&](int32_t slot, double value) {
    if (slot >= 0) scalars_[static_cast<size_t>(slot)] = static_cast<float>(value);
  };
  rate_ = schedule_.at({.updates = updates_});
  write(entry.rate, rate_);
  write(entry.ratio, window_.expected_samples / static_cast<double>(window_.samples));
  for (const Cohort& cohort : entry.cohorts) {
    const auto t = static_cast<double>(updates_ + 1 - cohort.started);
    write(cohort.first, updates_ == cohort.started ? 1.0 : 0.0);
    write(cohort.bias1, 1.0 - std::pow(optimizer.beta1, t));
    write(cohort.bias2, 1.0 - std::pow(optimizer.beta2, t));
  }
}

void Step::Impl::check_counts() {
  const double ratio = window_.expected_samples / static_cast<double>(window_.samples);
  for (size_t i = 0; i < terms_.size(); ++i) {
    if (!terms_[i].counted || !window_.seeds_from_host) continue;
    const double difference = std::abs(window_.count[i] * ratio - window_.expected[i]);
    if (difference <= 1e-6 * std::max(1.0, window_.expected[i])) continue;
    const double count = window_.count[i], expected = window_.expected[i];
    const int64_t samples = window_.samples;
    drop_window();
    throw Error(
        ErrorCode::data, cat("loss term '", terms_[i].name, "'"),
        cat("this window has ", samples, " samples, of which ", count, " count; ", expected,
            " were expected, so its gradient would not be the mean. The window is dropped; say before its first "
            "micro-batch step.expect({{\"samples\", ",
            samples, "}, {\"", terms_[i].name, "\", ", count, "}})"),
        terms_[i].where);
  }
}

void Step::Impl::drop_window() {
  window_.micro_batches = 0;
  told_.clear();
  ++attempts_;
}

// ---- runs

backend::Report Step::Impl::launch(PlanEntry& entry, StepList list, bool accumulates, void* const* outputs) {
  backend::RunArguments arguments;
  arguments.inputs = input_pointers_.data();
  arguments.outputs = outputs;
  arguments.accumulate = accumulates;
  arguments.attempt = attempts_;
  arguments.first_sample = entry.phase == Phase::train ? window_.samples : evaluation_.samples;
  entry.program->run(list, arguments);
  backend::Report report;
  runtime_->report(0, report);
  return report;
}

void Step::Impl::take_totals(Sums& sums, const double* totals, bool training) {
  for (size_t i = 0; i < sums.sum.size(); ++i) {
    sums.sum[i] += totals[2 * i];
    sums.count[i] += totals[2 * i + 1];
    if (training && i < terms_.size()) window_.count[i] += totals[2 * i + 1];
  }
}

void Step::Impl::run(Close close) {
  const int64_t rows = rows_of_feed();
  prepare();
  follow_freeze();
  const exec::StepUse use(models_);
  if (window_.micro_batches == 0) {
    check_batch(rows);
    open_window(rows);
  } else {
    check_batch(rows);
    if (!window_.seeds_from_host && std::any_of(terms_.begin(), terms_.end(), [](const Term& t) { return t.counted; }))
      throw Error(
          ErrorCode::state, "Step::forward_backward",
          "a second micro-batch of a window whose terms count their rows; make the step with .accumulate = 2 or more");
  }
  PlanEntry& entry = entry_for(Phase::train, rows, window_.seeds_from_host);
  const bool accumulates = window_.micro_batches > 0;
  const bool closes = close == Close::when_full && window_.micro_batches + 1 >= accumulate;
  const bool checks = closes && window_.seeds_from_host;
  write_seeds(entry);
  // The update's scalars count this micro-batch too.
  window_.samples += rows;
  if (closes) write_update_scalars(entry);
  window_.samples -= rows;
  const backend::Report report =
      launch(entry, closes && !checks ? StepList::micro_batch_and_update : StepList::micro_batch, accumulates);
  if (report.fault.kind == Fault::Kind::label || report.fault.kind == Fault::Kind::user_op) {
    drop_window();
    raise(entry, report.fault);
  }
  take_totals(train_, report.totals, true);
  window_.samples += rows;
  ++window_.micro_batches;
  train_.samples += rows;
  samples_ += rows;
  if (checks) {
    check_counts();
    finish_update(entry, launch(entry, StepList::update, false));
  } else if (closes) {
    finish_update(entry, report);
  }
}

void Step::Impl::close_window() {
  if (window_.micro_batches == 0)
    throw Error(ErrorCode::state, "Step::update", "there is no gradient yet; call forward_backward first");
  flush();
}

void Step::Impl::flush() {
  if (window_.micro_batches == 0) return;
  const exec::StepUse use(models_);
  check_counts();
  // Any training plan closes a window; the one of the full batch is there in most cases.
  PlanEntry* entry = nullptr;
  for (const auto& known : entries_)
    if (known->phase == Phase::train && known->seeds_from_host == window_.seeds_from_host) entry = known.get();
  if (!entry) entry = &entry_for(Phase::train, std::min(window_.samples, batch), window_.seeds_from_host);
  write_update_scalars(*entry);
  finish_update(*entry, launch(*entry, StepList::update, false));
}

void Step::Impl::finish_update(PlanEntry& entry, const backend::Report& report) {
  if (report.stats) gradient_norm_ = report.stats[0];
  drop_window();
  if (report.fault.kind != Fault::Kind::none) raise(entry, report.fault);
  ++updates_;
}

void Step::Impl::raise(const PlanEntry& entry, const Fault& fault) {
  const graph::Graph& graph = entry.plan->graph;
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
  const std::string row = describe_row ? describe_row(fault.sample) : cat("row ", fault.sample, " of the micro-batch");
  const std::string_view op = is_loss && node.op->name != "accuracy" ? "cross_entropy" : node.op->name;
  throw Error(ErrorCode::data, cat(op, " '", node.name, "'"),
              cat(row, " has ", is_loss ? "label " : "index ", fault.value, ", ", allowed,
                  fault.value == classes ? cat("; are the ", is_loss ? "labels" : "indices", " 1-based?")
                                         : "; the update is skipped"),
              node.where);
}

void Step::Impl::evaluate(void* const* outputs) {
  const int64_t rows = rows_of_feed();
  prepare();
  follow_freeze();
  const exec::StepUse use(models_);
  PlanEntry& entry = entry_for(Phase::evaluate, rows, false);
  const backend::Report report = launch(entry, StepList::micro_batch, false, outputs);
  if (report.fault.kind != Fault::Kind::none) raise(entry, report.fault);
  take_totals(evaluation_, report.totals, false);
  evaluation_.samples += rows;
}

std::vector<std::pair<std::string, double>> Step::Impl::count() {
  const int64_t rows = rows_of_feed();
  prepare();
  const exec::StepUse use(models_);
  PlanEntry& entry = entry_for(Phase::count, rows, false);
  const backend::Report report = launch(entry, StepList::micro_batch, false);
  if (report.fault.kind != Fault::Kind::none) raise(entry, report.fault);
  std::vector<std::pair<std::string, double>> counts;
  const std::vector<std::string>& names = entry.plan->graph.totals;
  for (size_t i = 0; i < names.size(); ++i) counts.emplace_back(names[i], report.totals[2 * i + 1]);
  return counts;
}

// ---- reading

StepTotals Step::Impl::report(Sums& sums) const {
  StepTotals totals;
  totals.clock = clock();
  totals.gradient_norm = gradient_norm_;
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

StepTotals Step::Impl::read() { return report(train_); }
StepTotals Step::Impl::read_evaluation() { return report(evaluation_); }

Clock Step::Impl::clock() const {
  Clock clock;
  clock.updates = updates_;
  clock.samples = samples_;
  if (runtime_) clock.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  return clock;
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
  const size_t index = find_parameter(name);
  const graph::ParameterRef& parameter = program_.parameters[index];
  const graph::ParameterSpec& spec =
      models_[static_cast<size_t>(parameter.store)]->segments[static_cast<size_t>(parameter.segment)].spec;
  Tensor out(spec.torch_shape);
  exec::to_torch(spec, bindings_.gradients[index], out.data<float>());
  return out;
}

void Step::Impl::set_gradient(std::string_view name, const ConstView& value) {
  prepare();
  const size_t index = find_parameter(name);
  const graph::ParameterRef& parameter = program_.parameters[index];
  const graph::ParameterSpec& spec =
      models_[static_cast<size_t>(parameter.store)]->segments[static_cast<size_t>(parameter.segment)].spec;
  if (!(value.shape() == spec.torch_shape))
    throw Error(ErrorCode::shape, cat("gradient of \"", name, "\""),
                cat("given ", value.shape(), ", the parameter has ", spec.torch_shape));
  check_host(cat("gradient of \"", name, "\""), value);
  exec::from_torch(spec, value.data<float>(), bindings_.gradients[index]);
}

}  // namespace brisk
