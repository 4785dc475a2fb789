// oneDNN's candidates for convolutions and linear layers: onednn/ fills them; its twin no_onednn/ says why there are
// none.
#pragma once

#include <span>

#include "backend/cpu/lowering.h"

namespace brisk::backend::cpu {

std::span<const Implementation> onednn_implementations();

/// True when the environment's BRISK_CPU_ENGINE is "onednn": its candidates then stand before Brisk's own kernels.
/// Throws Error [backend] for a value other than that, "native" and nothing.
bool onednn_comes_first();

}  // namespace brisk::backend::cpu
