// Batches of a data set in their order, epoch after epoch, read ahead by threads of its own where that gains something.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "brisk/data.h"
#include "data/order.h"

namespace brisk::data {

enum class Reading {
  automatic,  ///< in the caller's thread for an InMemoryDataset, ahead for others
  ahead,      ///< in threads of the batcher
  caller,     ///< when the batch is asked for
};

struct BatcherOptions {
  int64_t batch = 32;
  bool drop_last = false;  ///< leave out the short batch at the end of an epoch
  int64_t lookahead = 0;   ///< how many batches peek() may look at
  int64_t prefetch = 2;    ///< batches held ready beyond the current one when reading ahead; at least `lookahead` are
  Reading reading = Reading::automatic;
  uint64_t seed = 0;
  bool shuffle = false;
  int64_t workers = 1;  ///< threads that read ahead; samples of one batch are shared out among them
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
  /// no batch, Error [state] when the system starts no thread.
  Batcher(const Dataset& dataset, const BatcherOptions& options);
  /// Waits for the samples being read, for nothing else.
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
  bool reads_ahead() const { return !threads_->readers.empty(); }

 private:
  struct Slot {
    Batch batch;
    int64_t epoch = 0;
    int64_t rows = 0;
    int64_t given = 0;  // rows that a thread has taken on; they are given out in order
    int64_t done = 0;   // of these, finished, well or not
    int64_t failed_row = 0;
    std::exception_ptr failure;  // of the first row at fault
  };
  // Rows of one batch that one thread reads.
  struct Task {
    Slot* slot = nullptr;
    int64_t first = 0;
    int64_t last = 0;
    int64_t row = 0;  // reached
    std::exception_ptr failure;
  };
  struct Threads {
    std::mutex mutex;
    std::condition_variable work;      // rows to read, or the end
    std::condition_variable progress;  // a batch is whole, or nobody reads
    std::vector<std::thread> readers;
  };

  int64_t rows_at(DataPosition position) const;
  Slot& slot(int64_t sequence) { return slots_[static_cast<size_t>(sequence) % slots_.size()]; }
  void start_readers();
  void stop_readers();
  void serve();
  bool has_task() const;
  void open_batch();
  Task take_task();
  void read(Task& task);
  void finish_task(const Task& task);
  const Batch* ready(int64_t sequence);
  void check_process() const;

  const Dataset& dataset_;
  const BatcherOptions options_;
  const int64_t size_;
  const int process_;
  int64_t task_rows_ = 1;  // the most of one task
  std::vector<Slot> slots_;

  // The consumer's. Sequence numbers count batches since the last seek; batch s lies in slot s mod slots.
  DataPosition position_;
  int64_t next_ = 0;
  double wait_seconds_ = 0;

  std::atomic<bool> abandon_{false};  // what is being read is not wanted any more
  // A place of its own: a forked child can neither join the readers nor destroy what they wait for, so it lets go of
  // it.
  std::unique_ptr<Threads> threads_;

  // Guarded by the mutex while readers run.
  Order order_;
  int64_t order_epoch_ = 0;
  std::vector<int64_t> indices_;
  DataPosition to_open_;
  int64_t opened_ = 0;    // batches below it have been begun
  int64_t filled_ = 0;    // batches below it are whole, or the last of them failed
  int64_t released_ = 0;  // batches below it may be overwritten
  int64_t reading_ = 0;   // tasks taken and not finished
  bool broken_ = false;   // a sample failed: nothing behind it is begun
  bool failed_ = false;   // the last filled batch is the one that failed
  bool stopping_ = false;
};

}  // namespace brisk::data
