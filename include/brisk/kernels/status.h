// brisk/kernels/status.h: the word on the device in which kernels say what went wrong.
#pragma once

#include <cstdint>

namespace brisk::kernels {

/// The first error of a run, in device memory. A kernel that meets an error sets `kind` by compare-and-swap from none
/// and then the rest: later errors change nothing. The host clears it (all bytes as in Status{}) before a run.
struct Status {
  static constexpr int32_t kNone = 0;
  static constexpr int32_t kLabel = 1;              ///< a label that names no class; sample: its row; value: the label
  static constexpr int32_t kNonfiniteGradient = 2;  ///< sample: the parameter's slot (optimizer.h)

  int32_t kind = kNone;
  int32_t node = -1;  ///< the option `node` of the launch
  int64_t sample = -1;
  int64_t value = 0;
};

}  // namespace brisk::kernels
