// brisk/kernels/activation.h: the function at the end of a kernel.
#pragma once

#include <cstdint>

namespace brisk::kernels {

/// relu keeps NaN; silu(x) = x sigmoid(x).
enum class Activation : uint8_t { none, relu, sigmoid, silu, tanh };

}  // namespace brisk::kernels
