// The instructions of kernels/common/mma.h, emulated to the fragment layouts of the PTX ISA: lane 4 g + t holds
// elements (row, column) = (g, 2 t), (g, 2 t + 1) of each 8 x 8 part of a matrix.
#pragma once

#include <immintrin.h>

#include "simt/device.h"

namespace brisk::simt {

inline float as_float(__half, uint16_t bits) { return _cvtsh_ss(bits); }
inline float as_float(__nv_bfloat16, uint16_t bits) { return bits_as<float>(uint32_t{bits} << 16); }

struct Fragments {
  float* d;
  const uint32_t* a;
  const uint32_t* b;
  const float* c;
};

using Row = float __attribute__((vector_size(32)));  // eight columns

/// d = a b + c for a 16 x 16 and a 16 x 8 matrix; sums in f32, k ascending (a device's order is its own). The product
/// of two 16-bit floats is exact in f32.
template <class T>
BRISK_SIMT_HARDWARE void multiply_matrices(void* const values[32], uint32_t) {
  float a[16][16];
  alignas(32) float b[16][8], c[16][8];
  for (int lane = 0; lane < 32; ++lane) {
    const Fragments& own = *static_cast<Fragments*>(values[lane]);
    const int g = lane / 4, t = lane % 4 * 2;
    for (int half = 0; half < 2; ++half) {
      const int shift = 16 * half;
      for (int part = 0; part < 4; ++part) {
        a[g + part % 2 * 8][t + part / 2 * 8 + half] = as_float(T(), static_cast<uint16_t>(own.a[part] >> shift));
      }
      for (int part = 0; part < 2; ++part) {
        b[t + part * 8 + half][g] = as_float(T(), static_cast<uint16_t>(own.b[part] >> shift));
        c[g + part * 8][t + half] = own.c[part * 2 + half];
      }
    }
  }
  for (int m = 0; m < 16; ++m) {
    Row sum = *reinterpret_cast<const Row*>(c[m]);
    for (int k = 0; k < 16; ++k) sum += a[m][k] * *reinterpret_cast<const Row*>(b[k]);
    *reinterpret_cast<Row*>(c[m]) = sum;
  }
  for (int lane = 0; lane < 32; ++lane) {
    float* d = static_cast<Fragments*>(values[lane])->d;
    for (int i = 0; i < 4; ++i) d[i] = c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
  }
}

struct MatrixRow {
  const void* address;  ///< of 8 elements
  uint32_t* parts;
};

template <int Parts, bool Transposed>
BRISK_SIMT_HARDWARE void load_matrices(void* const values[32], uint32_t) {
  for (int part = 0; part < Parts; ++part) {
    uint16_t matrix[8][8];
    int in_bank[8] = {}, most = 0;  // rows of 16 bytes in the same sixteen bytes of the 128 that one access reaches
    for (int row = 0; row < 8; ++row) {
      const void* address = static_cast<MatrixRow*>(values[part * 8 + row])->address;
      __builtin_memcpy(matrix[row], address, 16);
      const int rows = ++in_bank[reinterpret_cast<uintptr_t>(address) / 16 % 8];
      if (rows > most) most = rows;
    }
    count_ldmatrix_phase(most - 1);
    for (int lane = 0; lane < 32; ++lane) {
      const int g = lane / 4, t = lane % 4 * 2;
      const uint32_t low = Transposed ? matrix[t][g] : matrix[g][t];
      const uint32_t high = Transposed ? matrix[t + 1][g] : matrix[g][t + 1];
      static_cast<MatrixRow*>(values[lane])->parts[part] = low | high << 16;
    }
  }
}

/// What the lane's own read of the row would find wrong.
inline void check_matrix_row(const void* address, Site site) {
  if (reinterpret_cast<uintptr_t>(address) % 16) {
    fail("ldmatrix at %s:%d: address %p is not 16-byte aligned", site.file, site.line, address);
  }
  if (!in_shared_memory(address, 16)) {
    fail("ldmatrix at %s:%d: %p is not in this block's shared memory", site.file, site.line, address);
  }
  for (int i = 0; i < 2; ++i) static_cast<void>(static_cast<const volatile uint64_t*>(address)[i]);
}

template <int Parts, bool Transposed>
void load_matrix(uint32_t* parts, const void* row, Site site) {
  static constexpr WarpOperation kOperation{Transposed ? "ldmatrix.trans" : "ldmatrix",
                                            &load_matrices<Parts, Transposed>, false, true};
  if (lane() < Parts * 8) check_matrix_row(row, site);
  MatrixRow own{row, parts};
  warp_collective(~0u, kOperation, &own, site);
}

}  // namespace brisk::simt

namespace brisk::kernels {

inline void ldmatrix_x4(uint32_t (&r)[4], const void* row, simt::Site site = simt::Site::here()) {
  simt::load_matrix<4, false>(r, row, site);
}
inline void ldmatrix_x2(uint32_t (&r)[2], const void* row, simt::Site site = simt::Site::here()) {
  simt::load_matrix<2, false>(r, row, site);
}
inline void ldmatrix_x4_trans(uint32_t (&r)[4], const void* row, simt::Site site = simt::Site::here()) {
  simt::load_matrix<4, true>(r, row, site);
}
inline void ldmatrix_x2_trans(uint32_t (&r)[2], const void* row, simt::Site site = simt::Site::here()) {
  simt::load_matrix<2, true>(r, row, site);
}

template <class T>
inline void mma_m16n8k16(T, float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2], const float (&c)[4],
                         simt::Site site = simt::Site::here()) {
  static constexpr simt::WarpOperation kOperation{"mma.m16n8k16", &simt::multiply_matrices<T>, false, true};
  simt::Fragments own{d, a, b, c};
  simt::warp_collective(~0u, kOperation, &own, site);
}

}  // namespace brisk::kernels
