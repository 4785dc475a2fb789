// Never more inside than the width, nobody left outside, first come first served.
#include "core/turnstile.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace brisk {
namespace {

TEST(Turnstile, LetsAtMostItsWidthInAndForgetsNobody) {
  for (const int width : {1, 2, 3}) {
    for (const int callers : {2, 8, 100}) {  // more than there are gates
      Turnstile turnstile(width);
      std::atomic<int> inside{0}, most{0}, entries{0};
      std::vector<std::thread> threads;
      for (int i = 0; i < callers; ++i) {
        threads.emplace_back([&] {
          for (int k = 0; k < 50; ++k) {
            turnstile.enter();
            const int now = ++inside;
            int before = most;
            while (now > before && !most.compare_exchange_weak(before, now)) {
            }
            ++entries;
            --inside;
            turnstile.leave();
          }
        });
      }
      for (std::thread& thread : threads) thread.join();
      EXPECT_LE(most, width) << callers;
      EXPECT_EQ(entries, callers * 50);
    }
  }
}

TEST(Turnstile, ServesInTheOrderOfArrival) {
  constexpr int kCallers = 20;
  Turnstile turnstile(1);
  turnstile.enter();
  std::vector<int> order;  // guarded by the turnstile
  std::vector<std::thread> threads;
  for (int i = 0; i < kCallers; ++i) {
    threads.emplace_back([&, i] {
      turnstile.enter();
      order.push_back(i);
      turnstile.leave();
    });
    while (turnstile.came() < i + 2) std::this_thread::yield();
  }
  turnstile.leave();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order.size(), size_t{kCallers});
  EXPECT_TRUE(std::is_sorted(order.begin(), order.end()));
}

}  // namespace
}  // namespace brisk
