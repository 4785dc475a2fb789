// One thread's loops: each element once, cut by count alone, whoever helps and whatever is thrown.
#include "core/team.h"

#include <gtest/gtest.h>

#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

namespace brisk {
namespace {

template <class F>
void run(Team& team, int64_t count, F f) {
  team.run([](void* function, int64_t first, int64_t last) { (*static_cast<F*>(function))(first, last); }, &f, count);
}

/// Calls f while `helpers` threads help.
template <class F>
void with_helpers(Team& team, int helpers, F f) {
  team.open(kSpinNs);
  std::vector<std::thread> threads;
  for (int i = 0; i < helpers; ++i) threads.emplace_back([&] { team.help(); });
  f();
  team.close();
  for (std::thread& thread : threads) thread.join();
}

class TeamOf : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Helpers, TeamOf, testing::Values(0, 1, 2, 7));

TEST_P(TeamOf, RunsEveryElementOnceInEveryLoop) {
  Team team;
  for (int call = 0; call < 20; ++call) {
    with_helpers(team, GetParam(), [&] {
      for (const int64_t count : {0, 1, 2, 3, 255, 256, 257, 1000}) {
        std::vector<int> seen(static_cast<size_t>(count));
        run(team, count, [&](int64_t first, int64_t last) {
          for (int64_t i = first; i < last; ++i) ++seen[static_cast<size_t>(i)];
        });
        EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(count), 1));
      }
    });
  }
}

TEST_P(TeamOf, LoopsInsideALoopRunInTheirThread) {
  Team team;
  with_helpers(team, GetParam(), [&] {
    std::vector<int> seen(300 * 20);
    run(team, 300, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i)
        run(team, 20, [&](int64_t a, int64_t b) {
          for (int64_t k = a; k < b; ++k) ++seen[static_cast<size_t>(i * 20 + k)];
        });
    });
    EXPECT_EQ(seen, std::vector<int>(300 * 20, 1));
  });
}

TEST_P(TeamOf, AnExceptionComesBackAndTheNextLoopIsWhole) {
  Team team;
  with_helpers(team, GetParam(), [&] {
    for (int round = 0; round < 50; ++round) {
      EXPECT_THROW(run(team, 1000,
                       [](int64_t first, int64_t) {
                         if (first > 300) throw std::runtime_error("planted");
                       }),
                   std::runtime_error);
      std::atomic<int64_t> sum{0};
      run(team, 1000, [&](int64_t first, int64_t last) { sum += last - first; });
      EXPECT_EQ(sum.load(), 1000);
    }
  });
}

TEST(Team, PiecesFollowFromTheCount) {
  for (const int64_t count : {int64_t{1}, int64_t{255}, int64_t{256}, int64_t{257}, int64_t{100000}}) {
    std::set<int64_t> sizes;
    EXPECT_EQ(Team::piece_begin(0, count), 0);
    for (int64_t i = 0; i < Team::pieces(count); ++i)
      sizes.insert(Team::piece_begin(i + 1, count) - Team::piece_begin(i, count));
    EXPECT_EQ(Team::piece_begin(Team::pieces(count), count), count);
    EXPECT_LE(*sizes.rbegin() - *sizes.begin(), 1) << count;
  }
}

TEST(Team, HelpersTakePart) {
  Team team;
  with_helpers(team, 1, [&] {
    // The caller's first piece waits for a piece of another thread.
    const std::thread::id caller = std::this_thread::get_id();
    std::atomic<bool> helped{false};
    run(team, 256, [&](int64_t, int64_t) {
      if (std::this_thread::get_id() != caller) helped = true;
      while (!helped) std::this_thread::yield();
    });
  });
}

}  // namespace
}  // namespace brisk
