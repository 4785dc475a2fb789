// Which tensor of a file goes into which parameter of a model.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "brisk/weights.h"
#include "checkpoint/safetensors.h"

namespace brisk::checkpoint {

/// The name of the num_batches_tracked that PyTorch keeps beside this running mean; "" for other parameters.
std::string counter_of(const Parameter& parameter);

/// " (did you mean ...?)", or "" when no candidate is near.
std::string did_you_mean(const std::string& name, std::vector<std::string> candidates);

/// A file's names to the model's: prefix and rename, counting what was used.
class Renamer {
 public:
  explicit Renamer(LoadOptions options) : options_(std::move(options)), used_(options_.rename.size(), false) {}
  /// The new name. The file's name must begin with the prefix.
  std::string operator()(std::string_view name);
  bool takes(std::string_view name) const { return name.substr(0, options_.prefix.size()) == options_.prefix; }
  /// Throws Error [option] for a rename that fitted no name.
  void check_all_used() const;

 private:
  LoadOptions options_;
  std::vector<bool> used_;
};

struct Match {
  std::map<std::string, const StoredTensor*> counters;  ///< checked, not loaded
  std::map<std::string, std::string> difference;        ///< of a mismatched name: "file has [2], model has [3]"
  std::map<const StoredTensor*, std::string> loaded;    ///< to the model's name
  LoadReport report;
};

/// Throws Error [option] for a rename or a skip that fits nothing, Error [weights] when two tensors get one name.
Match match_names(const Model& model, const std::vector<StoredTensor>& tensors, const LoadOptions& options);

/// Throws Error [weights] when anything is mismatched, missing or unexpected.
void refuse_differences(const Model& model, const Match& match);

}  // namespace brisk::checkpoint
