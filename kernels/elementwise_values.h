// Where the values of an elementwise program are when a step asks for them. Host only.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "brisk/kernels/elementwise.h"

namespace brisk::kernels {

// A place is a source's number, or kKept + a slot of shared memory, or the registers, which hold the last result.
constexpr int8_t kKeptPlace = 32, kRegistersPlace = 64, kNoPlace = -1;

struct ElementwisePlaces {
  bool fits = true;                                                ///< kElementwiseKept slots are enough
  int32_t slots = 0;                                               ///< that are used
  std::array<std::array<int8_t, 3>, kElementwiseSteps> operand{};  ///< of each step; kNoPlace: it has no use for one
  std::array<int8_t, kElementwiseSteps> result{};                  ///< kept there as well, or kNoPlace
  std::array<int8_t, kElementwiseOutputs> output{};
};

/// How many of a, b, c an operation reads.
int operands_of(Elementwise operation);

/// Operands must name values that are there.
ElementwisePlaces place_values(std::span<const ElementwiseOutput> outputs, int sources,
                               std::span<const ElementwiseStep> steps);

}  // namespace brisk::kernels
