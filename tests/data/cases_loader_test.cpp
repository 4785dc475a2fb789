// Cases of readers' threads from other libraries' histories, each named by its id in the case table.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <utility>

#include "brisk/loader.h"
#include "scripted_set.h"

namespace {
// Which creation of a thread fails, counted from 1 down; 0: none does.
std::atomic<int> creation_that_fails{0};
std::atomic<int> created{0};
}  // namespace

// Stands before the system's for this whole program, and fails when a case asks for it.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const Create real = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  if (creation_that_fails > 0 && --creation_that_fails == 0) return EAGAIN;
  ++created;
  return real(thread, attributes, start, argument);
}

namespace brisk {
namespace {

using test::hash_of;
using test::indices_of;
using test::ScriptedSet;

// 4 workers, random crop offset recorded, 2 epochs, 2 ranks. Streams differ across worker, rank, epoch; depend only on
// (seed, epoch, sample index) so results do not depend on worker count. A rank takes every second batch of the order.
TEST(Cases, DA10_random_streams_of_4_workers_2_epochs_2_ranks) {
  constexpr int64_t kSize = 64;
  constexpr int64_t kBatch = 8;
  const ScriptedSet set(kSize);
  using Crop = std::pair<int64_t, int64_t>;
  const auto crops = [&](int64_t workers, int64_t epoch, int64_t rank) {
    Loader loader(set, {.batch = kBatch, .seed = 5, .shuffle = true, .workers = workers});
    std::vector<std::pair<int64_t, Crop>> out;
    for (int64_t first = rank * kBatch; first < kSize; first += 2 * kBatch) {
      loader.seek({epoch, first});
      const Batch* batch = loader.next();
      const int64_t* crop = (*batch)["crop"].data<int64_t>();
      const std::vector<int64_t> indices = indices_of(*batch);
      for (size_t i = 0; i < indices.size(); ++i) out.push_back({indices[i], {crop[2 * i], crop[2 * i + 1]}});
    }
    return out;
  };
  std::set<Crop> different;
  std::set<int64_t> samples;
  for (const int64_t epoch : {0, 1}) {
    for (const int64_t rank : {0, 1}) {
      const auto recorded = crops(4, epoch, rank);
      ASSERT_EQ(recorded.size(), 32u);
      for (const int64_t workers : {0, 1, 2, 8}) EXPECT_EQ(crops(workers, epoch, rank), recorded);
      for (const auto& [index, crop] : recorded) {
        different.insert(crop);
        samples.insert(index + epoch * kSize);
        Random random(5, epoch, index);
        const int64_t x = random.integer(1 << 20);
        EXPECT_EQ(crop, Crop(x, random.integer(1 << 20)));
      }
    }
  }
  EXPECT_EQ(samples.size(), 128u);    // each sample once per epoch, over both ranks
  EXPECT_EQ(different.size(), 128u);  // no stream twice: not across workers, ranks or epochs
}

// Destroy the loader: before first batch; with full queue; with empty queue; while a worker sleeps 10 s in decode;
// during stack unwinding. 1,000 times. Returns in < 1 s (+ the current decode); no leak, no std::terminate. The decode
// of 10 s is one of 1 ms here; that no other than the current one is waited for is counted, not timed.
class CasesDA15 : public testing::Test {
 protected:
  static constexpr int kTimes = 1000;
  static constexpr int64_t kWorkers = 4;
  LoaderOptions options(int64_t batch) const { return {.batch = batch, .shuffle = true, .workers = kWorkers}; }
  ScriptedSet set_{20'000};
};

TEST_F(CasesDA15, DA15_destroyed_before_the_first_batch) {
  for (int i = 0; i < kTimes; ++i) {
    Loader loader(set_, options(3));
    if (i % 2 == 0) sched_yield();
  }
}

TEST_F(CasesDA15, DA15_destroyed_with_a_full_queue) {
  for (int i = 0; i < kTimes; ++i) {
    set_.finished = 0;
    Loader loader(set_, options(3));
    loader.next();
    while (set_.finished < 9) sched_yield();  // the current batch and prefetch = 2 more
  }
}

TEST_F(CasesDA15, DA15_destroyed_with_an_empty_queue) {
  std::mutex gate;
  set_.before = [&](int64_t) { const std::lock_guard waits(gate); };
  for (int i = 0; i < kTimes; ++i) {
    set_.reads = 0;
    std::unique_lock closed(gate);
    Loader loader(set_, options(3));
    while (set_.reads == 0) sched_yield();  // all that has begun stands at the gate: nothing is ready
    closed.unlock();
  }
}

TEST_F(CasesDA15, DA15_destroyed_while_a_worker_sleeps_in_decode) {
  set_.before = [](int64_t) { std::this_thread::sleep_for(std::chrono::milliseconds(1)); };
  for (int i = 0; i < kTimes; ++i) {
    set_.reads = set_.finished = 0;
    {
      Loader loader(set_, options(5000));
      while (set_.reads == 0) sched_yield();
    }
    EXPECT_EQ(set_.reads, set_.finished);
    EXPECT_LT(set_.reads, 7500);  // the queue is 15,000 samples, 4 s of decoding by 4 workers
  }
}

TEST_F(CasesDA15, DA15_destroyed_during_stack_unwinding) {
  for (int i = 0; i < kTimes; ++i) {
    EXPECT_THROW(
        {
          Loader loader(set_, options(3));
          if (i % 2 == 0) loader.next();
          throw std::runtime_error("elsewhere");
        },
        std::runtime_error);
  }
}

// Make the 3rd of 4 thread creations throw (shim pthread_create EAGAIN). Exception reaches the caller, already started
// threads joined.
TEST(Cases, DA16_third_of_4_thread_creations_fails_with_EAGAIN) {
  const ScriptedSet set(100);
  for (int time = 0; time < 50; ++time) {
    created = 0;
    creation_that_fails = 3;
    try {
      Loader loader(set, {.batch = 4, .workers = 4});
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::state);
      EXPECT_EQ(error.field(), "workers");
      const std::string text = error.what();
      EXPECT_EQ(text.rfind("Error [state] workers = 4: the system started 2 reading threads and refused the next: ", 0),
                0u)
          << text;
    }
    EXPECT_EQ(creation_that_fails, 0);
    EXPECT_EQ(created, 2);
    // A thread that was left would go on reading.
    const int64_t reads = set.reads;
    EXPECT_EQ(set.finished, reads);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(set.reads, reads);
  }
  creation_that_fails = 0;
  Loader loader(set, {.batch = 4, .workers = 4});
  EXPECT_NE(loader.next(), nullptr);
}

// Transform throws on sample 37. next() throws with index/path and original message; loader can be destroyed or
// restarted; order of delivered batches before it unchanged.
TEST(Cases, DA17_transform_throws_on_sample_37) {
  ScriptedSet set(100);
  Loader whole(set, {.batch = 8, .seed = 2, .shuffle = true});
  std::vector<uint64_t> hashes;
  int64_t at_fault = -1;
  for (const Batch& batch : whole.epoch(0)) {
    const std::vector<int64_t> indices = indices_of(batch);
    if (std::count(indices.begin(), indices.end(), 37) == 1) at_fault = static_cast<int64_t>(hashes.size());
    hashes.push_back(hash_of(batch));
  }
  ASSERT_GE(at_fault, 0);
  std::atomic<bool> broken{true};
  set.before = [&](int64_t index) {
    if (broken && index == 37) throw std::runtime_error("cannot open images/37.png: truncated");
  };
  for (const int64_t workers : {0, 1, 4, 8}) {
    broken = true;
    Loader loader(set, {.batch = 8, .seed = 2, .shuffle = true, .workers = workers});
    for (int round = 0; round < 3; ++round) {
      std::vector<uint64_t> before;
      try {
        for (const Batch& batch : loader.epoch(0)) before.push_back(hash_of(batch));
        ADD_FAILURE() << "no error";
      } catch (const Error& error) {
        EXPECT_STREQ(error.what(), "Error [data] sample 37 of Scans: cannot open images/37.png: truncated");
      }
      EXPECT_EQ(before, std::vector<uint64_t>(hashes.begin(), hashes.begin() + at_fault));
    }
    broken = false;  // restarted it delivers everything
    std::vector<uint64_t> again;
    for (const Batch& batch : loader.epoch(0)) again.push_back(hash_of(batch));
    EXPECT_EQ(again, hashes);
    broken = true;  // and is destroyed while it fails
    loader.seek({0, 0});
  }
}

// Ends the program when nothing moves for a minute.
class Watchdog {
 public:
  Watchdog() : thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  std::atomic<int64_t> progress{0};

