// Who may touch a model's values when: one step at a time changes them, and others copy them between two of its runs.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "brisk/error.h"
#include "graph/model_state.h"

namespace brisk::exec {

/// Looks again until the condition holds; for waits that are rare and not longer than a step.
template <class Condition>
void wait_until(const Condition& condition) {
  constexpr int kYields = 64;
  for (int looks = 0; !condition(); ++looks) {
    if (looks < kYields) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

using Models = std::vector<std::shared_ptr<ModelState>>;

/// While it lives, a step runs on the models. Two at once are refused instead of racing; copies are waited for. Must
/// not outlive the list.
class StepUse {
 public:
  explicit StepUse(const Models& models) : models_(models) {
    const auto nobody_copies = [&] {
      return std::all_of(models.begin(), models.end(), [](const auto& model) { return model->copying.load() == 0; });
    };
    for (;;) {
      wait_until(nobody_copies);
      take();
      if (nobody_copies()) return;
      release(models_.size());  // a copy has begun in between: it goes first
    }
  }
  ~StepUse() { release(models_.size()); }
  StepUse(const StepUse&) = delete;
  StepUse& operator=(const StepUse&) = delete;

 private:
  void take() {
    for (size_t i = 0; i < models_.size(); ++i) {
      if (!models_[i]->busy.exchange(true)) continue;
      release(i);
      throw Error(ErrorCode::state, "Step",
                  "another thread is using model '" + models_[i]->name + "' at this moment; one at a time");
    }
  }
  void release(size_t count) {
    for (size_t i = 0; i < count; ++i) models_[i]->busy.store(false);
  }
  const Models& models_;
};

/// While it lives, no step runs on any of the models: their values can be copied whole. Any number at once. Must not
/// outlive the list.
class CopyUse {
 public:
  explicit CopyUse(const Models& models) : models_(models) {
    for (const auto& model : models) model->copying.fetch_add(1);
    for (const auto& model : models) wait_until([&] { return !model->busy.load(); });
  }
  ~CopyUse() {
    for (const auto& model : models_) model->copying.fetch_sub(1);
  }
  CopyUse(const CopyUse&) = delete;
  CopyUse& operator=(const CopyUse&) = delete;

 private:
  const Models& models_;
};

}  // namespace brisk::exec
