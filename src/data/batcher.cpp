// Batches in their order.
#include "data/batcher.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <system_error>

#include "core/signals.h"
#include "core/text.h"
#include "data/fill.h"

namespace brisk::data {
namespace {

int64_t checked_size(const Dataset& dataset) {
  const int64_t size = dataset.size();
  if (size < 1) throw Error(ErrorCode::data, dataset.name(), cat("has ", size, " samples; at least 1 is needed"));
  return size;
}

void refuse(const char* option, int64_t value, const std::string& reason) {
  throw Error(ErrorCode::option, cat(option, " = ", value), reason);
}

BatcherOptions checked(const BatcherOptions& options, int64_t size) {
  constexpr int64_t kMostAhead = 1 << 20;
  if (options.batch < 1) refuse("batch", options.batch, "must be at least 1");
  for (const auto& [name, value] : {std::pair{"lookahead", options.lookahead}, {"prefetch", options.prefetch}}) {
    if (value < 0 || value > kMostAhead) refuse(name, value, cat("must be 0 to ", kMostAhead, " batches"));
  }
  if (options.drop_last && options.batch > size) {
    refuse("batch", options.batch, cat("is more than the ", size, " samples there are, and drop_last leaves none"));
  }
  return options;
}

class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace

Batcher::Batcher(const Dataset& dataset, const BatcherOptions& options)
    : dataset_(dataset),
      options_(checked(options, checked_size(dataset))),
      size_(dataset.size()),
      process_(getpid()),
      order_(options.seed, 0, size_) {
  const int64_t capacity = std::min(options_.batch, size_);
  const std::vector<Field> fields = dataset.fields();
  const int64_t slots = std::max(options_.prefetch, options_.lookahead) + 1;
  slots_.resize(static_cast<size_t>(slots));
  for (Slot& slot : slots_) slot.batch = Batch(fields, capacity);
  indices_.resize(static_cast<size_t>(capacity));
  const bool in_memory = is_in_memory(dataset);
  if (options_.reading == Reading::ahead || (options_.reading == Reading::automatic && !in_memory)) start_reader();
}

Batcher::~Batcher() {
  if (!reader_.joinable()) return;
  if (getpid() != process_) {
    // After fork the thread is not in this process: there is nothing to join, and a joinable thread must not die.
    new std::thread(std::move(reader_));
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    abandon_ = true;
  }
  changed_.notify_all();
  reader_.join();
}

void Batcher::start_reader() {
  const SignalsBlocked blocked;
  try {
    reader_ = std::thread([this] { serve(); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::state, "prefetch", cat("the system did not start the reading thread: ", error.what()));
  }
}

int64_t Batcher::rows_at(DataPosition position) const {
  const int64_t left = size_ - position.offset;
  return options_.drop_last && left < options_.batch ? 0 : std::min(left, options_.batch);
}

int64_t Batcher::batches_left(DataPosition position) const {
  const int64_t left = size_ - position.offset;
  return left / options_.batch + (!options_.drop_last && left % options_.batch != 0 ? 1 : 0);
}

// False when it was abandoned.
bool Batcher::fill_slot(Slot& slot, DataPosition position) {
  slot.failure = nullptr;
  const size_t rows = static_cast<size_t>(rows_at(position));
  if (order_epoch_ != position.epoch) {
    order_ = Order(options_.seed, position.epoch, size_);
    order_epoch_ = position.epoch;
  }
  for (size_t i = 0; i < rows; ++i) {
    const int64_t place = position.offset + static_cast<int64_t>(i);
    indices_[i] = options_.shuffle ? order_[place] : place;
  }
  try {
    return fill(dataset_, std::span(indices_).first(rows), options_.seed, position.epoch, slot.batch, abandon_);
  } catch (...) {
    slot.failure = std::current_exception();
    return true;
  }
}

void Batcher::count_filled() {
  failed_ = slot(filled_).failure != nullptr;
  ++filled_;
  to_read_.offset += rows_at(to_read_);
  if (rows_at(to_read_) == 0) to_read_ = {to_read_.epoch + 1, 0};
}

void Batcher::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] {
      const bool room = filled_ - released_ < static_cast<int64_t>(slots_.size());
      return stopping_ || (room && !failed_ && !abandon_);
    });
    if (stopping_) return;
    Slot& free = slot(filled_);
    const DataPosition position = to_read_;
    filling_ = true;
    lock.unlock();
    const bool whole = fill_slot(free, position);
    lock.lock();
    filling_ = false;
    if (whole && !abandon_) count_filled();
    changed_.notify_all();
  }
}

const Batch* Batcher::ready(int64_t sequence) {
  check_process();
  std::unique_lock lock(mutex_);
  if (filled_ <= sequence && !failed_) {
    const Stopwatch watch(wait_seconds_);
    if (reader_.joinable()) {
      changed_.wait(lock, [&] { return filled_ > sequence || failed_; });
    } else {
      while (filled_ <= sequence && !failed_) {
        fill_slot(slot(filled_), to_read_);
        count_filled();
      }
    }
  }
  const Slot& wanted = slot(std::min(sequence, filled_ - 1));
  if (wanted.failure) std::rethrow_exception(wanted.failure);
  return &wanted.batch;  // stays as it is until it is released
}

const Batch* Batcher::next() {
  {
    const std::lock_guard lock(mutex_);
    released_ = next_;
  }
  changed_.notify_all();
  if (rows_at(position_) == 0) {
    position_ = {position_.epoch + 1, 0};
    return nullptr;
  }
  const Batch* batch = ready(next_);
  ++next_;
  position_.offset += batch->size();
  return batch;
}

const Batch* Batcher::peek(int64_t k) {
  if (k < 0 || k >= options_.lookahead) {
    throw Error(ErrorCode::state, cat("peek(", k, ")"), cat("must be 0 to lookahead ", options_.lookahead, " - 1"));
  }
  return k < batches_left() ? ready(next_ + k) : nullptr;
}

void Batcher::seek(DataPosition position) {
  if (position.epoch < 0 || position.offset < 0 || position.offset > size_) {
    throw Error(ErrorCode::data, cat("position (epoch ", position.epoch, ", offset ", position.offset, ")"),
                cat("the epoch must be at least 0, the offset 0 to ", size_, " samples of ", dataset_.name()));
  }
  check_process();
  {
    std::unique_lock lock(mutex_);
    abandon_ = true;
    changed_.wait(lock, [this] { return !filling_; });
    abandon_ = false;
    position_ = position;
    to_read_ = rows_at(position) == 0 ? DataPosition{position.epoch + 1, 0} : position;
    next_ = 0;
    filled_ = 0;
    released_ = 0;
    failed_ = false;
  }
  changed_.notify_all();
}

void Batcher::check_process() const {
  if (reader_.joinable() && getpid() != process_) {
    throw Error(ErrorCode::state, "prefetch",
                "used after fork in the child process, which has no copy of the reading "
                "thread; create the object after fork");
  }
}

}  // namespace brisk::data
