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
  constexpr int64_t kMostWorkers = 1024;
  if (options.workers < 1 || options.workers > kMostWorkers) {
    refuse("workers", options.workers, cat("must be 1 to ", kMostWorkers, " threads"));
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
      threads_(std::make_unique<Threads>()),
      order_(options.seed, 0, size_) {
  const int64_t capacity = std::min(options_.batch, size_);
  const std::vector<Field> fields = dataset.fields();
  const bool in_memory = is_in_memory(dataset);
  const bool ahead = options_.reading == Reading::ahead || (options_.reading == Reading::automatic && !in_memory);
  const int64_t slots = std::max(ahead ? options_.prefetch : 0, options_.lookahead) + 1;
  slots_.resize(static_cast<size_t>(slots));
  for (Slot& slot : slots_) slot.batch = Batch(fields, capacity);
  indices_.resize(static_cast<size_t>(capacity));
  // A few tasks for each thread even out slow samples; a set in memory is gathered by whole batches.
  constexpr int64_t kTasksEach = 4;
  const bool shared_out = ahead && !in_memory && options_.workers > 1;
  task_rows_ = shared_out ? std::max<int64_t>(capacity / (options_.workers * kTasksEach), 1) : capacity;
  if (ahead) start_readers();
}

Batcher::~Batcher() {
  if (!reads_ahead()) return;
  if (getpid() != process_) {
    threads_.release();
    return;
  }
  stop_readers();
}

void Batcher::start_readers() {
  const SignalsBlocked blocked;
  std::vector<std::thread>& readers = threads_->readers;
  readers.reserve(static_cast<size_t>(options_.workers));
  try {
    while (static_cast<int64_t>(readers.size()) < options_.workers) readers.emplace_back([this] { serve(); });
  } catch (const std::system_error& error) {
    const size_t started = readers.size();
    stop_readers();
    throw Error(ErrorCode::state, cat("workers = ", options_.workers),
                cat("the system started ", started, " reading threads and refused the next: ", error.what()));
  } catch (...) {
    stop_readers();
    throw;
  }
}

void Batcher::stop_readers() {
  {
    const std::lock_guard lock(threads_->mutex);
    stopping_ = true;
    abandon_ = true;
  }
  threads_->work.notify_all();
  for (std::thread& reader : threads_->readers) reader.join();
  threads_->readers.clear();
}

int64_t Batcher::rows_at(DataPosition position) const {
  const int64_t left = size_ - position.offset;
  return options_.drop_last && left < options_.batch ? 0 : std::min(left, options_.batch);
}

int64_t Batcher::batches_left(DataPosition position) const {
  const int64_t left = size_ - position.offset;
  return left / options_.batch + (!options_.drop_last && left % options_.batch != 0 ? 1 : 0);
}

// What a thread may take on: the rest of the batch begun last, or the next batch when its slot is free.
bool Batcher::has_task() const {
  if (broken_ || abandon_) return false;
  if (opened_ > 0) {
    const Slot& last = slots_[static_cast<size_t>(opened_ - 1) % slots_.size()];
    if (last.given < last.rows) return true;
  }
  return opened_ - released_ < static_cast<int64_t>(slots_.size());
}

void Batcher::open_batch() {
  Slot& next = slot(opened_);
  next.epoch = to_open_.epoch;
  next.rows = rows_at(to_open_);
  next.given = 0;
  next.done = 0;
  next.failure = nullptr;
  if (options_.shuffle && order_epoch_ != to_open_.epoch) {
    order_ = Order(options_.seed, to_open_.epoch, size_);
    order_epoch_ = to_open_.epoch;
  }
  for (int64_t i = 0; i < next.rows; ++i) {
    const int64_t place = to_open_.offset + i;
    indices_[static_cast<size_t>(i)] = options_.shuffle ? order_[place] : place;
  }
  next.batch.assign(std::span(indices_).first(static_cast<size_t>(next.rows)));
  ++opened_;
  to_open_.offset += next.rows;
  if (rows_at(to_open_) == 0) to_open_ = {to_open_.epoch + 1, 0};
}

Batcher::Task Batcher::take_task() {
  if (opened_ == 0 || slot(opened_ - 1).given == slot(opened_ - 1).rows) open_batch();
  Slot& open = slot(opened_ - 1);
  Task task;
  task.slot = &open;
  task.first = task.row = open.given;
  task.last = std::min(open.given + task_rows_, open.rows);
  open.given = task.last;
  ++reading_;
  return task;
}

void Batcher::read(Task& task) {
  try {
    fill_rows(dataset_, options_.seed, task.slot->epoch, task.slot->batch, task.row, task.last, abandon_);
  } catch (...) {
    task.failure = std::current_exception();
  }
}

// The first row at fault decides, whichever thread came upon its own first: all rows before it are given out already.
void Batcher::finish_task(const Task& task) {
  --reading_;
  Slot& own = *task.slot;
  own.done += task.last - task.first;
  if (task.failure && (!own.failure || task.row < own.failed_row)) {
    own.failure = task.failure;
    own.failed_row = task.row;
  }
  if (task.failure) broken_ = true;
  while (!abandon_ && !failed_ && filled_ < opened_) {
    const Slot& oldest = slot(filled_);
    if (oldest.done < oldest.given || (oldest.given < oldest.rows && !oldest.failure)) break;
    failed_ = oldest.failure != nullptr;
    ++filled_;
  }
}

void Batcher::serve() {
  std::unique_lock lock(threads_->mutex);
  for (;;) {
    threads_->work.wait(lock, [this] { return stopping_ || has_task(); });
    if (stopping_) return;
    Task task = take_task();
    // Threads wake each other as long as there is something to take: no more of them than can be used.
    const bool more = has_task();
    lock.unlock();
    if (more) threads_->work.notify_one();
    read(task);
    lock.lock();
    const int64_t before = filled_;
    finish_task(task);
    task.failure = nullptr;
    if (filled_ != before || reading_ == 0) threads_->progress.notify_one();
  }
}

const Batch* Batcher::ready(int64_t sequence) {
  check_process();
  std::unique_lock lock(threads_->mutex);
  if (filled_ <= sequence && !failed_) {
    const Stopwatch watch(wait_seconds_);
    if (reads_ahead()) {
      threads_->progress.wait(lock, [&] { return filled_ > sequence || failed_; });
    } else {
      while (filled_ <= sequence && !failed_) {
        Task task = take_task();
        read(task);
        finish_task(task);
      }
    }
  }
  const Slot& wanted = slot(std::min(sequence, filled_ - 1));
  if (wanted.failure) std::rethrow_exception(wanted.failure);
  return &wanted.batch;  // stays as it is until it is released
}

const Batch* Batcher::next() {
  check_process();
  {
    const std::lock_guard lock(threads_->mutex);
    released_ = next_;
  }
  threads_->work.notify_one();
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
    std::unique_lock lock(threads_->mutex);
    abandon_ = true;
    threads_->progress.wait(lock, [this] { return reading_ == 0; });
    abandon_ = false;
    position_ = position;
    to_open_ = rows_at(position) == 0 ? DataPosition{position.epoch + 1, 0} : position;
    next_ = 0;
    opened_ = 0;
    filled_ = 0;
    released_ = 0;
    broken_ = false;
    failed_ = false;
  }
  threads_->work.notify_one();
}

void Batcher::check_process() const {
  if (reads_ahead() && getpid() != process_) {
    throw Error(ErrorCode::state, "prefetch",
                "used after fork in the child process, which has no copy of the reading "
                "threads; create the object after fork");
  }
}

}  // namespace brisk::data
