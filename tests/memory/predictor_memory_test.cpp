// A predictor takes its memory when it is made: calls take none, publications none after the first.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "memory/traps.h"
#include "support/networks.h"

namespace brisk {
namespace {

TEST(PredictorMemory, CallsAllocateNothing) {
  if (!test::traps_work()) GTEST_SKIP() << "a sanitizer owns malloc";
  const test::Rows rows = test::make_rows(77, {1, 28, 28}, 10, 1);
  Model model(test::lenet, {1, 28, 28});
  const Predictor predictor(model, {.batches = {1, 8, 64}, .concurrency = 2});
  Tensor out(Shape{77, 10});
  Feed feed = {{"input", rows.inputs(0, 77)}};
  Fetch fetch = {{"output", View(out)}};
  const auto call = [&] {
    for (const int64_t count : {1, 8, 77}) predictor.run(rows.inputs(0, count), View(out).rows(0, count));
    predictor.run(feed, fetch);
  };
  std::atomic<int> ready{0}, done{0};
  std::vector<std::thread> others;
  for (int i = 0; i < 4; ++i)
    others.emplace_back([&] {
      float own[10];
      for (++ready; ready < 5;) std::this_thread::yield();
      for (int k = 0; k < 50; ++k) predictor.run(rows.inputs(0, 1), View(own, {1, 10}));
      for (++done; done < 5;) std::this_thread::yield();
    });
  while (ready < 4) std::this_thread::yield();
  const int64_t before = test::held_memory().calls;
  ++ready;
  for (int i = 0; i < 20; ++i) call();
  while (done < 4) std::this_thread::yield();
  EXPECT_EQ(test::held_memory().calls - before, 0);
  ++done;
  for (std::thread& other : others) other.join();
}

TEST(PredictorMemory, PublicationsAllocateNothingAfterTheFirst) {
  if (!test::traps_work()) GTEST_SKIP() << "a sanitizer owns malloc";
  Model model(test::residual_net, {3, 8, 8}), twin(test::residual_net, {3, 8, 8}, {.seed = 2});
  Predictor predictor(model);
  predictor.publish(twin);
  const int64_t before = test::held_memory().calls;
  for (int i = 0; i < 10; ++i) predictor.publish(i % 2 == 0 ? model : twin);
  EXPECT_EQ(test::held_memory().calls - before, 0);
}

}  // namespace
}  // namespace brisk
