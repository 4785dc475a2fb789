// The seam through which the library logs. Parts are joined only when the level is on.
#pragma once

#include <string_view>

#include "brisk/log.h"
#include "core/text.h"

namespace brisk {

bool log_enabled(LogLevel level);
/// Whether the program has set a logger of its own.
bool has_own_logger();
void log_line(LogLevel level, std::string_view line);

template <class... Parts>
void log_at(LogLevel level, const Parts&... parts) {
  if (log_enabled(level)) log_line(level, cat(parts...));
}
template <class... Parts>
void log_debug(const Parts&... parts) {
  log_at(LogLevel::debug, parts...);
}
template <class... Parts>
void log_info(const Parts&... parts) {
  log_at(LogLevel::info, parts...);
}
template <class... Parts>
void log_warning(const Parts&... parts) {
  log_at(LogLevel::warning, parts...);
}
template <class... Parts>
void log_error(const Parts&... parts) {
  log_at(LogLevel::error, parts...);
}

}  // namespace brisk
