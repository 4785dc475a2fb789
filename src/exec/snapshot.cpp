#include "exec/snapshot.h"

#include <algorithm>
#include <cmath>

#include "exec/model_use.h"
#include "exec/store.h"

namespace brisk::exec {
namespace {

constexpr int64_t kFloatsOfAlignment = 16;

/// The state that holds a parameter: the model's own, or that of a model that it calls.
const std::shared_ptr<ModelState>& owner(const std::shared_ptr<ModelState>& model, const graph::ParameterRef& ref) {
  const auto& called = model->models[static_cast<size_t>(ref.store)];
  return called ? called : model;
}

const float* values_of(const std::shared_ptr<ModelState>& model, const graph::ParameterRef& ref) {
  ModelState& state = *owner(model, ref);
  return store_of(state).read(state.segments[static_cast<size_t>(ref.segment)]);
}

/// In double, rounded once.
void fold_values(const passes::Fold& fold, const std::vector<const float*>& sources, int64_t channels, int64_t each,
                 float* weight, float* bias) {
  const auto source = [&](int32_t slot) { return sources[static_cast<size_t>(slot)]; };
  for (int64_t c = 0; c < channels; ++c) {
    const double scale = source(fold.scale)[c] / std::sqrt(double{source(fold.variance)[c]} + fold.epsilon);
    double sum = -double{source(fold.mean)[c]};
    for (const int32_t slot : fold.source_biases) sum += source(slot)[c];
    bias[c] = static_cast<float>(sum * scale + source(fold.shift)[c]);
    const float* from = source(fold.source_weight) + c * each;
    for (int64_t i = 0; i < each; ++i) weight[c * each + i] = static_cast<float>(from[i] * scale);
  }
}

}  // namespace

Snapshots::Snapshots(const graph::Graph& program, std::vector<passes::Fold> folds, const graph::Graph& plan)
    : sources_(program.parameters), offsets_(program.parameters.size(), -1), folds_(std::move(folds)) {
  for (const graph::Node& node : plan.nodes)
    for (const graph::ValueId id : node.inputs) {
      const graph::Value& value = plan.value(id);
      if (value.place != graph::Place::parameter && value.place != graph::Place::buffer) continue;
      const auto slot = static_cast<size_t>(value.slot);
      if (offsets_[slot] >= 0) continue;
      offsets_[slot] = floats_;
      floats_ += (sources_[slot].shape.count() + kFloatsOfAlignment - 1) / kFloatsOfAlignment * kFloatsOfAlignment;
    }
}

int64_t Snapshots::bytes() const { return copies_[0].memory.bytes() + copies_[1].memory.bytes(); }

void Snapshots::take_memory(Reading::Copy& copy) const {
  copy.memory = Arena(bytes_each(), "parameters of a predictor");
  for (const int64_t offset : offsets_)
    copy.parameters.push_back(offset < 0 ? nullptr : reinterpret_cast<float*>(copy.memory.data()) + offset);
}

void Snapshots::publish(const std::shared_ptr<ModelState>& model) {
  const std::lock_guard lock(publishing_);
  const size_t next = copies_[0].parameters.empty() ? 0 : 1 - newest_.load();
  Reading::Copy& copy = copies_[next];
  if (copy.parameters.empty()) take_memory(copy);
  wait_until([&] { return copy.readers.load() == 0; });
  fill(copy, model);
  newest_.store(next);
  publications_.fetch_add(1);
}

void Snapshots::fill(const Reading::Copy& copy, const std::shared_ptr<ModelState>& model) {
  models_.clear();
  for (const auto& called : model->models) models_.push_back(called ? called : model);
  {
    const CopyUse use(models_);
    values_.clear();
    for (const graph::ParameterRef& ref : sources_) values_.push_back(ref.store < 0 ? nullptr : values_of(model, ref));
    for (size_t i = 0; i < sources_.size(); ++i)
      if (offsets_[i] >= 0 && values_[i]) std::copy_n(values_[i], sources_[i].shape.count(), copy.parameters[i]);
    for (const passes::Fold& fold : folds_) {
      const Shape& shape = sources_[static_cast<size_t>(fold.weight)].shape;
      fold_values(fold, values_, shape[0], shape.count() / shape[0], copy.parameters[static_cast<size_t>(fold.weight)],
                  copy.parameters[static_cast<size_t>(fold.bias)]);
    }
  }
  models_.clear();
}

/// A copy that is no longer the newest once it is pinned may be under the pen already: that pin is taken back.
Snapshots::Reading::Copy& Snapshots::Reading::pin(Snapshots& snapshots) {
  for (;;) {
    const size_t newest = snapshots.newest_.load();
    Copy& copy = snapshots.copies_[newest];
    copy.readers.fetch_add(1);
    if (snapshots.newest_.load() == newest) return copy;
    copy.readers.fetch_sub(1);
  }
}

Snapshots::Reading::Reading(Snapshots& snapshots) : copy_(pin(snapshots)) {}

}  // namespace brisk::exec
