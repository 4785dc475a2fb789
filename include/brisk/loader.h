// brisk/loader.h: the batches of a data set in their order, read ahead by threads, for loops of the program's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "brisk/data.h"
#include "brisk/export.h"

namespace brisk {

namespace data {
class Batcher;
}

struct LoaderOptions {
  int64_t batch = 32;      ///< samples, at least 1
  bool drop_last = false;  ///< leaves out the short batch at the end of an epoch
  bool pinned = false;     ///< page-locked memory for copies to a GPU; plain memory where the build has no GPU backend
  int64_t prefetch = 2;    ///< batches held ready beyond the current one, when there are workers
  uint64_t seed = 0;       ///< of the order and of each sample's Random
  bool shuffle = false;    ///< another order in each epoch, a pure function of (seed, epoch)
  int64_t workers = 0;     ///< threads that call Dataset::read; 0: the caller's own, when the batch is asked for
};

/// The first sample not yet delivered; the batch that the program works on counts as delivered.
struct LoaderPosition {
  int64_t epoch = 0;
  int64_t sample = 0;  ///< samples of this epoch delivered
  friend bool operator==(const LoaderPosition&, const LoaderPosition&) = default;
};

/// Batches of a data set: for (const Batch& batch : loader.epoch(0)) ... The order of samples and their bytes depend on
/// the options but `prefetch` and `workers`, and on the epoch: never on threads. It moves; one thread at a time uses
/// it. It may be destroyed at any time, which waits for the samples that are being read and for nothing else.
class BRISK_EXPORT Loader {
 public:
  /// The data set must outlive the loader and keep its size and fields. All memory is taken here. Throws Error [data]
  /// for an empty data set, Error [option] naming the option out of range, Error [state] when the system starts no
  /// thread.
  explicit Loader(const Dataset& dataset, LoaderOptions options = {});
  /// A temporary data set dies at the end of the line: name it.
  explicit Loader(const Dataset&& dataset, LoaderOptions options = {}) = delete;
  ~Loader();
  Loader(Loader&&) noexcept;
  Loader& operator=(Loader&&) noexcept;

  class Iterator {
   public:
    const Batch& operator*() const { return *batch_; }
    const Batch* operator->() const { return batch_; }
    Iterator& operator++() {
      batch_ = loader_->next();
      return *this;
    }
    /// The end is the only other iterator that there is.
    friend bool operator!=(const Iterator& a, const Iterator& b) { return a.batch_ != b.batch_; }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.batch_ == b.batch_; }

   private:
    friend class Loader;
    Iterator(Loader* loader, const Batch* batch) : loader_(loader), batch_(batch) {}
    Loader* loader_;
    const Batch* batch_;  // null: the end
  };
  class Epoch {
   public:
    Iterator begin() const { return {loader_, loader_->next()}; }
    Iterator end() const { return {loader_, nullptr}; }

   private:
    friend class Loader;
    explicit Epoch(Loader* loader) : loader_(loader) {}
    Loader* loader_;
  };

  /// The batches of one epoch, from its first sample on; after seek() into this epoch, from there on. A batch holds
  /// until the next turn of the loop. The loop ends with what Dataset::read threw, as Error [data] naming the sample,
  /// in its place in the order. Throws Error [data] for a negative epoch.
  Epoch epoch(int64_t epoch);
  /// The next batch, or null at the end of the epoch, after which the next epoch begins.
  const Batch* next();

  /// Where next() goes on, in O(1).
  LoaderPosition position() const;
  /// Goes on from there, in O(1) whatever lies before; also after an Error. Throws Error [data] for a position outside
  /// the data set.
  void seek(LoaderPosition position);
  /// Batches from the position to the end of its epoch.
  int64_t batches_left() const;
  /// Seconds that the loop waited for data, since the beginning.
  double wait_seconds() const;

 private:
  std::unique_ptr<data::Batcher> batcher_;
  bool sought_ = false;  // the position was asked for: epoch() keeps it
  bool failed_ = false;
};

}  // namespace brisk
