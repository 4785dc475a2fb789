// Step::Impl, the middle: what it takes of memory, the plans it keeps, and what freezing changes in both.
#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include "core/log.h"
#include "core/text.h"
#include "exec/devices.h"
#include "exec/freeze.h"
#include "exec/step_impl.h"
#include "graph/op_table.h"
#include "optim/rules.h"
#include "optim/schedule_body.h"

namespace brisk {

using graph::Phase;

namespace {

constexpr size_t kMaximumPlans = 16;

}  // namespace

/// Says which parameters the step trains, by what rules, and since which update.
void Step::Impl::mark_trained() {
  std::vector<optim::NamedParameter> named;
  for (const graph::ParameterRef& parameter : program_.parameters) {
    const graph::Segment& segment = segment_of(parameter);
    if (!segment.spec.buffer) named.push_back({parameter.name, parameter.shape.rank(), segment.spec.decay});
  }
  const auto resolved = optim::resolve_rules(optimizer, named);
  size_t next = 0;
  rules_.resize(program_.parameters.size());
  for (size_t i = 0; i < rules_.size(); ++i) {
    graph::ParameterRef& parameter = program_.parameters[i];
    const auto& model = models_[static_cast<size_t>(parameter.store)];
    const bool chosen = update_states_.empty() ||
                        std::find(update_states_.begin(), update_states_.end(), model) != update_states_.end();
    parameter.trainable = chosen && !parameter.buffer && !segment_of(parameter).frozen;
    if (parameter.buffer) continue;
    std::tie(rules_[i].weight_decay, rules_[i].rate_scale) = resolved[next++];
    const bool trained_before = !layout_.offsets.empty() && layout_.offsets[i] >= 0;
    if (!trained_before) rules_[i].started = updates_;
  }
  exec::mark_frozen(program_, models_);
}

graph::Segment& Step::Impl::segment_of(const graph::ParameterRef& parameter) const {
  return models_[static_cast<size_t>(parameter.store)]->segments[static_cast<size_t>(parameter.segment)];
}

std::vector<int64_t> Step::Impl::freeze_versions() const {
  std::vector<int64_t> versions;
  for (const auto& model : models_) versions.push_back(model->freeze_version);
  return versions;
}

/// After freeze() or unfreeze(): new plans and arenas. Moments of what is trained before and after stay; what is newly
/// trained starts at zero, with an update count of its own.
void Step::Impl::follow_freeze() {
  const bool followed = std::equal(models_.begin(), models_.end(), freeze_versions_.begin(), freeze_versions_.end(),
                                   [](const auto& model, int64_t version) { return model->freeze_version == version; });
  if (followed) return;
  if (window_.micro_batches > 0)
    throw Error(
        ErrorCode::state, "Model::freeze",
        "what is trained changed inside a window: flush() the step first, which still updates as the window began");
  take_reports();
  mark_trained();
  const exec::TrainedLayout before = std::exchange(layout_, exec::trained_layout(program_));
  if (runtime_) {
    try {
      const exec::DeviceArena moments = std::exchange(moments_, {});
      give_memory();
      take_memory();
      keep_moments(before, moments);
    } catch (...) {
      runtime_.reset();  // nothing of the old plans and moments is left; the next run prepares anew
      for (passes::ParameterRule& rule : rules_) rule.started = updates_;
      freeze_versions_ = freeze_versions();
      throw;
    }
  }
  freeze_versions_ = freeze_versions();
  const auto trained = [](const exec::TrainedLayout& layout) {
    return std::count_if(layout.offsets.begin(), layout.offsets.end(), [](int64_t offset) { return offset >= 0; });
  };
  log_info(optimizer.name, ": at update ", updates_, " the trained parameters change from ", trained(before), " to ",
           trained(layout_), "; new ones start with empty moments");
}

void Step::Impl::keep_moments(const exec::TrainedLayout& before, const exec::DeviceArena& moments) {
  backend::Memory& memory = backend_->memory();
  std::vector<float> values;
  const auto keep = [&](float* to, const float* from) {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
    memory.read(values.data(), from, bytes);
    memory.write(to, values.data(), bytes);
  };
  for (size_t i = 0; i < layout_.offsets.size(); ++i) {
    if (layout_.offsets[i] < 0 || before.offsets[i] < 0) continue;
    values.resize(static_cast<size_t>(program_.parameters[i].shape.count()));
    const float* from = moments.floats() + before.offsets[i];
    if (optimizer.moments() >= 1) keep(bindings_.moment1[i], from);
    if (optimizer.moments() == 2) keep(bindings_.moment2[i], from + before.floats);
  }
}

void Step::Impl::prepare() {
  if (runtime_) return;
  seal();
  optim::check_resolved(optimizer.name + ".learning_rate", schedule_);
  backend_ = &exec::backend_of(device_);
  take_memory();
  started_ = std::chrono::steady_clock::now();
}

/// All that plans use but the state, which goes on.
void Step::Impl::give_memory() {
  entries_.clear();
  for (auto* arena : {&gradients_, &moments_, &activations_, &shadows_, &staged_}) *arena = {};
}

/// Checks before it touches memory.
void Step::Impl::take_memory() {
  auto plan = make_plan(Phase::train, batch, accumulate > 1);
  const PlanBytes bytes = plan->bytes;
  backend::Memory& memory = backend_->memory();
  int64_t held = state_.bytes();
  for (const auto& model : models_) held += exec::store_bytes(*model, *backend_);
  const int64_t available = memory.available_bytes();
  if (bytes.total - held > available) {
    const int64_t most = largest_batch({.budget_bytes = std::max<int64_t>(available + held, 1)});
    throw Error(ErrorCode::memory, cat("batch ", batch),
                cat("needs ", grouped(bytes.total), " bytes on ", device_.text(), ", ", grouped(available), " are ",
                    backend_->host_memory() ? "available" : "free", "; largest batch that fits: ", most));
  }
  bind_parameters();
  if (!runtime_) runtime_ = backend_->runtime(threads);
  gradients_ = exec::DeviceArena(memory, bytes.gradients, "gradients");
  moments_ = exec::DeviceArena(memory, bytes.moments, "moments");
  activations_ = exec::DeviceArena(memory, bytes.activations, "activations");
  bindings_.arena = activations_.data();
  scalars_.assign(plan->graph.scalars.size() + terms_.size() + 8, 0.0f);
  bindings_.scalars = scalars_.data();
  for (size_t i = 0; i < layout_.offsets.size(); ++i) {
    if (layout_.offsets[i] < 0) continue;
    bindings_.gradients[i] = gradients_.floats() + layout_.offsets[i];
    if (optimizer.moments() >= 1) bindings_.moment1[i] = moments_.floats() + layout_.offsets[i];
    if (optimizer.moments() == 2) bindings_.moment2[i] = moments_.floats() + layout_.floats + layout_.offsets[i];
  }
  shadow_layout_ = staged_layout_ = {};
  grow(plan->graph);
  take_state(plan->graph);
  add_entry(std::move(plan));
}

/// Counters that the plan keeps itself: they go on from what the step has counted.
void Step::Impl::take_state(const graph::Graph& plan) {
  if (!exec::has_state(plan) || state_.bytes() > 0) return;
  backend::Memory& memory = backend_->memory();
  state_ = exec::DeviceArena(memory, exec::kStateBytes, "state");
  bindings_.counters = reinterpret_cast<int64_t*>(state_.data());
  bindings_.scale = reinterpret_cast<float*>(state_.data() + exec::kScaleOffset);
  memory.write(bindings_.counters + static_cast<size_t>(backend::Counter::updates), &updates_, sizeof(updates_));
  memory.write(bindings_.scale, &scale_, sizeof(scale_));
}

void Step::Impl::bind_parameters() {
  const size_t count = program_.parameters.size();
  for (auto* list : {&bindings_.parameters, &bindings_.gradients, &bindings_.moment1, &bindings_.moment2})
    list->assign(count, nullptr);
  stores_.clear();
  for (const auto& model : models_) stores_.push_back(&exec::store_of(*model));
  seen_versions_.assign(stores_.size(), -1);
  for (size_t i = 0; i < count; ++i) {
    const graph::ParameterRef& parameter = program_.parameters[i];
    bindings_.parameters[i] = stores_[static_cast<size_t>(parameter.store)]->address(*backend_, segment_of(parameter));
  }
}

/// Makes room for what the plan needs of arenas that all plans share. Their contents end with a run or a window, or are
/// made anew (shadows). True: addresses have changed.
bool Step::Impl::grow(const graph::Graph& plan) {
  backend::Memory& memory = backend_->memory();
  const bool larger = plan.arena_bytes > activations_.bytes(), shadows = shadow_layout_.add(plan, graph::Place::shadow),
             staged = staged_layout_.add(plan, graph::Place::staged);
  if (!larger && !shadows && !staged) return false;
  for (const auto& entry : entries_) entry->program.reset();
  if (larger) {
    activations_ = {};
    activations_ = exec::DeviceArena(memory, plan.arena_bytes, "activations");
    bindings_.arena = activations_.data();
  }
  if (shadows) {
    shadows_ = {};
    shadows_ = exec::DeviceArena(memory, shadow_layout_.bytes, "shadows");
    ++values_epoch_;
  }
  if (staged) {
    staged_ = {};
    staged_ = exec::DeviceArena(memory, staged_layout_.bytes, "staged statistics");
  }
  bind_slots();
  return true;
}

void Step::Impl::bind_slots() {
  const size_t count = program_.parameters.size();
  bindings_.shadows.assign(count, nullptr);
  bindings_.staged.assign(count, nullptr);
  for (size_t i = 0; i < count; ++i) {
    const int64_t shadow = shadow_layout_.offsets[i], staged = staged_layout_.offsets[i];
    if (shadow >= 0) bindings_.shadows[i] = shadows_.data() + shadow;
    if (staged >= 0) bindings_.staged[i] = reinterpret_cast<float*>(staged_.data() + staged);
  }
}

int64_t Step::Impl::held_bytes() const {
  if (!backend_) return 0;
  int64_t bytes = runtime_ ? runtime_->scratch_bytes() : 0;
  for (const auto* arena : {&activations_, &gradients_, &moments_, &shadows_, &staged_, &state_})
    bytes += arena->bytes();
  for (const auto& model : models_) bytes += exec::store_bytes(*model, *backend_);
  return bytes;
}

Step::Impl::PlanEntry& Step::Impl::entry_for(Phase phase, int64_t samples, bool seeds_from_host) {
  prepare();
  for (const auto& entry : entries_)
    if (entry->phase == phase && entry->samples == samples && entry->seeds_from_host == seeds_from_host) {
      entry->used = ++uses_;
      return *entry;
    }
  take_reports();
  return add_entry(make_plan(phase, samples, seeds_from_host));
}

/// No run is pending.
Step::Impl::PlanEntry& Step::Impl::add_entry(std::shared_ptr<const exec::CompiledPlan> plan) {
  if (entries_.size() >= kMaximumPlans)
    entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                    [](const auto& a, const auto& b) { return a->used < b->used; }));
  auto entry = std::make_unique<PlanEntry>();
  entry->phase = plan->source.request.phase;
  entry->samples = plan->source.request.samples;
  entry->seeds_from_host = plan->source.request.seeds_from_host;
  entry->plan = std::move(plan);
  entry->used = ++uses_;
  ++plans_made_;
  if (grow(entry->plan->graph))
    for (const auto& other : entries_) bind(*other);
  bind(*entry);
  entries_.push_back(std::move(entry));
  return *entries_.back();
}

