// brisk/precision.h: in which number formats a step computes.
#pragma once

#include <cstdint>

namespace brisk {

/// A recipe, not an element type. This release computes in f32; the others are refused with Error [option].
enum class Precision : uint8_t { f32, bf16, fp16, automatic };

}  // namespace brisk
