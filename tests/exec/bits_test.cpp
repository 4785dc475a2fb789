// The same bits for any number of threads, for any split of a run into processes, and from both compilers.
#include <gtest/gtest.h>

#include "support/networks.h"

namespace brisk {
namespace {

constexpr int64_t kBatch = 67;  // a full block and a tail of every vector width
constexpr int kUpdates = 6;

template <class Network>
uint64_t train(Network network, Shape sample, Optimizer optimizer, int threads) {
  Model model(network, sample, {.seed = 7});
  const test::Rows rows = test::make_rows(kBatch, sample, 10, 3);
  Step step(model, cross_entropy({.label_smoothing = 0.1}), optimizer, {.batch = kBatch, .threads = threads});
  for (int i = 0; i < kUpdates; ++i) {
    step.run(rows.inputs(0, kBatch), rows.labels(0, kBatch));
    step.run(rows.inputs(0, 29), rows.labels(0, 29));
  }
  return test::hash_of(model);
}

Optimizer momentum() { return sgd({.learning_rate = 0.05, .momentum = 0.9, .weight_decay = 5e-4}); }

TEST(Bits, DoNotDependOnThreads) {
  const uint64_t lenet = train(test::lenet, {1, 28, 28}, momentum(), 1);
  const uint64_t residual = train(test::residual_net, {3, 8, 8}, momentum(), 1);
  const uint64_t adam = train(test::residual_net, {3, 8, 8}, adamw(), 1);
  for (const int threads : {2, 3, 8}) {
    EXPECT_EQ(train(test::lenet, {1, 28, 28}, momentum(), threads), lenet) << threads << " threads";
    EXPECT_EQ(train(test::residual_net, {3, 8, 8}, momentum(), threads), residual) << threads << " threads";
    EXPECT_EQ(train(test::residual_net, {3, 8, 8}, adamw(), threads), adam) << threads << " threads";
  }
  EXPECT_NE(residual, adam);
}

// tests/compilers_test.sh compares these lines of a g++ and a clang++ build.
TEST(Bits, Printed) {
  std::printf("bits lenet %016llx\n", static_cast<unsigned long long>(train(test::lenet, {1, 28, 28}, momentum(), 2)));
  std::printf("bits residual %016llx\n",
              static_cast<unsigned long long>(train(test::residual_net, {3, 8, 8}, momentum(), 2)));
  std::printf("bits adamw %016llx\n",
              static_cast<unsigned long long>(train(test::residual_net, {3, 8, 8}, adamw(), 2)));
  EXPECT_EQ(train(test::lenet, {1, 28, 28}, momentum(), 2), train(test::lenet, {1, 28, 28}, momentum(), 2));
}

TEST(Bits, DependOnTheSeedAndTheName) {
  Model a(test::lenet, {1, 28, 28}, {.seed = 1}), b(test::lenet, {1, 28, 28}, {.seed = 2});
  Model c(test::lenet, {1, 28, 28}, {.name = "other", .seed = 1}), d(test::lenet, {1, 28, 28}, {.seed = 1});
  EXPECT_NE(test::hash_of(a), test::hash_of(b));
  EXPECT_NE(test::hash_of(a), test::hash_of(c));
  EXPECT_EQ(test::hash_of(a), test::hash_of(d));
}

}  // namespace
}  // namespace brisk
