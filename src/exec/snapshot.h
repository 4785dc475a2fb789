// What a predictor reads: copies of a model's values, of which one is read while the next is written. A reader keeps
// the copy that it began with; neither side takes a lock.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "core/arena.h"
#include "graph/model_state.h"
#include "passes/fold.h"

namespace brisk::exec {

class Snapshots {
 public:
  /// program: after folding; plan: one that is made of it, which says which parameters are read at all.
  Snapshots(const graph::Graph& program, std::vector<passes::Fold> folds, const graph::Graph& plan);

  /// Copies the values of a model of the program's structure, folds, and makes that copy the one that is read from now
  /// on. One caller at a time, others wait; it waits for readers of the copy before the last. Takes memory at its first
  /// two calls.
  void publish(const std::shared_ptr<ModelState>& model);

  /// Pins the newest copy while it lives.
  class Reading {
   public:
    explicit Reading(Snapshots& snapshots);
    ~Reading() { copy_.readers.fetch_sub(1, std::memory_order_release); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;
    /// By index into Graph::parameters; null for those that no plan reads.
    float* const* parameters() const { return copy_.parameters.data(); }

   private:
    friend class Snapshots;
    struct Copy {
      Arena memory;
      std::vector<float*> parameters;
      alignas(64) std::atomic<int64_t> readers{0};
    };
    static Copy& pin(Snapshots& snapshots);
    Copy& copy_;
  };

  int64_t publications() const { return publications_.load(std::memory_order_acquire); }
  int64_t bytes_each() const { return floats_ * int64_t{sizeof(float)}; }
  int64_t bytes() const;  ///< held now

 private:
  void take_memory(Reading::Copy& copy) const;
  void fill(const Reading::Copy& copy, const std::shared_ptr<ModelState>& model);

  std::vector<graph::ParameterRef> sources_;
  std::vector<int64_t> offsets_;  // floats, by Graph::parameters index; -1: not read
  std::vector<passes::Fold> folds_;
  int64_t floats_ = 0;
  std::mutex publishing_;
  std::vector<const float*> values_;                 // of the model that is published, by Graph::parameters index
  std::vector<std::shared_ptr<ModelState>> models_;  // that it consists of
  std::array<Reading::Copy, 2> copies_;
  std::atomic<size_t> newest_{0};
  std::atomic<int64_t> publications_{0};
};

}  // namespace brisk::exec
