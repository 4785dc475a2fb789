// The public loader: one order and the same bytes for any number of workers, O(1) positions, options that cannot be.
#include "brisk/loader.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>
#include <type_traits>

#include "scripted_set.h"

namespace brisk {
namespace {

using test::hash_of;
using test::indices_of;
using test::ScriptedSet;
using Indices = std::vector<int64_t>;

Indices rest_of(Loader& loader, int64_t epoch) {
  Indices out;
  for (const Batch& batch : loader.epoch(epoch)) {
    const Indices indices = indices_of(batch);
    out.insert(out.end(), indices.begin(), indices.end());
  }
  return out;
}

class LoaderWith : public testing::TestWithParam<int64_t> {
 protected:
  LoaderOptions options(int64_t batch) const {
    return {.batch = batch, .seed = 7, .shuffle = true, .workers = GetParam()};
  }
};
INSTANTIATE_TEST_SUITE_P(Workers, LoaderWith, testing::Values(0, 1, 2, 8));

TEST_P(LoaderWith, DeliversTheSameBytesInTheSameOrder) {
  const ScriptedSet set(101);
  Loader plain(set, {.batch = 16, .seed = 7, .shuffle = true});
  Loader loader(set, options(16));
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::vector<uint64_t> expected;
    for (const Batch& batch : plain.epoch(epoch)) expected.push_back(hash_of(batch));
    std::vector<uint64_t> hashes;
    Indices all;
    for (const Batch& batch : loader.epoch(epoch)) {
      hashes.push_back(hash_of(batch));
      const Indices indices = indices_of(batch);
      all.insert(all.end(), indices.begin(), indices.end());
    }
    EXPECT_EQ(hashes, expected);
    EXPECT_EQ(hashes.size(), 7u);
    std::sort(all.begin(), all.end());
    Indices each(101);
    std::iota(each.begin(), each.end(), 0);
    EXPECT_EQ(all, each);
  }
}

TEST_P(LoaderWith, GoesOnFromAPosition) {
  const ScriptedSet set(50);
  Loader loader(set, options(8));
  const Indices first = rest_of(loader, 0);
  const Indices second = rest_of(loader, 1);
  LoaderPosition where;
  int64_t turns = 0;
  for (const Batch& batch : loader.epoch(0)) {
    EXPECT_EQ(batch.size(), 8);
    where = loader.position();
    if (++turns == 3) break;
  }
  EXPECT_EQ(where, (LoaderPosition{0, 24}));
  Loader other(set, options(8));
  other.seek(where);
  EXPECT_EQ(other.batches_left(), 4);
  EXPECT_EQ(rest_of(other, 0), Indices(first.begin() + 24, first.end()));
  EXPECT_EQ(other.position(), (LoaderPosition{1, 0}));
  EXPECT_EQ(rest_of(other, 1), second);
  // Left half way and begun again, without seek(): from the first sample.
  EXPECT_EQ(rest_of(loader, 0), first);
  EXPECT_EQ(rest_of(loader, 0), first);
  EXPECT_THROW(loader.seek({0, 51}), Error);
  EXPECT_THROW(loader.epoch(-1), Error);
}

// A position far into a large epoch costs no reading of what lies before.
TEST_P(LoaderWith, SeekReadsNothingBefore) {
  const ScriptedSet set(int64_t{1} << 40);
  Loader loader(set, options(4));
  loader.seek({3, (int64_t{1} << 40) - 8});
  EXPECT_EQ(rest_of(loader, 3).size(), 8u);
  EXPECT_LT(set.reads, 100);
}

TEST_P(LoaderWith, KeepsWhatItHasReadBetweenEpochs) {
  const ScriptedSet set(12);
  Loader loader(set, options(4));
  for (int64_t epoch = 0; epoch < 5; ++epoch) EXPECT_EQ(rest_of(loader, epoch).size(), 12u);
  // The current batch is never more than prefetch = 2 batches behind what is read: nothing is read twice.
  EXPECT_LE(set.reads, 5 * 12 + 3 * 4);
}

TEST_P(LoaderWith, FailsInPlaceAndRestarts) {
  ScriptedSet set(6000);
  std::atomic<bool> broken{true};
  set.before = [&](int64_t index) {
    if (broken && index == 5012) throw std::runtime_error("cannot decode 5012.png");
  };
  LoaderOptions plain = options(100);
  plain.shuffle = false;
  Loader loader(set, plain);
  for (int round = 0; round < 2; ++round) {
    int64_t batches = 0;
    try {
      for (const Batch& batch : loader.epoch(0)) {
        EXPECT_EQ(indices_of(batch).front(), 100 * batches);
        ++batches;
      }
      ADD_FAILURE() << "no failure";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "Error [data] sample 5012 of Scans: cannot decode 5012.png");
      EXPECT_EQ(error.code(), ErrorCode::data);
    }
    EXPECT_EQ(batches, 50);
    EXPECT_EQ(loader.position(), (LoaderPosition{0, 5000}));
  }
  broken = false;
  loader.seek(loader.position());
  EXPECT_EQ(rest_of(loader, 0).size(), 1000u);
}

