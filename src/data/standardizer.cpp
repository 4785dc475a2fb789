// Mean 0 and deviation 1 for each element of a field.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>

#include "brisk/tabular.h"
#include "core/text.h"
#include "data/fields.h"
#include "data/fill.h"

namespace brisk {
namespace {

constexpr int64_t kRows = 256;

// All samples in their order, `use` called for each batch.
template <class Use>
void each_batch(const Dataset& dataset, const Use& use) {
  const int64_t size = dataset.size();
  Batch batch(dataset.fields(), std::min(kRows, size));
  const std::atomic<bool> never{false};
  std::vector<int64_t> indices;
  for (int64_t first = 0; first < size; first += kRows) {
    indices.resize(static_cast<size_t>(std::min(kRows, size - first)));
    std::iota(indices.begin(), indices.end(), first);
    batch.assign(indices);
    int64_t row = 0;
    data::fill_rows(dataset, 0, 0, batch, row, batch.size(), never);
    use(batch);
  }
}

Field checked_field(const Dataset& dataset, std::string_view name) {
  const std::vector<Field> fields = dataset.fields();
  Field field = fields[static_cast<size_t>(data::field_number(fields, name, dataset.name()))];
  if (field.dtype != DType::f32) {
    throw Error(ErrorCode::data, cat("\"", field.name, "\""),
                cat("is ", brisk::name(field.dtype), "; only f32 is standardized"));
  }
  return field;
}

}  // namespace

// B. P. Welford, "Note on a method for calculating corrected sums of squares and products", 1962.
Standardizer Standardizer::fit(const Dataset& dataset, std::string_view field) {
  if (dataset.size() < 1) throw Error(ErrorCode::data, dataset.name(), "has no samples to take a mean of");
  const size_t width = static_cast<size_t>(checked_field(dataset, field).shape.count());
  std::vector<double> mean(width, 0.0);
  std::vector<double> squares(width, 0.0);
  int64_t count = 0;
  each_batch(dataset, [&](const Batch& batch) {
    const float* x = batch[field].data<float>();
    for (int64_t row = 0; row < batch.size(); ++row) {
      ++count;
      for (size_t i = 0; i < width; ++i, ++x) {
        if (!std::isfinite(*x)) {
          throw Error(ErrorCode::data, cat("\"", field, "\""),
                      cat("sample ", batch.indices()[static_cast<size_t>(row)], " of ", dataset.name(), ", column ", i,
                          " is ", static_cast<double>(*x), "; a mean needs finite values"));
        }
        const double distance = *x - mean[i];
        mean[i] += distance / static_cast<double>(count);
        squares[i] += distance * (*x - mean[i]);
      }
    }
  });
  for (double& value : squares) value = std::sqrt(value / static_cast<double>(count));
  return Standardizer(std::move(mean), std::move(squares));
}

Standardizer::Standardizer(std::vector<double> mean, std::vector<double> deviation)
    : mean_(std::move(mean)), deviation_(std::move(deviation)) {
  if (mean_.empty() || mean_.size() != deviation_.size()) {
    throw Error(ErrorCode::data, "Standardizer",
                cat("has ", mean_.size(), " means and ", deviation_.size(),
                    " deviations; needed is the same number, at least 1"));
  }
  for (size_t i = 0; i < mean_.size(); ++i) {
    if (std::isfinite(mean_[i]) && std::isfinite(deviation_[i]) && deviation_[i] >= 0) continue;
    throw Error(ErrorCode::data, "Standardizer",
                cat("column ", i, " has mean ", mean_[i], " and deviation ", deviation_[i],
                    "; both must be finite and the deviation at least 0"));
  }
}

float* Standardizer::checked(View samples) const {
  const int64_t width = static_cast<int64_t>(mean_.size());
  if (samples.count() % width != 0) {
    throw Error(ErrorCode::data, cat("samples ", samples.shape()),
                cat("are no whole number of samples of ", width, " elements"));
  }
  return samples.data<float>();
}

void Standardizer::apply(View samples) const {
  float* x = checked(samples);
  for (float* const end = x + samples.count(); x != end;) {
    for (size_t i = 0; i < mean_.size(); ++i, ++x) {
      *x = deviation_[i] > 0 ? static_cast<float>((*x - mean_[i]) / deviation_[i]) : 0;
    }
  }
}

void Standardizer::undo(View samples) const {
  float* x = checked(samples);
  for (float* const end = x + samples.count(); x != end;) {
    for (size_t i = 0; i < mean_.size(); ++i, ++x) *x = static_cast<float>(*x * deviation_[i] + mean_[i]);
  }
}

InMemoryDataset Standardizer::apply(const InMemoryDataset& dataset, std::string_view field) const {
  const int64_t size = dataset.size();
  const Field changed = checked_field(dataset, field);
  std::vector<Field> fields = dataset.fields();
  std::vector<Tensor> columns;
  for (const Field& column : fields) {
    Shape shape = {size};
    for (const int64_t extent : column.shape) shape.append(extent);
    columns.emplace_back(shape, column.dtype);
  }
  int64_t first = 0;
  if (size > 0) {
    each_batch(dataset, [&](const Batch& batch) {
      for (size_t i = 0; i < fields.size(); ++i) {
        const std::span<const std::byte> bytes = batch[fields[i].name].bytes();
        std::copy(bytes.begin(), bytes.end(),
                  static_cast<std::byte*>(View(columns[i]).rows(first, batch.size()).raw()));
      }
      first += batch.size();
    });
  }
  InMemoryDataset out;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == changed.name) apply(View(columns[i]));
    out.add(fields[i].name, std::move(columns[i]));
  }
  out.set_name(dataset.name());
  return out;
}

}  // namespace brisk
