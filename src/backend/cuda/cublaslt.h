// cuBLASLt as another implementation of linear layers' products. runtime/cublaslt.cpp opens the library at run time;
// its twin in no_cuda/ says why there is none.
#pragma once

#include <string>

#include "backend/cuda/lowering.h"
#include "brisk/kernels/gemm.h"

namespace brisk::backend::cuda {

/// True when the environment's BRISK_CUDA_ENGINE is "cublaslt": what cuBLASLt can compute it then does. Throws Error
/// [backend] for a value other than that, "native" and nothing.
bool cublaslt_comes_first();

/// Why the library cannot be used; empty: it can. It is opened by the first call.
std::string cublaslt_missing();

/// The product of inputs `a` and `b`, plus input 2 where there is one, to output 0. product: sizes, transposes and
/// types.
void lower_cublaslt(const Call& call, const kernels::GemmOptions& product, int a, int b, Lowering& lowering);

}  // namespace brisk::backend::cuda
