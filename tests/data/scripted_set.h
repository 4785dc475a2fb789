// A data set whose samples tell their index and random stream, and which can be slow, fail or wait on order.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "brisk/loader.h"

namespace brisk::test {

class ScriptedSet : public Dataset {
 public:
  explicit ScriptedSet(int64_t count) : count_(count) {}
  int64_t size() const override { return count_; }
  std::vector<Field> fields() const override { return {{"index", {}, DType::i64}, {"crop", {2}, DType::i64}}; }
  std::string name() const override { return "Scans"; }
  void read(int64_t index, Sample& out, Random& random) const override {
    ++reads;
    if (before) before(index);
    out["index"].data<int64_t>()[0] = index;
    int64_t* crop = out["crop"].data<int64_t>();
    crop[0] = random.integer(1 << 20);
    crop[1] = random.integer(1 << 20);
    ++finished;
  }
  std::function<void(int64_t)> before;  // called by each read
  mutable std::atomic<int64_t> reads{0};
  mutable std::atomic<int64_t> finished{0};

 private:
  const int64_t count_;
};

/// FNV-1a over the bytes of a batch.
inline uint64_t hash_of(const Batch& batch, uint64_t hash = 14695981039346656037ull) {
  for (const Field& field : batch.fields()) {
    for (const std::byte byte : batch[field.name].bytes()) {
      hash = (hash ^ static_cast<uint64_t>(byte)) * 1099511628211ull;
    }
  }
  return hash;
}

/// Of each batch of the epochs 0 and 1.
inline std::vector<uint64_t> two_epochs(const Dataset& set, const LoaderOptions& options) {
  Loader loader(set, options);
  std::vector<uint64_t> hashes;
  for (const int64_t epoch : {0, 1}) {
    for (const Batch& batch : loader.epoch(epoch)) hashes.push_back(hash_of(batch));
  }
  return hashes;
}

/// The indices of a batch, checked against what was read.
inline std::vector<int64_t> indices_of(const Batch& batch) {
  const std::vector<int64_t> indices(batch.indices().begin(), batch.indices().end());
  const int64_t* read = batch["index"].data<int64_t>();
  if (std::vector<int64_t>(read, read + batch.size()) != indices) throw std::logic_error("other samples than it says");
  return indices;
}

}  // namespace brisk::test
