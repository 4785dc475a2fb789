// The activation that a kernel applies to its result before it leaves the core.
#pragma once

#include <cstdint>

namespace brisk::backend::cpu {

enum class Activation : uint8_t { none, relu, tanh, sigmoid, silu };

}  // namespace brisk::backend::cpu
