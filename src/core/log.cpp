// The only file that knows spdlog. Its logger is our own: the program's spdlog registry is not touched.
#include "core/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <atomic>
#include <memory>
#include <mutex>

namespace brisk {
namespace {

using Logger = std::function<void(LogLevel, std::string_view)>;

struct State {
  std::atomic<int> level{static_cast<int>(LogLevel::warning)};
  bool level_chosen = false;  // by set_log_level
  std::mutex mutex;           // guards level_chosen and logger
  std::shared_ptr<const Logger> logger;
};

// Never destroyed: threads may log while the process ends.
State& state() {
  static State& instance = *new State;
  return instance;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
    case LogLevel::off:
      return spdlog::level::off;
  }
  return spdlog::level::off;
}

void write_to_stderr(LogLevel level, std::string_view line) {
  static spdlog::logger& logger = *[] {
    auto* made = new spdlog::logger("brisk", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made->set_pattern("%n %l: %v");
    made->set_level(spdlog::level::trace);
    return made;
  }();
  logger.log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace

void set_logger(Logger logger) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.logger = logger ? std::make_shared<const Logger>(std::move(logger)) : nullptr;
  if (!s.level_chosen) s.level = static_cast<int>(s.logger ? LogLevel::info : LogLevel::warning);
}

void set_log_level(LogLevel level) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.level_chosen = true;
  s.level = static_cast<int>(level);
}

bool has_own_logger() {
  const std::lock_guard lock(state().mutex);
  return state().logger != nullptr;
}

bool log_enabled(LogLevel level) {
  return level != LogLevel::off && static_cast<int>(level) >= state().level.load(std::memory_order_relaxed);
}

void log_line(LogLevel level, std::string_view line) {
  if (!log_enabled(level)) return;
  std::shared_ptr<const Logger> logger;
  {
    const std::lock_guard lock(state().mutex);
    logger = state().logger;
  }
  try {
    if (logger) {
      (*logger)(level, line);
    } else {
      write_to_stderr(level, line);
    }
  } catch (...) {
    // A line that cannot be written must not end a training run.
  }
}

}  // namespace brisk
