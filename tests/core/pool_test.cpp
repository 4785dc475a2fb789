// The pool: every worker runs, meets at barriers, reports failures; more threads than processors work too.
#include "core/pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <stdexcept>

#include "brisk/error.h"
#include "core/denormals.h"
#include "core/machine.h"

namespace brisk {
namespace {

class PoolOf : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Threads, PoolOf, testing::Values(1, 2, 3, 8));

TEST_P(PoolOf, RunsEveryWorkerOnceEachTime) {
  Pool pool(GetParam());
  std::vector<int> calls(static_cast<size_t>(pool.threads()));
  for (int round = 0; round < 200; ++round) pool.run([&](int worker) { ++calls[static_cast<size_t>(worker)]; });
  EXPECT_EQ(calls, std::vector<int>(static_cast<size_t>(GetParam()), 200));
  EXPECT_EQ(pool.entries(), 200);
}

// Each worker reads what its neighbour wrote before the barrier: a barrier that lets one through early is seen.
TEST_P(PoolOf, BarriersOrderWritesTenThousandTimes) {
  constexpr int64_t kRounds = 10'000;
  Pool pool(GetParam());
  const size_t threads = static_cast<size_t>(pool.threads());
  std::vector<int64_t> slots(threads);
  std::vector<int64_t> wrong(threads);
  pool.run([&](int worker) {
    const size_t own = static_cast<size_t>(worker);
    for (int64_t round = 1; round <= kRounds / 2; ++round) {
      slots[own] = round;
      pool.barrier().wait();
      wrong[own] += slots[(own + 1) % threads] != round;
      pool.barrier().wait();
    }
  });
  EXPECT_EQ(wrong, std::vector<int64_t>(threads));
  EXPECT_EQ(slots, std::vector<int64_t>(threads, kRounds / 2));
}

TEST_P(PoolOf, RethrowsOneFailureAndGoesOn) {
  Pool pool(GetParam());
  for (int thrower = 0; thrower < pool.threads(); ++thrower) {
    EXPECT_THROW(pool.run([&](int worker) {
      if (worker == thrower) throw std::out_of_range("here");
    }),
                 std::out_of_range);
    EXPECT_THROW(pool.run([](int) { throw std::runtime_error("all"); }), std::runtime_error);
    std::atomic<int> calls{0};
    pool.run([&](int) { ++calls; });
    EXPECT_EQ(calls, pool.threads());
  }
}

// volatile: the compiler must not compute the quotient in its own rounding mode.
bool denormals_survive() {
  volatile float tiny = 1e-38f;
  volatile float result = tiny / 16;
  return result != 0;
}

TEST_P(PoolOf, FlushesDenormalsInsideOnly) {
  Pool pool(GetParam());
  ASSERT_TRUE(denormals_survive());
  std::atomic<int> surviving{0};
  pool.run([&](int) { surviving += denormals_survive(); });
  EXPECT_EQ(surviving, 0);
  EXPECT_TRUE(denormals_survive());
  EXPECT_THROW(pool.run([](int) { throw 1; }), int);
  EXPECT_TRUE(denormals_survive());
}

TEST_P(PoolOf, IsRefusedInAForkedChild) {
  Pool pool(GetParam());
  pool.run([](int) {});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    int code = 1;
    try {
      pool.run([](int) {});
    } catch (const Error& error) {
      code =
          error.code() == ErrorCode::state && std::string(error.what()).find("after fork") != std::string::npos ? 0 : 2;
    }
    _exit(code);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  pool.run([](int) {});  // the parent's is untouched
}

TEST(Pool, RefusesNestedRuns) {
  Pool pool(2);
  std::atomic<int> refused{0};
  pool.run([&](int) {
    try {
      pool.run([](int) {});
    } catch (const Error&) {
      ++refused;
    }
  });
  EXPECT_EQ(refused, 2);
}

TEST(Pool, SizeIsCheckedAndDefaultsToWhatIsAllowed) {
  EXPECT_THROW(Pool(-1), Error);
  EXPECT_THROW(Pool(Pool::kMaximumThreads + 1), Error);
  EXPECT_EQ(Pool().threads(), allowed_threads());
}

TEST(Pool, ManyPoolsLiveTogetherAndDieUnused) {
  std::vector<std::unique_ptr<Pool>> pools;
  for (int i = 0; i < 20; ++i) pools.push_back(std::make_unique<Pool>(3));
  std::atomic<int> calls{0};
  for (size_t i = 0; i < pools.size(); i += 2) pools[i]->run([&](int) { ++calls; });
  EXPECT_EQ(calls, 30);
}

// Sleeping workers (the pause is longer than any spinning) are woken.
TEST(Pool, WakesAfterALongPause) {
  Pool pool(3);
  std::atomic<int> calls{0};
  for (int i = 0; i < 5; ++i) {
    pool.run([&](int) { ++calls; });
    usleep(3000);
  }
  EXPECT_EQ(calls, 15);
}

}  // namespace
}  // namespace brisk
