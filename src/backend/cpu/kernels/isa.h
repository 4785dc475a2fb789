// Declares a kernel once for each instruction set, and picks one at run time.
#pragma once

#include "backend/cpu/kernel.h"

/// Declares the phase function `name` in the namespaces of all instruction sets.
#define BRISK_CPU_KERNEL(name)                               \
  namespace avx2 {                                           \
  void name(const void*, const Operands&, int64_t, int64_t); \
  }                                                          \
  namespace avx512 {                                         \
  void name(const void*, const Operands&, int64_t, int64_t); \
  }

/// The phase function of `isa`.
#define BRISK_CPU_PICK(isa, name) ((isa) == Isa::avx512 ? avx512::name : avx2::name)
