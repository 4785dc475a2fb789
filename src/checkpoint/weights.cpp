// Weights by name between models and files: first everything is matched and read, then the model is written.
#include "brisk/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "checkpoint/match.h"
#include "checkpoint/safetensors.h"
#include "core/text.h"

namespace brisk {
namespace {

using checkpoint::quote_name;
using checkpoint::SafetensorsFile;
using checkpoint::SafetensorsWriter;
using checkpoint::StoredTensor;

int64_t first_nonfinite(const Tensor& tensor) {
  const float* const values = tensor.data<float>();
  const int64_t count = tensor.count();
  return std::find_if(values, values + count, [](float value) { return !std::isfinite(value); }) - values;
}

void check_finite(const std::string& name, const Tensor& tensor) {
  const int64_t index = first_nonfinite(tensor);
  if (index == tensor.count()) return;
  throw Error(ErrorCode::weights, name,
              cat("element ", index, " of ", tensor.shape(), " is ", tensor.data<float>()[index],
                  "; allow it with {.allow_nonfinite = true}; nothing was loaded"));
}

/// The counter of a batch_norm: PyTorch reads it only when momentum is None, Brisk not at all.
void check_counter(SafetensorsFile& file, const std::string& name, const StoredTensor& stored) {
  int64_t value = 0;
  const bool one = stored.dtype == "I64" && stored.shape.count() == 1;
  if (one) file.read(stored, 0, &value, sizeof(value));
  if (one && value >= 0) return;
  throw Error(ErrorCode::weights, name,
              one ? cat("is ", value, "; a number of batches is not negative; nothing was loaded")
                  : cat("is ", stored.dtype, " ", stored.shape,
                        "; the counter of a batch_norm is one I64; nothing was loaded"));
}

std::vector<std::pair<std::string, Tensor>> read_all(SafetensorsFile& file, const checkpoint::Match& match,
                                                     const LoadOptions& options) {
  for (const auto& [name, stored] : match.counters) check_counter(file, name, *stored);
  std::vector<std::pair<std::string, Tensor>> values;
  for (const StoredTensor& stored : file.tensors()) {  // in the order of the file
    const auto found = match.loaded.find(&stored);
    if (found == match.loaded.end()) continue;
    values.emplace_back(found->second, file.read_f32(stored));
    if (!options.allow_nonfinite) check_finite(found->second, values.back().second);
  }
  return values;
}

}  // namespace

void save_weights(const Model& model, const std::string& path, const SaveOptions& options) {
  std::vector<StoredTensor> tensors;
  std::set<std::string> counters;
  for (const Parameter& parameter : model.parameters()) {
    tensors.push_back({parameter.name, "F32", parameter.shape, 0, 0});
    const std::string counter = checkpoint::counter_of(parameter);
    if (!counter.empty() && counters.insert(counter).second) tensors.push_back({counter, "I64", {}, 0, 0});
  }
  checkpoint::Metadata metadata = {{"format", "pt"}};
  for (const auto& [name, text] : options.metadata) {
    if (!metadata.emplace(name, text).second) {
      throw Error(ErrorCode::option, cat("SaveOptions.metadata \"", name, "\""),
                  "is given twice, or is the format's own");
    }
  }
  SafetensorsWriter writer(path, std::move(tensors), metadata);
  for (const StoredTensor& tensor : writer.tensors()) {
    if (counters.count(tensor.name) != 0) {
      constexpr int64_t kNoBatches = 0;
      writer.write(&kNoBatches, sizeof(kNoBatches));
      continue;
    }
    const Tensor value = model.parameter(tensor.name);
    writer.write(value.data<float>(), tensor.end - tensor.begin);
  }
  writer.finish();
}

LoadReport load_weights(Model& model, const std::string& path, const LoadOptions& options) {
  SafetensorsFile file(path);
  checkpoint::Match match = checkpoint::match_names(model, file.tensors(), options);
  if (options.strict) checkpoint::refuse_differences(model, match);
  const std::vector<std::pair<std::string, Tensor>> values = read_all(file, match, options);
  for (const auto& [name, value] : values) model.set_parameter(name, value);
  return std::move(match.report);
}

struct WeightsFile::Impl {
  explicit Impl(const std::string& path) : file(path) {
    for (const StoredTensor& stored : file.tensors()) tensors.push_back({stored.dtype, stored.name, stored.shape});
    std::sort(tensors.begin(), tensors.end(),
              [](const StoredWeight& a, const StoredWeight& b) { return a.name < b.name; });
  }
  SafetensorsFile file;
  std::vector<StoredWeight> tensors;
};

WeightsFile::WeightsFile(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
WeightsFile::~WeightsFile() = default;
WeightsFile::WeightsFile(WeightsFile&&) noexcept = default;
WeightsFile& WeightsFile::operator=(WeightsFile&&) noexcept = default;

const std::vector<StoredWeight>& WeightsFile::tensors() const& { return impl_->tensors; }
std::vector<StoredWeight> WeightsFile::tensors() && { return std::move(impl_->tensors); }

std::vector<std::pair<std::string, std::string>> WeightsFile::metadata() const {
  return {impl_->file.metadata().begin(), impl_->file.metadata().end()};
}

Tensor WeightsFile::read(std::string_view name) const {
  const StoredTensor* const stored = impl_->file.find(name);
  if (stored == nullptr) {
    std::vector<std::string> names;
    for (const StoredWeight& tensor : impl_->tensors) names.push_back(tensor.name);
    throw Error(ErrorCode::weights, std::string(name),
                cat("is not in ", impl_->file.path(), checkpoint::did_you_mean(std::string(name), names)));
  }
  return impl_->file.read_f32(*stored);
}

void WeightsFile::save_renamed(const std::string& path,
                               const std::vector<std::pair<std::string, std::string>>& rename) const {
  SafetensorsFile& file = impl_->file;
  checkpoint::Renamer renamer({.rename = rename});
  std::vector<StoredTensor> renamed = file.tensors();
  std::map<std::string, const StoredTensor*> sources;
  for (size_t i = 0; i < renamed.size(); ++i) {
    renamed[i].name = renamer(renamed[i].name);
    renamed[i].begin = renamed[i].end = 0;
    sources[renamed[i].name] = &file.tensors()[i];
  }
  renamer.check_all_used();
  SafetensorsWriter writer(path, std::move(renamed), file.metadata());
  constexpr int64_t kChunk = int64_t{1} << 20;
  std::vector<char> bytes(kChunk);
  for (const StoredTensor& tensor : writer.tensors()) {
    const int64_t size = tensor.end - tensor.begin;
    for (int64_t offset = 0; offset < size; offset += kChunk) {
      const int64_t part = std::min(size - offset, kChunk);
      file.read(*sources.at(tensor.name), offset, bytes.data(), part);
      writer.write(bytes.data(), part);
    }
  }
  writer.finish();
}

}  // namespace brisk
