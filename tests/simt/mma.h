// Tensor Core instructions of kernels/common/mma.h, emulated to the fragment layouts of the PTX ISA.
#pragma once

#include <immintrin.h>

#include "simt/device.h"

namespace brisk::simt {
inline float h2f(uint16_t h) { return _cvtsh_ss(h); }
inline float b2f(uint16_t b) {
  uint32_t u = uint32_t(b) << 16;
  float r;
  __builtin_memcpy(&r, &u, 4);
  return r;
}
struct MmaIo {
  float* d;
  const uint32_t *a, *b;
  const float* c;
};
// D = A(16xK) B(Kx8) + C, fp32 accumulation, k in ascending order (hardware: unspecified order, own rounding).
template <int K>
SIMT_NOSAN void mma_core(void* const io[32], const float (&A)[16][K], const float (&B)[K][8]) {
  float C[16][8];
  for (int l = 0; l < 32; ++l) {
    const float* c = static_cast<MmaIo*>(io[l])->c;
    int g = l >> 2, t = (l & 3) * 2;
    C[g][t] = c[0];
    C[g][t + 1] = c[1];
    C[g + 8][t] = c[2];
    C[g + 8][t + 1] = c[3];
  }
  for (int m = 0; m < 16; ++m)
    for (int k = 0; k < K; ++k) {
      float a = A[m][k];
      for (int n = 0; n < 8; ++n) C[m][n] += a * B[k][n];
    }
  for (int l = 0; l < 32; ++l) {
    float* d = static_cast<MmaIo*>(io[l])->d;
    int g = l >> 2, t = (l & 3) * 2;
    d[0] = C[g][t];
    d[1] = C[g][t + 1];
    d[2] = C[g + 8][t];
    d[3] = C[g + 8][t + 1];
  }
}
template <bool BF>
SIMT_NOSAN void mma_16816_fn(void* const io[32], uint32_t) {
  float A[16][16], B[16][8];
  auto cv = [](uint32_t u, int hi) __attribute__((no_sanitize("thread"), no_sanitize("address"))) {
    uint16_t h = uint16_t(hi ? u >> 16 : u);
    return BF ? b2f(h) : h2f(h);
  };
  for (int l = 0; l < 32; ++l) {
    auto* p = static_cast<MmaIo*>(io[l]);
    int g = l >> 2, t = (l & 3) * 2;
    for (int h = 0; h < 2; ++h) {
      A[g][t + h] = cv(p->a[0], h);
      A[g + 8][t + h] = cv(p->a[1], h);
      A[g][t + 8 + h] = cv(p->a[2], h);
      A[g + 8][t + 8 + h] = cv(p->a[3], h);
      B[t + h][g] = cv(p->b[0], h);
      B[t + 8 + h][g] = cv(p->b[1], h);
    }
  }
  mma_core<16>(io, A, B);
}
struct LdmIo {
  const void* row;
  uint32_t* r;
};
template <int N, bool TR>
SIMT_NOSAN void ldm_fn(void* const io[32], uint32_t) {
  for (int j = 0; j < N; ++j) {
    uint16_t M[8][8];
    int bank[8] = {}, worst = 0;
    for (int i = 0; i < 8; ++i) {
      const void* p = static_cast<LdmIo*>(io[j * 8 + i])->row;
      __builtin_memcpy(M[i], p, 16);
      int& b = bank[reinterpret_cast<uintptr_t>(p) >> 4 & 7];
      if (++b > worst) worst = b;
    }
    Stats& s = stats();
    ++s.ldmatrix_phases;
    s.ldmatrix_conflicts += uint64_t(worst - 1);
    for (int l = 0; l < 32; ++l) {
      int a = l >> 2, b = (l & 3) * 2;
      uint16_t lo = TR ? M[b][a] : M[a][b], hi = TR ? M[b + 1][a] : M[a][b + 1];
      static_cast<LdmIo*>(io[l])->r[j] = uint32_t(lo) | uint32_t(hi) << 16;
    }
  }
}
inline void touch16(const void* p, const char* what, Site s) {  // a checked 16-byte read of shared memory by this lane
  const unsigned char* a = tl_blk->arena;
  auto* q = static_cast<const unsigned char*>(p);
  if (reinterpret_cast<uintptr_t>(p) & 15) fail("%s at %s:%d: address %p not 16-byte aligned", what, s.file, s.line, p);
  if (q < a || q >= a + 300 * 1024)
    fail("%s at %s:%d: %p is not in this block's shared memory", what, s.file, s.line, p);
  volatile uint64_t x = static_cast<const volatile uint64_t*>(p)[0];
  x = static_cast<const volatile uint64_t*>(p)[1];
  (void)x;
}
template <int N, bool TR>
inline void ldmatrix(uint32_t* r, const void* row, Site s) {
  static const Op op{TR ? "ldmatrix.trans" : "ldmatrix", &ldm_fn<N, TR>, false, true};
  if (int(lane()) < N * 8) touch16(row, "ldmatrix", s);
  LdmIo io{row, r};
  warp_collective(~0u, &op, &io, s);
}
}  // namespace brisk::simt

namespace brisk::kernels {
inline void ldmatrix_x4(uint32_t (&r)[4], const void* row, SIMT_SITE) { simt::ldmatrix<4, false>(r, row, SIMT_HERE); }
inline void ldmatrix_x2(uint32_t (&r)[2], const void* row, SIMT_SITE) { simt::ldmatrix<2, false>(r, row, SIMT_HERE); }
inline void ldmatrix_x4_trans(uint32_t (&r)[4], const void* row, SIMT_SITE) {
  simt::ldmatrix<4, true>(r, row, SIMT_HERE);
}
inline void ldmatrix_x2_trans(uint32_t (&r)[2], const void* row, SIMT_SITE) {
  simt::ldmatrix<2, true>(r, row, SIMT_HERE);
}
inline void mma_m16n8k16(__half, float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], const float (&c)[4],
                         SIMT_SITE) {
  static const simt::Op op{"mma.m16n8k16.f16", &simt::mma_16816_fn<false>, false, true};
  simt::MmaIo io{d, a, b, c};
  simt::warp_collective(~0u, &op, &io, SIMT_HERE);
}
inline void mma_m16n8k16(__nv_bfloat16, float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                         const float (&c)[4], SIMT_SITE) {
  static const simt::Op op{"mma.m16n8k16.bf16", &simt::mma_16816_fn<true>, false, true};
  simt::MmaIo io{d, a, b, c};
  simt::warp_collective(~0u, &op, &io, SIMT_HERE);
}
}  // namespace brisk::kernels
