// The order is a permutation for every size, and as random as tests of its size can tell.
#include "data/order.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

namespace brisk::data {
namespace {

std::vector<int64_t> all_of(const Order& order) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < order.size(); ++i) out.push_back(order[i]);
  return out;
}

TEST(Order, IsAPermutationForEverySize) {
  std::vector<int64_t> sizes = {1000, 4096, 60000, 65537};
  for (int64_t size = 1; size <= 300; ++size) sizes.push_back(size);
  for (const int64_t size : sizes) {
    std::vector<int64_t> order = all_of(Order(5, 3, size));
    std::sort(order.begin(), order.end());
    for (int64_t i = 0; i < size; ++i) ASSERT_EQ(order[static_cast<size_t>(i)], i) << "size " << size;
  }
}

TEST(Order, ReachesPositionsOfHugeSets) {
  const Order order(1, 0, int64_t{1} << 62);
  EXPECT_GE(order[0], 0);
  EXPECT_LT(order[order.size() - 1], order.size());
  EXPECT_NE(order[0], order[1]);
}

// Each of the n! orders equally often: chi-square over all of them, at five standard deviations above its mean.
TEST(Order, SmallSetsReachAllOrdersEvenly) {
  for (const int64_t size : {2, 3, 4, 5}) {
    std::map<std::vector<int64_t>, int> counts;
    constexpr int kDraws = 24'000;
    for (int draw = 0; draw < kDraws; ++draw) ++counts[all_of(Order(static_cast<uint64_t>(draw), draw % 7, size))];
    const double orders = std::tgamma(static_cast<double>(size) + 1);
    EXPECT_EQ(static_cast<double>(counts.size()), orders) << "size " << size;
    const double expected = kDraws / orders;
    double chi_square = 0;
    for (const auto& [order, count] : counts) chi_square += (count - expected) * (count - expected) / expected;
    EXPECT_LT(chi_square, orders - 1 + 5 * std::sqrt(2 * (orders - 1))) << "size " << size;
  }
}

// Where sample 0 goes, and what stands behind it, over many epochs: both even over ten equal classes.
TEST(Order, PlacesAndNeighboursAreEven) {
  constexpr int64_t kSize = 1010;
  constexpr int kEpochs = 5000;
  std::vector<int> first(10);
  std::vector<int> distance(10);
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const Order order(9, epoch, kSize);
    ++first[static_cast<size_t>(order[0] * 10 / kSize)];
    const int64_t gap = (order[501] - order[500] + kSize) % kSize;
    ++distance[static_cast<size_t>(gap * 10 / kSize)];
  }
  for (const auto& counts : {first, distance}) {
    double chi_square = 0;
    for (const int count : counts) chi_square += std::pow(count - kEpochs / 10, 2) / (kEpochs / 10.0);
    EXPECT_LT(chi_square, 9 + 5 * std::sqrt(18.0));
  }
}

// Fixed points and ascents of random permutations of n: 1 and (n - 1) / 2 on average, (n + 1) / 12 the ascents'
// variance.
TEST(Order, FixedPointsAndAscentsAreThoseOfRandomPermutations) {
  constexpr int64_t kSize = 500;
  constexpr int kEpochs = 2000;
  double fixed = 0;
  double ascents = 0;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    const std::vector<int64_t> order = all_of(Order(2, epoch, kSize));
    for (size_t i = 0; i < order.size(); ++i) {
      fixed += order[i] == static_cast<int64_t>(i);
      ascents += i > 0 && order[i] > order[i - 1];
    }
  }
  EXPECT_NEAR(fixed / kEpochs, 1, 5 / std::sqrt(kEpochs));
  EXPECT_NEAR(ascents / kEpochs, 249.5, 5 * std::sqrt(501 / 12.0 / kEpochs));
}

}  // namespace
}  // namespace brisk::data
