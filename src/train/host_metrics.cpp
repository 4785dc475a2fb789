// Gathering rows.
#include "train/host_metrics.h"

#include <cstring>

#include "core/text.h"

namespace brisk::train {
namespace {

std::vector<Tensor> room_for(const std::vector<Field>& fields, int64_t samples) {
  std::vector<Tensor> out;
  for (const Field& field : fields) {
    Shape shape = {samples};
    for (const int64_t size : field.shape) shape.append(size);
    out.emplace_back(shape, field.dtype);
  }
  return out;
}

char* row(Tensor& tensor, int64_t first) {
  const int64_t bytes = tensor.count() * size_of(tensor.dtype());
  return static_cast<char*>(View(tensor).raw()) + (tensor.dim(0) > 0 ? bytes / tensor.dim(0) * first : 0);
}

Feed named(const std::vector<Field>& fields, const std::vector<Tensor>& tensors) {
  Feed out;
  for (size_t i = 0; i < fields.size(); ++i) out.add(fields[i].name, tensors[i]);
  return out;
}

}  // namespace

HostMetricOfMany of_first(HostMetric metric) {
  if (!metric) return {};
  return [metric = std::move(metric)](const Feed& outputs, const Feed& targets) {
    return metric(outputs.entries().front().second, targets.entries().front().second);
  };
}

GatheredRows::GatheredRows(const HostMetrics& metrics, int64_t samples) : metrics_(metrics) {
  if (metrics.functions.empty()) return;
  outputs_ = room_for(metrics.outputs, samples);
  targets_ = room_for(metrics.targets, samples);
}

std::vector<void*> GatheredRows::slots() {
  std::vector<void*> out;
  for (Tensor& tensor : outputs_) out.push_back(row(tensor, done_));
  return out;
}

void GatheredRows::add_targets(const Feed& fed, int64_t rows) {
  for (size_t i = 0; i < targets_.size(); ++i) {
    const ConstView& given = fed[metrics_.targets[i].name];
    std::memcpy(row(targets_[i], done_), given.raw(), given.bytes().size());
  }
  done_ += rows;
}

std::vector<NamedMean> GatheredRows::values() const {
  std::vector<NamedMean> out;
  if (metrics_.functions.empty()) return out;
  const Feed outputs = named(metrics_.outputs, outputs_), targets = named(metrics_.targets, targets_);
  for (const auto& [name, metric] : metrics_.functions) out.push_back({name, metric(outputs, targets), 1});
  return out;
}

}  // namespace brisk::train
