// How a kernel header declares its phase functions: once for each instruction set that kernels/*.cpp are compiled for.
#pragma once

#include "backend/cpu/kernel.h"

/// Declares the phase function `function` in brisk::backend::cpu::avx2 and brisk::backend::cpu::avx512. Use inside
/// namespace brisk::backend::cpu.
#define BRISK_DECLARE_PHASE(function)                                                           \
  namespace avx2 {                                                                              \
  void function(const void* parameters, const Operands& operands, int64_t first, int64_t last); \
  }                                                                                             \
  namespace avx512 {                                                                            \
  void function(const void* parameters, const Operands& operands, int64_t first, int64_t last); \
  }

/// The phase function for a Call's instruction set. Use inside namespace brisk::backend::cpu.
#define BRISK_PHASE(call, function) ((call).isa == Isa::avx512 ? &avx512::function : &avx2::function)
