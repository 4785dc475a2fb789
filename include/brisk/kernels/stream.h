// brisk/kernels/stream.h: the stream that kernels are launched on, without a CUDA header.
#pragma once

struct CUstream_st;

namespace brisk {

/// What cudaStream_t is: it goes in as it is; null is the default stream.
using CudaStream = ::CUstream_st*;

}  // namespace brisk
