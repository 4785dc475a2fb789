// Filling a batch with given samples of a data set.
#pragma once

#include <atomic>

#include "brisk/data.h"

namespace brisk::data {

/// An InMemoryDataset itself, not a class derived from it, whose read() may do more.
bool is_in_memory(const Dataset& dataset);

/// Reads rows `row` .. `last` - 1 of `out`, a batch of the data set's fields() whose indices are assigned. `row` counts
/// up as they are done, so that it stands at the sample at fault when this throws. Several threads may read different
/// rows of one batch. Asks `abandon` before each sample and returns false when it is set. Sets in memory are gathered
/// without a call for each sample, and only as whole batches. What read() throws becomes Error [data] "sample 5012 of
/// Scans: ...".
bool fill_rows(const Dataset& dataset, uint64_t seed, int64_t epoch, Batch& out, int64_t& row, int64_t last,
               const std::atomic<bool>& abandon);

}  // namespace brisk::data