 private:
  void watch() {
    std::unique_lock lock(mutex_);
    while (!over_) {
      const int64_t before = progress;
      if (changed_.wait_for(lock, std::chrono::seconds(60), [this] { return over_; })) return;
      if (progress == before) {
        std::fprintf(stderr, "no batch came for 60 s: the loaders stand still\n");
        std::abort();
      }
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

// This thread and those that it starts run on one core while it lives.
class OneCore {
 public:
  OneCore() {
    sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (size_t core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &before_)) {
        CPU_SET(core, &one);
        break;
      }
    }
    EXPECT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  }
  ~OneCore() { sched_setaffinity(0, sizeof(before_), &before_); }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t before_;
};

// Train and validation loaders alive together, 8 workers each, queue depth 1, 1e5 batches, CPU limited to 1 core;
// stop-the-world 60 s watchdog. Finishes; no lost or duplicated index.
TEST(Cases, DA18_two_loaders_8_workers_each_depth_1_1e5_batches_1_core) {
  constexpr int64_t kBatches = 100'000;
  constexpr int64_t kTrain = 4000;
  constexpr int64_t kValidation = 1000;
  const ScriptedSet train(kTrain);
  const ScriptedSet validation(kValidation);
  Watchdog watchdog;
  const OneCore one_core;
  Loader training(train, {.batch = 2, .prefetch = 1, .seed = 1, .shuffle = true, .workers = 8});
  Loader validating(validation, {.batch = 2, .prefetch = 1, .workers = 8});
  int64_t batches = 0;
  const auto pass = [&](Loader& loader, int64_t epoch, int64_t size) {
    std::vector<int> seen(static_cast<size_t>(size), 0);
    for (const Batch& batch : loader.epoch(epoch)) {
      for (const int64_t index : batch.indices()) ++seen[static_cast<size_t>(index)];
      ASSERT_EQ(batch["index"].data<int64_t>()[0], batch.indices()[0]);
      watchdog.progress = ++batches;
    }
    ASSERT_EQ(std::count(seen.begin(), seen.end(), 1), size) << "epoch " << epoch;
  };
  for (int64_t epoch = 0; batches < kBatches; ++epoch) {
    pass(training, epoch, kTrain);
    pass(validating, epoch, kValidation);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(batches, kBatches);
}

// Run 10x with 1,2,8 workers with random sleeps. Identical batch hashes.
TEST(Cases, DA21_10_runs_with_1_2_8_workers_and_random_sleeps) {
  ScriptedSet set(60);
  const auto hashes = [&](int64_t workers) {
    std::vector<uint64_t> out;
    Loader loader(set, {.batch = 7, .seed = 9, .shuffle = true, .workers = workers});
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      for (const Batch& batch : loader.epoch(epoch)) out.push_back(hash_of(batch));
    }
    return out;
  };
  const std::vector<uint64_t> expected = hashes(0);
  ASSERT_EQ(expected.size(), 18u);
  set.before = [](int64_t) {
    thread_local std::minstd_rand sleeps{std::random_device{}()};
    std::this_thread::sleep_for(std::chrono::microseconds(sleeps() % 300));
  };
  for (const int64_t workers : {1, 2, 8}) {
    for (int run = 0; run < 10; ++run) EXPECT_EQ(hashes(workers), expected) << workers << " workers, run " << run;
  }
}

}  // namespace
}  // namespace brisk
