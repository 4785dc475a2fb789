// The instruction set that kernels run on.
#pragma once

#include "backend/cpu/lowering.h"

namespace brisk::backend::cpu {

/// The widest one that processor and system support, capped by the environment's BRISK_CPU_ISA = avx2 | avx512.
/// Throws Error [backend] when there is none, or the variable has another value.
Isa widest_isa();

}  // namespace brisk::backend::cpu
