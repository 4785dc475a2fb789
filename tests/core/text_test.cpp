// Text of messages.
#include "core/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
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

TEST(Text, NumbersAreWrittenAsPrintfDoes) {
  for (const double value : {0.0, -0.5, 0.001, 3e-4, 1e-5, 123456.0, 1234567.0, 2.0 / 3, 1e300, HUGE_VAL, -HUGE_VAL}) {
    char general[400], fixed[400];
    std::snprintf(general, sizeof(general), "%.4g", value);
    std::snprintf(fixed, sizeof(fixed), "%.2f", value);
    EXPECT_EQ(number_text(value, 4), general);
    EXPECT_EQ(fixed_text(value, 2), fixed);
  }
}

}  // namespace
}  // namespace brisk
