// Batches of a data set in their order, epoch after epoch, read ahead in a thread of its own where that gains
// something.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "brisk/data.h"
#include "data/order.h"

namespace brisk::data {

enum class Reading {
  automatic,  ///< in the caller's thread for an InMemoryDataset, ahead for others
  ahead,      ///< in a thread of the batcher
  caller,     ///< when the batch is asked for
};

struct BatcherOptions {
  int64_t batch = 32;
  bool drop_last = false;  ///< leave out the short batch at the end of an epoch
  int64_t lookahead = 0;   ///< how many batches peek() may look at
  int64_t prefetch = 2;    ///< batches held ready beyond the current one; at least `lookahead` are
  Reading reading = Reading::automatic;
  uint64_t seed = 0;
  bool shuffle = false;
};

/// The first sample not yet delivered.
struct DataPosition {
  int64_t epoch = 0;
  int64_t offset = 0;  ///< samples of this epoch delivered
  friend bool operator==(const DataPosition&, const DataPosition&) = default;
};

class Batcher {
 public:
  /// The data set must outlive the batcher and keep its size and fields. All memory is taken here; delivery takes none.
  /// Throws Error [data] for an empty data set, Error [option] for values out of range, also when drop_last would leave
  /// no batch.
  Batcher(const Dataset& dataset, const BatcherOptions& options);
  /// Waits for the sample being read, for nothing else.
  ~Batcher();
  Batcher(const Batcher&) = delete;
  Batcher& operator=(const Batcher&) = delete;

  /// The next batch, valid until the next call of next() or seek(); null once at the end of each epoch, after which the
  /// next epoch begins. What read() threw is thrown here in its place in the order, and again until seek().
  const Batch* next();
  /// The batch that the k-th call of next() from now (0: the next one) will deliver, valid until that call is followed
  /// by another; null beyond the end of the epoch. Throws Error [state] unless 0 <= k < lookahead, and what read()
  /// threw.
  const Batch* peek(int64_t k);
  /// Goes on from there without reading what lies before. Throws Error [data] for a position outside the data set.
  void seek(DataPosition position);
  DataPosition position() const { return position_; }
  /// Batches from `position` to the end of its epoch.
  int64_t batches_left(DataPosition position) const;
  int64_t batches_left() const { return batches_left(position_); }
  /// Seconds that next() and peek() spent reading or waiting, since the beginning.
  double wait_seconds() const { return wait_seconds_; }
  bool reads_ahead() const { return reader_.joinable(); }

 private:
  struct Slot {
    Batch batch;
    std::exception_ptr failure;
  };

  int64_t rows_at(DataPosition position) const;
  Slot& slot(int64_t sequence) { return slots_[static_cast<size_t>(sequence) % slots_.size()]; }
  void start_reader();
  void serve();
  bool fill_slot(Slot& slot, DataPosition position);
  void count_filled();
  const Batch* ready(int64_t sequence);
  void check_process() const;

  const Dataset& dataset_;
  const BatcherOptions options_;
  const int64_t size_;
  const int process_;
  std::vector<Slot> slots_;

  // The consumer's. Sequence numbers count batches since the last seek; batch s lies in slot s mod slots.
  DataPosition position_;
  int64_t next_ = 0;
  double wait_seconds_ = 0;

  // The filling thread's.
  Order order_;
  int64_t order_epoch_ = 0;
  std::vector<int64_t> indices_;

  std::atomic<bool> abandon_{false};  // the batch being read is not wanted any more
  std::mutex mutex_;                  // guards what follows while a reader runs
  std::condition_variable changed_;
  DataPosition to_read_;
  int64_t filled_ = 0;    // batches below it are ready
  int64_t released_ = 0;  // batches below it may be overwritten
  bool failed_ = false;   // the last filled slot holds a failure: nothing more is read
  bool filling_ = false;
  bool stopping_ = false;
  std::thread reader_;
};

}  // namespace brisk::data
