// Batches in order, from the caller's thread and from a reading thread alike; failures in their place; no hanging.
#include "data/batcher.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <numeric>
#include <set>

#include "data/fill.h"

namespace brisk::data {
namespace {

using Indices = std::vector<int64_t>;

// Sample i is the number i and what its random stream says; may fail, may be slow.
class Numbers : public Dataset {
 public:
  explicit Numbers(int64_t count) : count_(count) {}
  int64_t size() const override { return count_; }
  std::vector<Field> fields() const override { return {{"x", {}, DType::i64}, {"r", {}}}; }
  void read(int64_t index, Sample& out, Random& random) const override {
    ++reads;
    if (index == fails_at) throw std::runtime_error("cannot decode");
    if (slow_ms > 0) std::this_thread::sleep_for(std::chrono::milliseconds(slow_ms));
    out["x"].data<int64_t>()[0] = index;
    out["r"].data<float>()[0] = random.uniform();
  }
  mutable std::atomic<int> reads{0};
  std::atomic<int64_t> fails_at{-1};
  std::atomic<int> slow_ms{0};

 private:
  const int64_t count_;
};

Indices read_batch(const Batch& batch) {
  const Indices indices(batch.indices().begin(), batch.indices().end());
  const int64_t* x = batch["x"].data<int64_t>();
  EXPECT_EQ(Indices(x, x + batch.size()), indices);
  return indices;
}

// The batches of one epoch, each as its indices.
std::vector<Indices> epoch_of(Batcher& batcher) {
  std::vector<Indices> out;
  while (const Batch* batch = batcher.next()) out.push_back(read_batch(*batch));
  return out;
}

Indices joined(const std::vector<Indices>& batches) {
  Indices out;
  for (const Indices& batch : batches) out.insert(out.end(), batch.begin(), batch.end());
  return out;
}

class BatcherIn : public testing::TestWithParam<Reading> {
 protected:
  BatcherOptions options(int64_t batch) const {
    return {.batch = batch, .reading = GetParam(), .seed = 3, .shuffle = true};
  }
};
INSTANTIATE_TEST_SUITE_P(Reading, BatcherIn, testing::Values(Reading::ahead, Reading::caller));

TEST_P(BatcherIn, DeliversEachSampleOncePerEpochInTheOrder) {
  const Numbers numbers(23);
  Batcher batcher(numbers, options(5));
  EXPECT_EQ(batcher.reads_ahead(), GetParam() == Reading::ahead);
  for (int64_t epoch = 0; epoch < 4; ++epoch) {
    EXPECT_EQ(batcher.batches_left(), 5);
    const std::vector<Indices> batches = epoch_of(batcher);
    ASSERT_EQ(batches.size(), 5u);
    EXPECT_EQ(batches.back().size(), 3u);
    const Order order(3, epoch, 23);
    const Indices all = joined(batches);
    for (int64_t i = 0; i < 23; ++i) EXPECT_EQ(all[static_cast<size_t>(i)], order[i]);
    EXPECT_EQ(batcher.position(), (DataPosition{epoch + 1, 0}));
  }
}

TEST_P(BatcherIn, SamplesDependOnSeedEpochAndIndexOnly) {
  const Numbers numbers(10);
  const auto streams = [&](int64_t batch, int64_t epoch) {
    Batcher batcher(numbers, options(batch));
    batcher.seek({epoch, 0});
    std::vector<float> out(10);
    while (const Batch* b = batcher.next()) {
      for (int64_t i = 0; i < b->size(); ++i) {
        out[static_cast<size_t>(b->indices()[static_cast<size_t>(i)])] = (*b)["r"].data<float>()[i];
      }
    }
    return out;
  };
  EXPECT_EQ(streams(3, 1), streams(10, 1));
  EXPECT_NE(streams(3, 0), streams(3, 1));
}

TEST_P(BatcherIn, InOrderWithoutShuffling) {
  const Numbers numbers(7);
  BatcherOptions plain = options(3);
  plain.shuffle = false;
  Batcher batcher(numbers, plain);
  EXPECT_EQ(epoch_of(batcher), (std::vector<Indices>{{0, 1, 2}, {3, 4, 5}, {6}}));
  EXPECT_EQ(epoch_of(batcher), (std::vector<Indices>{{0, 1, 2}, {3, 4, 5}, {6}}));
}

TEST_P(BatcherIn, DropsTheShortBatchWhenTold) {
  const Numbers numbers(23);
  BatcherOptions drop = options(5);
  drop.drop_last = true;
  Batcher batcher(numbers, drop);
  for (int epoch = 0; epoch < 3; ++epoch) {
    EXPECT_EQ(batcher.batches_left(), 4);
    EXPECT_EQ(joined(epoch_of(batcher)).size(), 20u);
  }
}

TEST_P(BatcherIn, ABatchLargerThanTheSetIsOneShortBatch) {
  const Numbers numbers(4);
  Batcher batcher(numbers, options(64));
  EXPECT_EQ(epoch_of(batcher).size(), 1u);
  EXPECT_EQ(joined(epoch_of(batcher)).size(), 4u);
  BatcherOptions drop = options(64);
  drop.drop_last = true;
  EXPECT_THROW(Batcher(numbers, drop), Error);
}

TEST_P(BatcherIn, SeeksToAnyPosition) {
  const Numbers numbers(23);
  Batcher whole(numbers, options(5));
  const Indices first = joined(epoch_of(whole));
  const Indices second = joined(epoch_of(whole));
  Batcher batcher(numbers, options(5));
  for (int64_t offset = 0; offset <= 23; ++offset) {
    batcher.seek({0, offset});
    EXPECT_EQ(batcher.position(), (DataPosition{0, offset}));
    EXPECT_EQ(joined(epoch_of(batcher)), Indices(first.begin() + offset, first.end()));
    EXPECT_EQ(joined(epoch_of(batcher)), second);
  }
  // Read sums up at the position reached, also when batches have been read ahead.
  batcher.seek({0, 0});
  batcher.next();
  batcher.next();
  EXPECT_EQ(batcher.position(), (DataPosition{0, 10}));
  EXPECT_THROW(batcher.seek({0, 24}), Error);
  EXPECT_THROW(batcher.seek({-1, 0}), Error);
  EXPECT_EQ(read_batch(*batcher.next()), Indices(first.begin() + 10, first.begin() + 15));
}

TEST_P(BatcherIn, PeeksAWindowAheadAndKeepsItAlive) {
  const Numbers numbers(20);
  BatcherOptions ahead = options(4);
  ahead.lookahead = 3;
  ahead.prefetch = 1;
  Batcher batcher(numbers, ahead);
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int64_t i = 0; i < 5; ++i) {
      std::vector<const Batch*> window;
      std::vector<Indices> contents;
      for (int64_t k = 0; k < 3; ++k) {
        const Batch* batch = batcher.peek(k);
        EXPECT_EQ(batch != nullptr, i + k < 5);
        if (batch) window.push_back(batch);
        if (batch) contents.push_back(read_batch(*batch));
      }
      const Batch* current = batcher.next();
      ASSERT_EQ(current, window[0]);
      for (size_t k = 0; k < window.size(); ++k) EXPECT_EQ(read_batch(*window[k]), contents[k]);
      // The current batch stays whole while others are looked at.
      for (int64_t k = 0; k < 3; ++k) batcher.peek(k);
      EXPECT_EQ(read_batch(*current), contents[0]);
    }
    EXPECT_EQ(batcher.next(), nullptr);
  }
  EXPECT_THROW(batcher.peek(3), Error);
  EXPECT_THROW(batcher.peek(-1), Error);
}

