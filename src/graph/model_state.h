// What a traced model is: its graph, its segment table, and the store that holds the bytes.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "brisk/model.h"
#include "graph/graph.h"
#include "graph/segment.h"

namespace brisk {

namespace exec {
class Store;
}

struct ModelState {
  std::string name;
  uint64_t seed = 0;
  std::vector<Field> inputs;
  graph::Graph graph;                               ///< Phase::train form, no loss; inputs are loaded
  std::vector<graph::Segment> segments;             ///< canonical order
  std::vector<std::shared_ptr<ModelState>> models;  ///< meaning of ParameterRef::store; [0] is null: this model itself
  std::shared_ptr<ModelState> weights;              ///< the model whose parameters these are; null: its own
  int64_t parameter_floats = 0;                     ///< arena sizes in floats, padding included
  int64_t buffer_floats = 0;
  std::vector<std::pair<std::string, bool>> freezes;  ///< globs of freeze (true) and unfreeze; the last match counts
  int64_t freeze_version = 0;                         ///< changes with freeze and unfreeze
  std::mutex store_mutex;                             ///< guards `store`: several threads may be the first to need it
  std::shared_ptr<exec::Store> store;                 ///< made when first needed
  std::atomic<bool> busy{false};                      ///< a step is running on it
  std::atomic<int> copying{0};                        ///< who copies its values, or waits to: the next step lets them
};

/// The model that has the parameters: itself, unless it was traced for other inputs of that one.
inline const std::shared_ptr<ModelState>& owner_of(const std::shared_ptr<ModelState>& model) {
  return model->weights ? model->weights : model;
}

/// Lays segments out in order: each starts at a multiple of 64 bytes; buffers have an arena of their own.
void place_segments(ModelState& model);

}  // namespace brisk
