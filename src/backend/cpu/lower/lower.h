// The families of native implementations, one a file in lower/; implementations.cpp puts them in order.
#pragma once

#include "backend/cpu/lowering.h"

namespace brisk::cpu {

std::span<const Implementation> conv_implementations();
std::span<const Implementation> linear_implementations();
std::span<const Implementation> pool_implementations();

}  // namespace brisk::cpu
