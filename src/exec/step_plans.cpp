// Step::Impl, the middle: what it takes of memory, the plans it keeps, and what freezing changes in both.
#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include "core/log.h"
#include "core/machine.h"
#include "core/text.h"
#include "exec/freeze.h"
#include "exec/step_impl.h"
#include "exec/store.h"
#include "graph/op_table.h"
#include "optim/rules.h"
#include "optim/schedule_body.h"

namespace brisk {

using graph::Phase;

namespace {

constexpr size_t kMaximumPlans = 16;

float* floats(const Arena& arena) { return reinterpret_cast<float*>(arena.data()); }

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
  mark_trained();
  const exec::TrainedLayout before = std::exchange(layout_, exec::trained_layout(program_));
  if (runtime_) {
    try {
      const Arena moments = std::exchange(moments_, Arena());
      entries_.clear();
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

void Step::Impl::keep_moments(const exec::TrainedLayout& before, const Arena& moments) {
  for (size_t i = 0; i < layout_.offsets.size(); ++i) {
    if (layout_.offsets[i] < 0 || before.offsets[i] < 0) continue;
    const auto bytes = static_cast<size_t>(program_.parameters[i].shape.count()) * sizeof(float);
    const float* from = floats(moments) + before.offsets[i];
    if (optimizer.moments() >= 1) std::memcpy(bindings_.moment1[i], from, bytes);
    if (optimizer.moments() == 2) std::memcpy(bindings_.moment2[i], from + before.floats, bytes);
  }
}

void Step::Impl::prepare() {
  if (runtime_) return;
  seal();
  optim::check_resolved(optimizer.name + ".learning_rate", schedule_);
  take_memory();
  started_ = std::chrono::steady_clock::now();
}

/// Checks before it touches memory.
void Step::Impl::take_memory() {
  auto plan = make_plan(Phase::train, batch, accumulate > 1);
  const PlanBytes bytes = plan->bytes;
  int64_t held = 0;
  for (const auto& model : models_) held += exec::store_bytes(*model);
  const int64_t available = available_memory_bytes();
  if (bytes.total - held > available) {
    const int64_t most = largest_batch({.budget_bytes = std::max<int64_t>(available + held, 1)});
    throw Error(ErrorCode::memory, cat("batch ", batch),
                cat("needs ", grouped(bytes.total), " bytes on ", Device().text(), ", ", grouped(available),
                    " are available; largest batch that fits: ", most));
  }
  for (const auto& model : models_) exec::store_of(*model);
  if (!runtime_) runtime_ = backend_->runtime(threads);
  gradients_ = Arena(bytes.gradients, "gradients");
  moments_ = Arena(bytes.moments, "moments");
  activations_ = Arena(bytes.activations, "activations");
  scalars_.assign(plan->graph.scalars.size() + terms_.size() + 8, 0.0f);
  const auto count = static_cast<size_t>(program_.parameters.size());
  for (auto* list : {&bindings_.parameters, &bindings_.gradients, &bindings_.moment1, &bindings_.moment2})
    list->assign(count, nullptr);
  for (size_t i = 0; i < count; ++i) {
    const graph::ParameterRef& parameter = program_.parameters[i];
    ModelState& model = *models_[static_cast<size_t>(parameter.store)];
    bindings_.parameters[i] = exec::store_of(model).data(segment_of(parameter));
    if (layout_.offsets[i] < 0) continue;
    bindings_.gradients[i] = floats(gradients_) + layout_.offsets[i];
    if (optimizer.moments() >= 1) bindings_.moment1[i] = floats(moments_) + layout_.offsets[i];
    if (optimizer.moments() == 2) bindings_.moment2[i] = floats(moments_) + layout_.floats + layout_.offsets[i];
  }
  bindings_.scalars = scalars_.data();
  bindings_.arena = reinterpret_cast<char*>(activations_.data());
  add_entry(std::move(plan));
}

int64_t Step::Impl::held_bytes() const {
  int64_t bytes = activations_.bytes() + gradients_.bytes() + moments_.bytes();
  for (const auto& model : models_) bytes += exec::store_bytes(*model);
  return bytes + (runtime_ ? runtime_->scratch_bytes() : 0);
}

Step::Impl::PlanEntry& Step::Impl::entry_for(Phase phase, int64_t samples, bool seeds_from_host) {
  prepare();
  for (const auto& entry : entries_)
    if (entry->phase == phase && entry->samples == samples && entry->seeds_from_host == seeds_from_host) {
      entry->used = ++uses_;
      return *entry;
    }
  return add_entry(make_plan(phase, samples, seeds_from_host));
}

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
  if (entry->plan->graph.arena_bytes > activations_.bytes()) {
    // Nothing in the arena outlives a run, so a larger one may take its place; what was bound to it is bound again.
    for (const auto& other : entries_) other->program.reset();
    activations_ = Arena();
    activations_ = Arena(entry->plan->graph.arena_bytes, "activations");
    bindings_.arena = reinterpret_cast<char*>(activations_.data());
    for (const auto& other : entries_) bind(*other);
  }
  bind(*entry);
  entries_.push_back(std::move(entry));
  return *entries_.back();
}

void Step::Impl::bind(PlanEntry& entry) {
  const graph::Graph& graph = entry.plan->graph;
  entry.program = runtime_->compile(graph, entry.samples, bindings_);
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
