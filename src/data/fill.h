// Filling a batch with given samples of a data set.
#pragma once

#include <atomic>
#include <span>

#include "brisk/data.h"

namespace brisk::data {

/// An InMemoryDataset itself, not a class derived from it, whose read() may do more.
bool is_in_memory(const Dataset& dataset);

/// Fills `out`, made from the data set's fields(), with `indices` in their order. Sets in memory are gathered without a
/// call for each sample. Asks `abandon` before each sample and returns false when it is set. What read() throws becomes
/// Error [data] "sample 5012 of Scans: ...".
bool fill(const Dataset& dataset, std::span<const int64_t> indices, uint64_t seed, int64_t epoch, Batch& out,
          const std::atomic<bool>& abandon);

}  // namespace brisk::data