TEST_P(BatcherIn, ReusesItsMemory) {
  const Numbers numbers(50);
  Batcher batcher(numbers, options(5));
  std::set<const void*> places;
  for (int epoch = 0; epoch < 5; ++epoch) {
    while (const Batch* batch = batcher.next()) places.insert((*batch)["x"].raw());
  }
  EXPECT_LE(places.size(), 3u);  // prefetch and the current one
}

TEST_P(BatcherIn, FailuresArriveInTheirPlaceAndStay) {
  Numbers numbers(20);
  numbers.fails_at = 9;
  BatcherOptions plain = options(4);
  plain.shuffle = false;
  plain.lookahead = 2;
  Batcher batcher(numbers, plain);
  EXPECT_EQ(read_batch(*batcher.next()), (Indices{0, 1, 2, 3}));
  EXPECT_EQ(read_batch(*batcher.next()), (Indices{4, 5, 6, 7}));
  for (int again = 0; again < 2; ++again) {
    try {
      batcher.next();
      FAIL() << "no failure";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "Error [data] sample 9 of Numbers: cannot decode");
    }
    EXPECT_THROW(batcher.peek(0), Error);
    EXPECT_THROW(batcher.peek(1), Error);
    EXPECT_EQ(batcher.position(), (DataPosition{0, 8}));
  }
  numbers.fails_at = -1;
  batcher.seek(batcher.position());
  EXPECT_EQ(read_batch(*batcher.next()), (Indices{8, 9, 10, 11}));
}

