// The data that brisk train is given: which kind they are, how they are read and changed, what the model must know.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "brisk/data.h"
#include "cli/saved_model.h"

namespace brisk::cli {

struct DataOptions {
  std::string augment = "automatic";
  bool classes = false;
  std::string data = "auto";
  std::vector<std::string> ignore;
  double skip_corrupt = 0;
  std::vector<std::string> targets;
  std::string test_images, test_labels, train_images, train_labels;
  double validation = 0.1;
};

struct TrainingData {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> validation;
  std::vector<std::unique_ptr<Dataset>> parts;  ///< what those two are made of
  SavedModel saved;                             ///< complete
};

void add_data_options(CLI::App& command, DataOptions& options);

/// choice: as it was given; the model's name may be empty.
TrainingData load(const DataOptions& options, const ModelChoice& choice, uint64_t seed);

}  // namespace brisk::cli
