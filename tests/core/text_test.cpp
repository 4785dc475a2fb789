// Text of messages.
#include "core/text.h"

#include <gtest/gtest.h>

#include <vector>

namespace brisk {
namespace {

TEST(Text, JoinsParts) {
  EXPECT_EQ(cat("a", std::string("b"), 'c', 4, 0.25f, true, int64_t{-9}), "abc40.25true-9");
  EXPECT_EQ(cat(), "");
}

TEST(Text, GroupsThousands) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(-1000), "-1,000");
  EXPECT_EQ(grouped(-999), "-999");
  EXPECT_EQ(grouped(9126805504), "9,126,805,504");
}

TEST(Text, SuggestsCloseWordsOnly) {
  const std::vector<std::string> names = {"image", "imu", "lane", "angle"};
  EXPECT_EQ(closest("angel", names), "angle");
  EXPECT_EQ(closest("lanes", names), "lane");
  EXPECT_EQ(closest("velocity", names), "");
}

}  // namespace
}  // namespace brisk
