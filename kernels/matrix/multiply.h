// What a thread multiplies of a tile in shared memory, and where its part of the product lies.
//   TensorCores   f16, bf16: mma.sync m16n8k16 on fragments of ldmatrix, a warp computes kWarpM x kWarpN
//   Lanes         f32: each thread 8 x 8 by fused multiply-add
// fetch(buffer, step) reads the operands of a step of k into registers, multiply(buffer) adds their product; spill
// hands the sums to put(row, column, sums...): one, or two neighbours of a row.
#pragma once

#include "kernels/common/mma.h"
#include "kernels/matrix/tile.h"

namespace brisk::kernels {

template <class Element, int kRows, int kColumns, int kWarpM, int kWarpN, bool kARows, bool kBRows>
class TensorCores {
 public:
  using T = Element;
  static constexpr int kM = kRows, kN = kColumns;
  static constexpr int kThreads = kM / kWarpM * (kN / kWarpN) * 32;
  static constexpr int kSteps = 2;    ///< of 16, in a tile's extent along k
  static constexpr int kBuffers = 2;  ///< fragments of the next step are read while this one's are multiplied

  __device__ __forceinline__ TensorCores() {
#pragma unroll
    for (int i = 0; i < kMmaM; ++i) {
#pragma unroll
      for (int j = 0; j < kMmaN; ++j) {
#pragma unroll
        for (int r = 0; r < 4; ++r) sum_[i][j][r] = 0;
      }
    }
  }

  __device__ __forceinline__ void fetch(int buffer, const T* a, const T* b, int step) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < kMmaM; ++i) {
      const int m = warp_m() * kWarpM + i * 16;
      if constexpr (kARows) {
        ldmatrix_x4(a_[buffer][i], a + swizzle<4>(m + lane % 16, step * 2 + lane / 16) * 8);
      } else {
        ldmatrix_x4_trans(a_[buffer][i],
                          a + swizzle<kM / 8>(step * 16 + lane % 8 + lane / 16 * 8, m / 8 + lane / 8 % 2) * 8);
      }
    }
#pragma unroll
    for (int j = 0; j < kMmaN; j += 2) {
      const int n = warp_n() * kWarpN + j * 8;
      uint32_t pair[4];
      if constexpr (kBRows) {
        ldmatrix_x4(pair, b + swizzle<4>(n + lane % 8 + lane / 16 * 8, step * 2 + lane / 8 % 2) * 8);
      } else {
        ldmatrix_x4_trans(pair, b + swizzle<kN / 8>(step * 16 + lane % 16, n / 8 + lane / 16) * 8);
      }
      b_[buffer][j][0] = pair[0], b_[buffer][j][1] = pair[1];
      b_[buffer][j + 1][0] = pair[2], b_[buffer][j + 1][1] = pair[3];
    }
  }

  __device__ __forceinline__ void multiply(int buffer) {
#pragma unroll
    for (int i = 0; i < kMmaM; ++i) {
#pragma unroll
      for (int j = 0; j < kMmaN; ++j) mma_m16n8k16(T(), sum_[i][j], a_[buffer][i], b_[buffer][j], sum_[i][j]);
    }
  }

  template <class Put>
  __device__ __forceinline__ void spill(Put put) const {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < kMmaM; ++i) {
#pragma unroll
      for (int j = 0; j < kMmaN; ++j) {
        const int row = warp_m() * kWarpM + i * 16 + lane / 4, column = warp_n() * kWarpN + j * 8 + lane % 4 * 2;
        put(row, column, sum_[i][j][0], sum_[i][j][1]);
        put(row + 8, column, sum_[i][j][2], sum_[i][j][3]);
      }
    }
  }

 private:
  static constexpr int kMmaM = kWarpM / 16, kMmaN = kWarpN / 8;
  static __device__ __forceinline__ int warp_m() { return static_cast<int>(threadIdx.x) / 32 / (kN / kWarpN); }
  static __device__ __forceinline__ int warp_n() { return static_cast<int>(threadIdx.x) / 32 % (kN / kWarpN); }

  float sum_[kMmaM][kMmaN][4];
  uint32_t a_[kBuffers][kMmaM][4], b_[kBuffers][kMmaN][2];
};

/// 16 x 8 threads. A thread's rows (and columns) are every 16th (8th) where the operand lies along k, else fours of
/// neighbours: what it reads at once is 16 bytes either way, and eight threads read eight lines of banks or the same.
template <bool kARows, bool kBRows>
class Lanes {
 public:
  using T = float;
  static constexpr int kM = 128, kN = 64, kThreads = 128;
  static constexpr int kSteps = 4;  ///< of 4, in a tile's extent along k
  static constexpr int kBuffers = 1;

  __device__ __forceinline__ Lanes() {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j) sum_[i][j] = 0;
    }
  }

  __device__ __forceinline__ void fetch(int, const float* a, const float* b, int step) {
    read<kARows, kM>(a_, a, lane_m(), step);
    read<kBRows, kN>(b_, b, lane_n(), step);
  }

  __device__ __forceinline__ void multiply(int) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 8; ++j) sum_[i][j] += a_[i][k] * b_[j][k];
      }
    }
  }

  template <class Put>
  __device__ __forceinline__ void spill(Put put) const {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
#pragma unroll
      for (int j = 0; j < 8; ++j) put(place<kARows, kM>(lane_m(), i), place<kBRows, kN>(lane_n(), j), sum_[i][j]);
    }
  }

 private:
  static __device__ __forceinline__ int lane_m() { return static_cast<int>(threadIdx.x) / 8; }
  static __device__ __forceinline__ int lane_n() { return static_cast<int>(threadIdx.x) % 8; }

  template <bool kAlongK, int kExtent>
  static __device__ __forceinline__ int place(int lane, int i) {
    return kAlongK ? lane + i * (kExtent / 8) : i / 4 * (kExtent / 2) + lane * 4 + i % 4;
  }
  template <bool kAlongK, int kExtent>
  static __device__ __forceinline__ void read(float (&to)[8][4], const float* tile, int lane, int step) {
    if constexpr (kAlongK) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const Pack<float, 4> four = load<4>(tile + swizzle<4>(lane + i * (kExtent / 8), step) * 4);
#pragma unroll
        for (int k = 0; k < 4; ++k) to[i][k] = four.element[k];
      }
    } else {
#pragma unroll
      for (int k = 0; k < 4; ++k) {
#pragma unroll
        for (int i = 0; i < 8; i += 4) {
          const int chunk = lane + i / 4 * (kExtent / 8);
          const Pack<float, 4> four = load<4>(tile + swizzle<kExtent / 4>(step * 4 + k, chunk) * 4);
#pragma unroll
          for (int e = 0; e < 4; ++e) to[i + e][k] = four.element[e];
        }
      }
    }
  }

  float sum_[8][8];
  float a_[8][4], b_[8][4];
};

}  // namespace brisk::kernels
