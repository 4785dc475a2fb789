// The checks of the models' options: numbers that no layer can use are refused under the name that the user wrote.
#pragma once

#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <utility>

#include "brisk/error.h"

namespace brisk::models {

/// Throws Error [option] "<options>.<field> = <value>" for a size outside 1 .. 2^20; products of them stay far below
/// what layers count.
inline void check_sizes(const char* options, std::initializer_list<std::pair<const char*, int64_t>> sizes) {
  for (const auto& [field, value] : sizes) {
    if (value >= 1 && value <= int64_t{1} << 20) continue;
    throw Error(ErrorCode::option, std::string(options) + "." + field + " = " + std::to_string(value),
                "must be 1 to 1048576");
  }
}

/// Throws Error [option] "<field> = <value>: <allowed>" unless it is right.
inline void check_number(const char* field, double value, bool right, const char* allowed) {
  if (right) return;
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  throw Error(ErrorCode::option, std::string(field) + " = " + text, allowed);
}

/// A rate.
inline void check_share(const char* field, double value) {
  check_number(field, value, value >= 0 && value <= 1, "must be from 0 to 1");
}

/// A width multiplier.
inline void check_width(const char* field, double value) {
  check_number(field, value, value > 0 && value <= 100, "must be more than 0, at most 100; 1 is the full width");
}

}  // namespace brisk::models