TEST_P(BatcherIn, RefusesWhatCannotBe) {
  const Numbers numbers(20);
  const Numbers none(0);
  EXPECT_THROW(Batcher(none, options(4)), Error);
  EXPECT_THROW(Batcher(numbers, options(0)), Error);
  BatcherOptions bad = options(4);
  bad.prefetch = -1;
  EXPECT_THROW(Batcher(numbers, bad), Error);
  bad = options(4);
  bad.lookahead = -1;
  EXPECT_THROW(Batcher(numbers, bad), Error);
}

TEST_P(BatcherIn, WorksWithoutPrefetch) {
  const Numbers numbers(11);
  BatcherOptions none = options(2);
  none.prefetch = 0;
  Batcher batcher(numbers, none);
  for (int epoch = 0; epoch < 3; ++epoch) EXPECT_EQ(joined(epoch_of(batcher)).size(), 11u);
}

TEST(Batcher, ReadsAheadOnlyWhereThatGains) {
  InMemoryDataset in_memory;
  in_memory.add("x", Tensor({8}));
  EXPECT_FALSE(Batcher(in_memory, {}).reads_ahead());
  EXPECT_TRUE(Batcher(Numbers(8), {}).reads_ahead());
}

TEST(Batcher, ReadsAheadNoFurtherThanItsDepth) {
  const Numbers numbers(100);
  Batcher batcher(numbers, {.batch = 4, .prefetch = 2});
  batcher.next();
  for (int i = 0; i < 10000 && numbers.reads < 12; ++i) usleep(1000);
  usleep(5000);
  EXPECT_EQ(numbers.reads, 12);  // the current batch and two more
}

// Before the first batch, with full and empty queues, while a sample is read, while an exception flies.
TEST(Batcher, DiesAtAnyMoment) {
  Numbers numbers(1000);
  for (int round = 0; round < 200; ++round) {
    { const Batcher unused(numbers, {.batch = 3}); }
    {
      Batcher batcher(numbers, {.batch = 3, .shuffle = true});
      for (int i = 0; i < round % 5; ++i) batcher.next();
      if (round % 3 == 0) usleep(100);
    }
    EXPECT_THROW(
        {
          Batcher batcher(numbers, {.batch = 3});
          batcher.next();
          throw std::runtime_error("elsewhere");
        },
        std::runtime_error);
  }
}

// A batch of 1000 samples of 5 ms each is left after the sample being read: 5 s were the whole of it.
TEST(Batcher, DyingAndSeekingWaitForOneSampleOnly) {
  Numbers numbers(1000);
  numbers.slow_ms = 5;
  {
    Batcher batcher(numbers, {.batch = 1000});
    while (numbers.reads == 0) usleep(100);
    batcher.seek({1, 0});
    while (numbers.reads < 3) usleep(100);
  }
  EXPECT_LT(numbers.reads, 500);
}

TEST(Batcher, IsRefusedInAForkedChild) {
  const Numbers numbers(100);
  Batcher batcher(numbers, {.batch = 4});
  batcher.next();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int code = 1;
    try {
      for (int i = 0; i < 10; ++i) batcher.next();
    } catch (const Error& error) {
      code = std::string(error.what()).find("after fork") == std::string::npos ? 2 : 0;
    }
    _exit(code);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace brisk::data
