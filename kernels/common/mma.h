// Tensor Core instructions, all of them .sync.aligned: the 32 lanes of a warp call them together. Fragments lie in
// registers as the PTX ISA lays them out ("Matrix fragments for mma.m16n8k16"). On sm_75, mma_m16n8k16 is two m16n8k8;
// it has no bf16, which traps there.
//
//   ldmatrix_x4(r, row)        four 8x8 matrices of 16-bit elements; lane i gives the address of row i % 8 of matrix i
//   / 8 ldmatrix_x2(r, row)        two (lanes 0 to 15 give the addresses) ldmatrix_x4_trans, ldmatrix_x2_trans    each
//   matrix transposed mma_m16n8k16(T(), d, a, b, c)    d = a (16x16, row-major) b (16x8, column-major) + c, T = __half
//   or __nv_bfloat16
#pragma once

#include "kernels/common/cuda.h"

#if defined(BRISK_SIMT)
#include "simt/mma.h"
#else

namespace brisk::kernels {

__device__ __forceinline__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void ldmatrix_x4(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

__device__ __forceinline__ void ldmatrix_x2(uint32_t (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}

__device__ __forceinline__ void ldmatrix_x4_trans(uint32_t (&r)[4], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(shared_address(row))
               : "memory");
}

__device__ __forceinline__ void ldmatrix_x2_trans(uint32_t (&r)[2], const void* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
               : "=r"(r[0]), "=r"(r[1])
               : "r"(shared_address(row))
               : "memory");
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800

#define BRISK_MMA_M16N8K16(T, type)                                                                                   \
  __device__ __forceinline__ void mma_m16n8k16(T, float(&d)[4], const uint32_t(&a)[4], const uint32_t(&b)[2],         \
                                               const float(&c)[4]) {                                                  \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                                               \
                 ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%10,%11,%12,%13};"                                     \
                 : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])                                                     \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(c[0]), "f"(c[1]), "f"(c[2]), \
                   "f"(c[3]));                                                                                        \
  }
BRISK_MMA_M16N8K16(__half, "f16")
BRISK_MMA_M16N8K16(__nv_bfloat16, "bf16")
#undef BRISK_MMA_M16N8K16

#else

__device__ __forceinline__ void mma_m16n8k8(float (&d)[4], uint32_t a0, uint32_t a1, uint32_t b, const float (&c)[4]) {
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
               : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
               : "r"(a0), "r"(a1), "r"(b), "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3]));
}

__device__ __forceinline__ void mma_m16n8k16(__half, float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                                             const float (&c)[4]) {
  mma_m16n8k8(d, a[0], a[1], b[0], c);
  mma_m16n8k8(d, a[2], a[3], b[1], d);
}

__device__ __forceinline__ void mma_m16n8k16(__nv_bfloat16, float (&)[4], const uint32_t (&)[4], const uint32_t (&)[2],
                                             const float (&)[4]) {
  __trap();
}

#endif

}  // namespace brisk::kernels

#endif
