// NVIDIA's cuBLASLt, opened at run time: its functions and the constants that are used, declared as in versions 12 and
// 13. No header of it is needed.
#pragma once

#include <cuda_runtime_api.h>
#include <library_types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "backend/cuda/runtime/shared_library.h"

namespace brisk::backend::cuda {

namespace cublaslt {

struct Context;
struct Description;
struct Layout;
struct Preference;

struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};

constexpr int kSuccess = 0, kInvalidValue = 7, kNotSupported = 15;
constexpr int kComputeF32 = 68;
// Attributes of a product: int32_t, int32_t, uint32_t, const void*.
constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8;
constexpr uint32_t kEpilogueNone = 1, kEpilogueBias = 4;
// Attributes of a preference: uint64_t, and uint32_t for the others. Alignments of A, B, C and D follow one another.
constexpr int kMaxWorkspaceBytes = 1, kReductionSchemes = 3, kMinAlignmentA = 5, kMinAlignmentD = 8;
/// Slices of k are added in f32 in the workspace, by a kernel of their own.
constexpr uint32_t kReductionInComputeType = 2;

}  // namespace cublaslt

/// Functions return 0 when they succeed.
struct CublasLt {
  explicit CublasLt(const char* name);

  SharedLibrary library;
  std::string missing;  ///< why it cannot be used; empty: it can
  size_t (*version)();  ///< 130100: 13.1.0
  const char* (*status_text)(int);
  int (*create)(cublaslt::Context**);
  int (*make_description)(cublaslt::Description**, int compute, cudaDataType scale);
  int (*destroy_description)(cublaslt::Description*);
  int (*set_description)(cublaslt::Description*, int attribute, const void*, size_t bytes);
  int (*make_layout)(cublaslt::Layout**, cudaDataType, uint64_t rows, uint64_t columns, int64_t leading);
  int (*destroy_layout)(cublaslt::Layout*);
  int (*make_preference)(cublaslt::Preference**);
  int (*destroy_preference)(cublaslt::Preference*);
  int (*set_preference)(cublaslt::Preference*, int attribute, const void*, size_t bytes);
  int (*heuristic)(cublaslt::Context*, cublaslt::Description*, cublaslt::Layout* a, cublaslt::Layout* b,
                   cublaslt::Layout* c, cublaslt::Layout* d, cublaslt::Preference*, int wanted, cublaslt::Heuristic*,
                   int* found);
  int (*multiply)(cublaslt::Context*, cublaslt::Description*, const void* alpha, const void* a, cublaslt::Layout*,
                  const void* b, cublaslt::Layout*, const void* beta, const void* c, cublaslt::Layout*, void* d,
                  cublaslt::Layout*, const cublaslt::Algorithm*, void* workspace, size_t workspace_bytes, cudaStream_t);
};

}  // namespace brisk::backend::cuda