// Of several samples at fault the first in the order is named, whether its thread comes upon it first, last
// or in between.
TEST_P(LoaderWith, NamesTheFirstSampleAtFault) {
  ScriptedSet set(64);
  set.before = [](int64_t index) {
    if (index == 40) std::this_thread::sleep_for(std::chrono::milliseconds(3));
    if (index == 41) std::this_thread::sleep_for(std::chrono::milliseconds(9));
    if (index >= 40) throw std::runtime_error("bad");
  };
  for (int round = 0; round < 10; ++round) {
    LoaderOptions plain = options(32);
    plain.shuffle = false;
    Loader loader(set, plain);
    EXPECT_EQ(indices_of(*loader.next()).front(), 0);
    try {
      loader.next();
      ADD_FAILURE() << "no failure";
    } catch (const Error& error) {
      EXPECT_STREQ(error.what(), "Error [data] sample 40 of Scans: bad");
    }
  }
}

TEST_P(LoaderWith, ReadsSetsInMemory) {
  InMemoryDataset set;
  std::vector<int64_t> values(37);
  std::iota(values.begin(), values.end(), 0);
  set.add("index", Tensor(std::move(values), {37}));
  Loader loader(set, options(5));
  Indices all = rest_of(loader, 0);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all.size(), 37u);
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
}

TEST_P(LoaderWith, DropsTheShortBatch) {
  const ScriptedSet set(10);
  LoaderOptions drop = options(4);
  drop.drop_last = true;
  Loader loader(set, drop);
  for (int64_t epoch = 0; epoch < 2; ++epoch) EXPECT_EQ(rest_of(loader, epoch).size(), 8u);
}

TEST_P(LoaderWith, Moves) {
  const ScriptedSet set(20);
  Loader first(set, options(4));
  first.next();
  Loader second = std::move(first);
  EXPECT_EQ(second.position(), (LoaderPosition{0, 4}));
  first = Loader(set, options(5));
  second = std::move(first);
  EXPECT_EQ(rest_of(second, 0).size(), 20u);
}

// Several threads are in read() at once: each waits until another has come.
TEST(Loader, WorkersShareOneBatch) {
  ScriptedSet set(8);
  std::atomic<int> inside{0}, alone{0};
  set.before = [&](int64_t) {
    ++inside;
    for (int i = 0; i < 60000 && inside < 4; ++i) std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (inside < 4) ++alone;
  };
  Loader loader(set, {.batch = 8, .prefetch = 0, .workers = 4});
  EXPECT_EQ(rest_of(loader, 0).size(), 8u);
  EXPECT_EQ(alone, 0) << "samples were read one after the other";
}

TEST(Loader, ReadsNoFurtherThanItsPrefetch) {
  const ScriptedSet set(1000);
  Loader loader(set, {.batch = 4, .prefetch = 3, .workers = 3});
  loader.next();
  for (int i = 0; i < 60000 && set.finished < 16; ++i) std::this_thread::sleep_for(std::chrono::microseconds(100));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(set.finished, 16);  // the current batch and three more
}

TEST(Loader, RefusesWhatCannotBe) {
  const ScriptedSet set(10);
  const ScriptedSet none(0);
  const auto message = [&](const Dataset& data, const LoaderOptions& options) -> std::string {
    try {
      Loader loader(data, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(message(set, {.batch = 0}), "Error [option] batch = 0: must be at least 1");
  EXPECT_EQ(message(set, {.batch = 1}), "no error");
  EXPECT_EQ(message(set, {.prefetch = -1}), "Error [option] prefetch = -1: must be 0 to 1048576 batches");
  EXPECT_NE(message(set, {.prefetch = (1 << 20) + 1}), "no error");
  EXPECT_EQ(message(set, {.prefetch = 0}), "no error");
  EXPECT_EQ(message(set, {.workers = -1}),
            "Error [option] workers = -1: must be 0 (the caller's thread reads) or a number of threads");
  EXPECT_EQ(message(set, {.workers = 1025}), "Error [option] workers = 1025: must be 1 to 1024 threads");
  EXPECT_EQ(message(none, {}), "Error [data] Scans: has 0 samples; at least 1 is needed");
  EXPECT_NE(message(set, {.batch = 11, .drop_last = true}), "no error");
}

TEST(Loader, RefusesATemporaryDataSet) {
  static_assert(std::is_constructible_v<Loader, const ScriptedSet&, LoaderOptions>);
  static_assert(std::is_constructible_v<Loader, ScriptedSet&>);
  static_assert(!std::is_constructible_v<Loader, ScriptedSet>);
  static_assert(!std::is_constructible_v<Loader, ScriptedSet, LoaderOptions>);
  static_assert(!std::is_constructible_v<Loader, InMemoryDataset, LoaderOptions>);
  static_assert(!std::is_copy_constructible_v<Loader>);
}

// The child neither hangs nor crashes, also when it destroys the loader.
TEST(Loader, IsRefusedInAForkedChild) {
  const ScriptedSet set(100);
  auto loader = std::make_unique<Loader>(set, LoaderOptions{.batch = 4, .workers = 4});
  loader->next();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int code = 1;
    try {
      loader->next();
    } catch (const Error& error) {
      code = std::string(error.what()).find("after fork") == std::string::npos ? 2 : 0;
    }
    loader.reset();
    _exit(code);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace brisk
