// Metrics of whole data sets on the host: the rows they need, gathered over an evaluation.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "brisk/trainer.h"

namespace brisk::train {

/// The metrics in the order in which they were given, and what the step gives and takes for them.
struct HostMetrics {
  std::vector<std::pair<std::string, HostMetricOfMany>> functions;
  std::vector<Field> outputs;  ///< of the step; empty without functions
  std::vector<Field> targets;  ///< of the step
};

/// A metric of one output and one target: the first of each.
HostMetricOfMany of_first(HostMetric metric);

/// All rows of outputs and targets in the order of the data set.
class GatheredRows {
 public:
  GatheredRows(const HostMetrics& metrics, int64_t samples);
  /// Where the outputs of the next samples go.
  std::vector<void*> slots();
  /// Copies the targets among `fed`; the next rows follow these.
  void add_targets(const Feed& fed, int64_t rows);
  /// The metrics' values, each a mean with count 1.
  std::vector<NamedMean> values() const;

 private:
  const HostMetrics& metrics_;
  int64_t done_ = 0;
  std::vector<Tensor> outputs_, targets_;
};

}  // namespace brisk::train
