// Launchers of touched_probe.cu: 32 threads each, on two arrays of 512 bytes.
#pragma once

#include <cuda_runtime_api.h>

namespace brisk::simt {

enum class Probe { wide, masked, narrow, staged, atomic };
cudaError_t launch_probe(Probe probe, const void* from, void* to);

}  // namespace brisk::simt
