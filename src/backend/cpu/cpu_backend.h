// The CPU behind the seam of backend.h.
#pragma once

#include <memory>

#include "backend/backend.h"
#include "backend/cpu/lowering.h"
#include "backend/operands.h"

namespace brisk::backend::cpu {

/// The backend of this machine's widest instruction set. Throws Error [backend] when the processor lacks AVX2 and FMA.
const Backend& cpu_backend();

/// A target of a given instruction set; needs no such processor.
std::shared_ptr<const Target> make_target(Isa isa);

/// Lowers one node, or the members of a group as one kernel, with the named implementation.
Lowering lower(const graph::Graph& graph, const std::vector<int32_t>& nodes, int64_t samples, Isa isa,
               std::string_view implementation);

/// Runs plans on a pool; owns the workers' scratch memory.
std::unique_ptr<Runtime> make_runtime(Isa isa, int threads);

}  // namespace brisk::backend::cpu
