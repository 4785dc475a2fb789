// The loader: a batcher behind the public interface.
#include "brisk/loader.h"

#include "core/log.h"
#include "core/text.h"
#include "data/batcher.h"

namespace brisk {
namespace {

data::BatcherOptions batcher_options(const LoaderOptions& options) {
  if (options.workers < 0) {
    throw Error(ErrorCode::option, cat("workers = ", options.workers),
                "must be 0 (the caller's thread reads) or a number of threads");
  }
  data::BatcherOptions out;
  out.batch = options.batch;
  out.drop_last = options.drop_last;
  out.prefetch = options.prefetch;
  out.reading = options.workers == 0 ? data::Reading::caller : data::Reading::ahead;
  out.seed = options.seed;
  out.shuffle = options.shuffle;
  if (options.workers > 0) out.workers = options.workers;
  return out;
}

}  // namespace

Loader::Loader(const Dataset& dataset, LoaderOptions options)
    : batcher_(std::make_unique<data::Batcher>(dataset, batcher_options(options))) {
  if (options.pinned) log_info("loader: pinned has no effect, this build has no GPU backend");
}

Loader::~Loader() = default;
Loader::Loader(Loader&&) noexcept = default;
Loader& Loader::operator=(Loader&&) noexcept = default;

Loader::Epoch Loader::epoch(int64_t epoch) {
  const data::DataPosition now = batcher_->position();
  const bool stays = !failed_ && now.epoch == epoch && (sought_ || now.offset == 0);
  // What has been read ahead of a position is kept by not leaving it.
  if (!stays) seek({epoch, 0});
  sought_ = false;
  return Epoch(this);
}

const Batch* Loader::next() {
  sought_ = false;
  try {
    return batcher_->next();
  } catch (...) {
    failed_ = true;
    throw;
  }
}

LoaderPosition Loader::position() const { return {batcher_->position().epoch, batcher_->position().offset}; }

void Loader::seek(LoaderPosition position) {
  batcher_->seek({position.epoch, position.sample});
  sought_ = true;
  failed_ = false;
}

int64_t Loader::batches_left() const { return batcher_->batches_left(); }
double Loader::wait_seconds() const { return batcher_->wait_seconds(); }

}  // namespace brisk
