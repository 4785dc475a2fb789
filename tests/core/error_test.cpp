// What users read when something is wrong.
#include "brisk/error.h"

#include <gtest/gtest.h>

namespace brisk {
namespace {

TEST(Error, NamesCodeFieldPlaceAndValue) {
  const Error error(ErrorCode::shape, "linear 'fc1'", "input must be [N, features], got [N, 50, 4, 4]",
                    Where{"/home/user/lenet.cpp", 9});
  EXPECT_STREQ(error.what(),
               "Error [shape] linear 'fc1' (lenet.cpp:9): input must be [N, features], got [N, 50, 4, 4]");
  EXPECT_EQ(error.code(), ErrorCode::shape);
  EXPECT_EQ(error.field(), "linear 'fc1'");
  EXPECT_EQ(error.where().line, 9);
}

TEST(Error, WithoutPlaceOrField) {
  EXPECT_STREQ(Error(ErrorCode::option, "StepOptions.batch = 0", "must be at least 1").what(),
               "Error [option] StepOptions.batch = 0: must be at least 1");
  EXPECT_STREQ(Error(ErrorCode::memory, "", "batch 512 needs 9 bytes").what(),
               "Error [memory] batch 512 needs 9 bytes");
  EXPECT_STREQ(Error(ErrorCode::shape, "", "no", Where{"a.cpp", 1}).what(), "Error [shape] (a.cpp:1): no");
}

int line_of(Where where = Where::here()) { return where.line; }

TEST(Error, HereIsTheCallersLine) {
  EXPECT_EQ(line_of(), __LINE__);
  EXPECT_EQ(Where{}.text(), "");
  EXPECT_EQ((Where{"plain.cpp", 3}).text(), "plain.cpp:3");
}

TEST(Error, EveryCodeHasItsName) {
  EXPECT_STREQ(name(ErrorCode::backend), "backend");
  EXPECT_STREQ(name(ErrorCode::data), "data");
  EXPECT_STREQ(name(ErrorCode::dist), "dist");
  EXPECT_STREQ(name(ErrorCode::file), "file");
  EXPECT_STREQ(name(ErrorCode::memory), "memory");
  EXPECT_STREQ(name(ErrorCode::numeric), "numeric");
  EXPECT_STREQ(name(ErrorCode::option), "option");
  EXPECT_STREQ(name(ErrorCode::schedule), "schedule");
  EXPECT_STREQ(name(ErrorCode::shape), "shape");
  EXPECT_STREQ(name(ErrorCode::state), "state");
  EXPECT_STREQ(name(ErrorCode::weights), "weights");
}

}  // namespace
}  // namespace brisk
