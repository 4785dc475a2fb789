// The check of the models' options: sizes that no layer can have are refused under the name that the user wrote.
#pragma once

#include <cstdint>
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

}  // namespace brisk::models
