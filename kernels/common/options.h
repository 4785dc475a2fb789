// Checks of launchers' options. No CUDA header: what launchers need of memory is asked in builds without a toolkit too.
//
//   check_option(options.count > 0, "kernels::cast.count", options.count, "must be 1 or more");
//   check_pointer(options.x, "kernels::cast.x");
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <type_traits>

#include "brisk/error.h"
#include "brisk/tensor.h"

namespace brisk::kernels {

template <class T>
std::string option_text(T value) {
  if constexpr (std::is_same_v<T, DType>) {
    return name(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", static_cast<double>(value));
    return text;
  } else {
    return std::to_string(value);
  }
}

/// Throws Error [option] "kernels::cast.count = 0: must be 1 or more" where it does not hold.
template <class T>
void check_option(bool holds, const char* field, T value, const char* rule) {
  if (!holds) throw Error(ErrorCode::option, std::string(field) + " = " + option_text(value), rule);
}

inline void check_pointer(const void* pointer, const char* field) {
  if (pointer == nullptr) {
    throw Error(ErrorCode::option, std::string(field) + " = null", "must be a device pointer");
  }
}

inline void check_float(DType dtype, const char* field) {
  check_option(dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16, field, dtype,
               "must be f32, f16 or bf16");
}

/// Blocks that cover `items`, `per_block` each.
inline unsigned blocks_for(int64_t items, int64_t per_block, const char* field) {
  const int64_t blocks = (items + per_block - 1) / per_block;
  check_option(blocks <= INT32_MAX, field, items, "is more than one launch covers");
  return static_cast<unsigned>(blocks);
}

/// Whether a pointer is a multiple of `bytes`, a power of two.
inline bool aligned(const void* pointer, uintptr_t bytes) { return reinterpret_cast<uintptr_t>(pointer) % bytes == 0; }

}  // namespace brisk::kernels
