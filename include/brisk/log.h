// brisk/log.h: where the library's log lines go.
#pragma once

#include <functional>
#include <string_view>

#include "brisk/export.h"

namespace brisk {

enum class LogLevel { debug, info, warning, error, off };

/// Gives every line of `level` and above to the program: one line, without a newline, valid during the call only.
/// Called in the thread in which the line arises, by several at once; what it throws is dropped. Null restores the
/// default: warnings and errors to stderr. With a logger of the program's own, lines from info on are given unless
/// set_log_level says otherwise.
BRISK_EXPORT void set_logger(std::function<void(LogLevel level, std::string_view line)> logger);

/// The lowest level that is written, for the default and the program's logger alike; LogLevel::off for silence.
BRISK_EXPORT void set_log_level(LogLevel level);

}  // namespace brisk
