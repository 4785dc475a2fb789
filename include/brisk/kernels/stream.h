// brisk/kernels/stream.h: the stream that kernels are launched on, without a CUDA header, and the counters they need.
#pragma once

#include <cstdint>

struct CUstream_st;

namespace brisk {

/// What cudaStream_t is: it goes in as it is; null is the default stream.
using CudaStream = ::CUstream_st*;

namespace kernels {

/// Bytes of the buffer that options call `counters`: zero before its first use; each launch leaves it zero again.
/// Launches that may run at the same time need one each; those of one stream share one.
inline constexpr int64_t kCounterBytes = 4096;

}  // namespace kernels
}  // namespace brisk
