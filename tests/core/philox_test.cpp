// Philox against published answers; names and seeds give unrelated streams; the distributions are what they say.
#include "core/philox.h"

#include <gtest/gtest.h>

#include <set>

namespace brisk {
namespace {

// The vectors that the authors publish with their library (Random123, file kat_vectors).
TEST(Philox, KnownAnswers) {
  static_assert(philox(0, {0, 0, 0, 0}) == PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(philox(~uint64_t{0}, {kOnes, kOnes, kOnes, kOnes}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox(0x299f31d0'a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, CounterWordsAreAttemptSampleElement) {
  EXPECT_EQ(philox_counter(0x1'00000002, 3, 4), (PhiloxBlock{2, 1, 3, 4}));
}

TEST(Philox, NamesHashTheSameForEver) {
  // FNV-1a of "" is its offset basis and of "a" the published 0xaf63dc4c8601ec8c; both are spread afterwards.
  static_assert(hash_name("") == spread(0xcbf29ce484222325));
  static_assert(hash_name("a") == spread(0xaf63dc4c8601ec8c));
  std::set<uint64_t> keys;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (const char* name : {"conv1", "conv2", "conv1.weight", "1conv", ""}) keys.insert(mix(seed, hash_name(name)));
  }
  EXPECT_EQ(keys.size(), 500u);
}

TEST(Philox, UniformCoversItsRange) {
  EXPECT_EQ(uniform(0), 0.f);
  EXPECT_LT(uniform(0xffffffff), 1.f);
  double sum = 0;
  double squares = 0;
  constexpr int kBlocks = 50'000;
  for (uint32_t i = 0; i < kBlocks; ++i) {
    for (const uint32_t word : philox(7, {i, 0, 0, 0})) {
      sum += uniform(word);
      squares += uniform(word) * uniform(word);
    }
  }
  // Five standard errors of the mean (1/sqrt(12 n)) and of the mean square (sqrt(4/45 / n)), n = 200,000.
  EXPECT_NEAR(sum / (4 * kBlocks), 0.5, 5 * 0.000645);
  EXPECT_NEAR(squares / (4 * kBlocks), 1.0 / 3, 5 * 0.000667);
}

TEST(Philox, BernoulliHitsItsProbability) {
  EXPECT_FALSE(bernoulli(0, 0.0));
  EXPECT_TRUE(bernoulli(0xffffffff, 1.0));
  int hits = 0;
  for (uint32_t i = 0; i < 25'000; ++i) {
    for (const uint32_t word : philox(3, {i, 1, 0, 0})) hits += bernoulli(word, 0.1);
  }
  EXPECT_NEAR(hits, 10'000, 5 * 95);
}

TEST(Philox, NormalHasItsMoments) {
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  constexpr int kBlocks = 50'000;
  for (uint32_t i = 0; i < kBlocks; ++i) {
    const PhiloxBlock block = philox(11, {i, 0, 0, 0});
    for (const auto& pair : {normal(block[0], block[1]), normal(block[2], block[3])}) {
      for (const float x : pair) {
        sum += x;
        squares += double{x} * x;
        fourth += double{x} * x * x * x;
      }
    }
  }
  constexpr double kCount = 4.0 * kBlocks;
  EXPECT_NEAR(sum / kCount, 0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1, 5 * std::sqrt(2 / kCount));
  EXPECT_NEAR(fourth / kCount, 3, 5 * std::sqrt(96 / kCount));
  EXPECT_TRUE(std::isfinite(normal(0, 0)[0]) && std::isfinite(normal(0xffffffff, 0xffffffff)[1]));
}

}  // namespace
}  // namespace brisk
