// Where lines go, and that a level that is off costs no formatting.
#include "core/log.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace brisk {
namespace {

struct Counted {
  int* formatted;
  std::string text() const {
    ++*formatted;
    return "counted";
  }
};

class Log : public testing::Test {
 protected:
  void TearDown() override {
    set_logger(nullptr);
    set_log_level(LogLevel::warning);
  }
};

TEST_F(Log, DefaultWritesWarningsToStderr) {
  testing::internal::CaptureStderr();
  log_info("not this");
  log_warning("batch ", 70, " is larger than ", 67);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "brisk warning: batch 70 is larger than 67\n");
}

TEST_F(Log, ProgramsLoggerGetsLines) {
  std::vector<std::pair<LogLevel, std::string>> lines;
  set_log_level(LogLevel::info);
  set_logger([&](LogLevel level, std::string_view line) { lines.emplace_back(level, line); });
  testing::internal::CaptureStderr();
  log_debug("off");
  log_info("rate ", 0.5);
  log_error("bad");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], (std::pair{LogLevel::info, std::string("rate 0.5")}));
  EXPECT_EQ(lines[1], (std::pair{LogLevel::error, std::string("bad")}));
}

TEST_F(Log, NeverFormatsWhatIsOff) {
  int formatted = 0;
  set_logger([](LogLevel, std::string_view) {});
  set_log_level(LogLevel::error);
  log_warning(Counted{&formatted});
  EXPECT_EQ(formatted, 0);
  log_error(Counted{&formatted});
  EXPECT_EQ(formatted, 1);
  set_log_level(LogLevel::off);
  log_error(Counted{&formatted});
  EXPECT_EQ(formatted, 1);
  EXPECT_FALSE(log_enabled(LogLevel::off));
}

TEST_F(Log, AThrowingLoggerDoesNotEndTheRun) {
  set_logger([](LogLevel, std::string_view) { throw std::runtime_error("disk full"); });
  EXPECT_NO_THROW(log_error("line"));
}

}  // namespace
}  // namespace brisk
