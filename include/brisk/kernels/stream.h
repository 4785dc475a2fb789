// brisk/kernels/stream.h: the stream of a launcher, named without a CUDA header.
#pragma once

struct CUstream_st;

namespace brisk {

/// CUDA's own cudaStream_t. Null: the default stream.
using CudaStream = ::CUstream_st*;

}  // namespace brisk
