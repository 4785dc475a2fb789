// brisk/weights.h: the weights of a model in .safetensors files, with PyTorch's names and layouts.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "brisk/export.h"
#include "brisk/model.h"
#include "brisk/tensor.h"

namespace brisk {

/// Which tensors of a file go into which parameters. Names are changed in this order: prefix, rename, skip.
struct LoadOptions {
  bool allow_nonfinite = false;  ///< false: a NaN or an infinity is an Error [weights] that names tensor and index
  std::string
      prefix{};  ///< only names of the file that begin with it take part ("backbone."), and it is taken off them
  /// Leading parts of names, whole between dots: {{"features.0.0", "conv1"}} makes features.0.0.weight conv1.weight.
  /// The first that fits counts; an empty first part puts the second in front of every name, an empty second part takes
  /// the first off. One that fits no name of the file is an Error [option].
  std::vector<std::pair<std::string, std::string>> rename{};
  /// Globs (`*`, `?`) over the model's names: these parameters keep their values, and what the file has for them is not
  /// read. One that matches nothing is an Error [option].
  std::vector<std::string> skip{};
  bool strict = true;  ///< anything missing, unexpected or mismatched is an Error [weights], and nothing is loaded
};

/// What became of each tensor, by the model's names and in its order; what is not the model's is sorted by name.
struct LoadReport {
  std::vector<std::string> loaded{};
  std::vector<std::string> mismatched{};  ///< another shape, or no float type; not loaded
  std::vector<std::string> missing{};     ///< of the model, not in the file; kept as they were
  std::vector<std::string> skipped{};     ///< by LoadOptions::skip, or without LoadOptions::prefix (the file's names)
  std::vector<std::string> unexpected{};  ///< of the file, not in the model
};

struct SaveOptions {
  /// Names and texts for the file's header, beside the {"format", "pt"} that is always there; each name once.
  std::vector<std::pair<std::string, std::string>> metadata{};
};

/// Writes parameters and running statistics as f32 in PyTorch's names and layouts (convolutions O,I,H,W; linear layers
/// out x in), and a num_batches_tracked of 0 for each batch_norm, so that load_state_dict(..., strict=True) accepts the
/// file. Parameters of other models that this one calls belong to those: save each. The file is written beside its
/// place and renamed, always as a new file: a crash leaves the old one whole, a mapping of the old one stays valid.
/// Throws Error [file] with the path and the system's reason (full disk, no such folder); nothing is left behind then.
BRISK_EXPORT void save_weights(const Model& model, const std::string& path, const SaveOptions& options = {});

/// Reads weights by name. F32 is taken bit by bit, F16 and BF16 exactly, F64 rounded to f32 (too large: an Error);
/// other types are mismatched. num_batches_tracked of a batch_norm is checked (one I64, not negative), not needed, and
/// ignored. All or nothing: whatever throws, the model is unchanged; the weights are in memory twice while it reads.
/// Throws Error [file] for a file that breaks a rule of the format, before any memory is taken for its tensors; Error
/// [weights] that lists what does not fit.
BRISK_EXPORT LoadReport load_weights(Model& model, const std::string& path, const LoadOptions& options = {});

/// A tensor of a weights file, as it is stored.
struct StoredWeight {
  std::string dtype{};  ///< "F32", "F16", "I64", ... as the format names it
  std::string name{};
  Shape shape{};
};

/// A weights file without a model: what is in it, and its values.
class BRISK_EXPORT WeightsFile {
 public:
  /// Reads and checks the header. Throws Error [file].
  explicit WeightsFile(const std::string& path);
  ~WeightsFile();
  WeightsFile(WeightsFile&&) noexcept;
  WeightsFile& operator=(WeightsFile&&) noexcept;

  /// Sorted by name. Of a temporary file they are given by value, so that a loop over them may stand in one line.
  const std::vector<StoredWeight>& tensors() const&;
  std::vector<StoredWeight> tensors() &&;
  /// Names and texts of the header, sorted by name.
  std::vector<std::pair<std::string, std::string>> metadata() const;
  /// The values as f32 (F32, F16, BF16, F64). Throws Error [weights] for an unknown name or another type.
  Tensor read(std::string_view name) const;
  /// Writes all tensors, bit by bit, under changed names (as LoadOptions::rename) to another file, or the same one.
  void save_renamed(const std::string& path, const std::vector<std::pair<std::string, std::string>>& rename) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace brisk