void Step::Impl::bind(PlanEntry& entry) {
  const graph::Graph& graph = entry.plan->graph;
  entry.scheduled = 0;
  entry.shadows_of = -1;
  if (target_->asynchronous() && entry.phase == Phase::train)
    entry.schedule.assign(graph.scalars.size() * static_cast<size_t>(backend::kScheduledUpdates), 0.0f);
  bindings_.schedule = entry.schedule.empty() ? nullptr : entry.schedule.data();
  entry.program = runtime_->compile(graph, entry.samples, bindings_);
  std::set<size_t> writes;
  for (const graph::Value& value : graph.values)
    if (value.producer >= 0 && (value.place == graph::Place::parameter || value.place == graph::Place::buffer))
      writes.insert(static_cast<size_t>(program_.parameters[static_cast<size_t>(value.slot)].store));
  entry.writes.assign(writes.begin(), writes.end());
  const auto slot = [&](const std::string& name) {
    const auto found = std::find(graph.scalars.begin(), graph.scalars.end(), name);
    return found == graph.scalars.end() ? -1 : static_cast<int32_t>(found - graph.scalars.begin());
  };
  entry.seed_slots.clear();
  for (const Term& term : terms_) entry.seed_slots.push_back(slot("seed." + term.name));
  entry.rate = slot("rate");
  entry.ratio = slot("ratio");
  entry.cohorts.clear();
  std::set<int64_t> starts;
  for (size_t i = 0; i < rules_.size(); ++i)
    if (layout_.offsets[i] >= 0) starts.insert(rules_[i].started);
  for (const int64_t started : starts) {
    const auto named = [&](const char* name) { return slot(passes::cohort_scalar(name, started)); };
    entry.cohorts.push_back({started, named("first"), named("bias1"), named("bias2")});
  }
}

}  // namespace brisk
