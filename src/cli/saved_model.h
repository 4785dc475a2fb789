// What brisk train writes into a weights file beside the weights, so that brisk predict needs nothing else.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "brisk/model.h"
#include "cli/models.h"

namespace brisk::cli {

struct SavedModel {
  ModelChoice choice;
  std::vector<int64_t> input;        ///< shape of one sample, channels first for images
  std::vector<std::string> classes;  ///< names, in the order of the outputs; empty: the outputs are numbers
  int64_t resize = 0;                ///< images: their shorter side before the centre is cut out
  bool bytes = false;                ///< images come as u8 [height, width, 3]; the model itself normalizes them

  // Of tables.
  std::vector<std::string> inputs;                    ///< columns; empty: the samples are images
  std::vector<std::string> targets;                   ///< columns
  std::vector<double> mean, deviation;                ///< of the inputs
  std::vector<double> target_mean, target_deviation;  ///< of the targets, where they are numbers

  bool is_table() const { return !inputs.empty(); }
  /// What one sample is.
  Field field() const;
  Model make(uint64_t seed) const;
};

void save(const SavedModel& saved, const Model& model, const std::string& path);

/// Throws Error [file] for a file that brisk train has not written.
SavedModel read_saved(const std::string& path);

}  // namespace brisk::cli
