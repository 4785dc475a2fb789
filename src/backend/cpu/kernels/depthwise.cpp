// Depthwise forward and input gradient: a run of pixels of one row stays in registers while the taps of each row of the
// kernel are added, and each input vector that is read serves all the taps it has. Rows that a kernel lacks are left
// out; columns that it lacks read zeros, in tiles at the edges only.
#include "backend/cpu/kernels/depthwise.h"

#include "backend/cpu/kernels/depthwise_plane.h"
#include "backend/cpu/kernels/tap_tile.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

constexpr int kTile = 8;  ///< accumulators

/// Rows of taps that one row of pixels has: the first lies at `from`, each further one `step` floats after.
struct TapRows {
  const float* from = nullptr;
  int64_t step = 0;
  const float* weights = nullptr;
  int64_t weight_step = 0;
  int64_t count = 0;
  int64_t width = 0;  ///< pixels of a row
};

/// Output pixels that begin with the one whose first tap is input column `column`.
template <int kKernel, int kStride, int kPixels, bool kEdge>
BRISK_INLINE void forward_tile(const TapRows& rows, int64_t column, float start, float* y) {
  Vec sum[kPixels];
  BRISK_UNROLL for (int j = 0; j < kPixels; ++j) sum[j] = set1(start);
  const float* from = rows.from;
  const float* weights = rows.weights;
  for (int64_t r = rows.count; r > 0; --r, from += rows.step, weights += rows.weight_step) {
    Vec weight[kKernel];
    BRISK_UNROLL for (int k = 0; k < kKernel; ++k) weight[k] = set1(weights[k]);
    BRISK_UNROLL for (int i = 0; i < (kPixels - 1) * kStride + kKernel; ++i) {
      const Vec in = load_pixel<kEdge>(from, column + i, rows.width);
      BRISK_UNROLL for (int k = 0; k < kKernel; ++k) {
        const int j = (i - k) / kStride;
        if (i >= k && (i - k) % kStride == 0 && j < kPixels) sum[j] = fma(weight[k], in, sum[j]);
      }
    }
  }
  BRISK_UNROLL for (int j = 0; j < kPixels; ++j) store(y + j * kLanes, sum[j]);
}

template <int kKernel, int kStride>
BRISK_NOINLINE void forward_plane(const Depthwise& p, const float* x, const float* weights, float bias, float* y) {
  const int64_t row = p.width * kLanes;
  for (int64_t i = 0; i < p.out_height; ++i, y += p.out_width * kLanes) {
    const int64_t top = i * kStride - p.padding[0];
    const int64_t first = top < 0 ? -top : 0, last = p.height - top < kKernel ? p.height - top : kKernel;
    const TapRows rows = {x + (top + first) * row, row, weights + first * kKernel, kKernel, last - first, p.width};
    for_tiles<kTile>(p.out_width, [&](auto pixels, int64_t j) {
      const int64_t column = j * kStride - p.padding[1];
      const bool inside = column >= 0 && column + (pixels() - 1) * kStride + kKernel <= p.width;
      inside ? forward_tile<kKernel, kStride, pixels(), false>(rows, column, bias, y + j * kLanes)
             : forward_tile<kKernel, kStride, pixels(), true>(rows, column, bias, y + j * kLanes);
    });
    TapStrides pixels;
    pixels.y_pixel = kLanes;
    activate_tile(pixels, y, 1, static_cast<int>(p.out_width), p.activation);
  }
}

/// Input pixel u - padding, u = kStride q + r, gets the gradient of output q - m through tap kStride m + r. A tile has
/// the pixels of kSteps values of q, from `first` on; `u` is its first pixel, which may lie on padding.
template <int kKernel, int kStride, int kSteps, bool kEdge>
BRISK_INLINE void gradient_tile(const TapRows& rows, int64_t first, int64_t pixel, int64_t pixels, float* dx) {
  constexpr int kReach = (kKernel - 1) / kStride;  // outputs before the first that still matter
  Vec sum[kSteps * kStride];
  BRISK_UNROLL for (int j = 0; j < kSteps * kStride; ++j) sum[j] = zero();
  const float* from = rows.from;
  const float* weights = rows.weights;
  for (int64_t r = rows.count; r > 0; --r, from += rows.step, weights += rows.weight_step) {
    Vec weight[kKernel];
    BRISK_UNROLL for (int k = 0; k < kKernel; ++k) weight[k] = set1(weights[k]);
    BRISK_UNROLL for (int i = 0; i < kSteps + kReach; ++i) {
      const Vec in = load_pixel<kEdge>(from, first - kReach + i, rows.width);
      BRISK_UNROLL for (int k = 0; k < kKernel; ++k) {
        const int q = i - kReach + k / kStride;
        if (q >= 0 && q < kSteps) {
          Vec& to = sum[q * kStride + k % kStride];
          to = fma(weight[k], in, to);
        }
      }
    }
  }
  BRISK_UNROLL for (int j = 0; j < kSteps * kStride; ++j) {
    const int64_t at = pixel + j;
    if (!kEdge || (at >= 0 && at < pixels)) store(dx + at * kLanes, sum[j]);
  }
}

template <int kKernel, int kStride>
BRISK_NOINLINE void gradient_plane(const Depthwise& p, const float* dy, const float* weights, float* dx) {
  constexpr int64_t kReach = (kKernel - 1) / kStride;
  const int64_t row = p.out_width * kLanes;
  const int64_t begin = p.padding[1] / kStride, end = (p.width - 1 + p.padding[1]) / kStride + 1;
  for (int64_t i = 0; i < p.height; ++i, dx += p.width * kLanes) {
    const int64_t q = (i + p.padding[0]) / kStride, r = (i + p.padding[0]) % kStride;
    const int64_t most = (kKernel - 1 - r) / kStride;  // m of the last tap
    const int64_t first = q - p.out_height + 1 > 0 ? q - p.out_height + 1 : 0, last = q < most ? q : most;
    const TapRows rows = {dy + (q - first) * row,
                          -row,
                          weights + (r + first * kStride) * kKernel,
                          kStride * kKernel,
                          last < first ? 0 : last - first + 1,
                          p.out_width};
    for_tiles<kTile / kStride>(end - begin, [&](auto steps, int64_t at) {
      const int64_t tile = begin + at, pixel = tile * kStride - p.padding[1];
      const bool inside =
          tile >= kReach && tile + steps() <= p.out_width && pixel >= 0 && pixel + steps() * kStride <= p.width;
      inside ? gradient_tile<kKernel, kStride, steps(), false>(rows, tile, pixel, p.width, dx)
             : gradient_tile<kKernel, kStride, steps(), true>(rows, tile, pixel, p.width, dx);
    });
  }
}

}  // namespace

void depthwise(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const Depthwise*>(parameters);
  const int64_t from = p.height * p.width * kLanes, to = p.out_height * p.out_width * kLanes;
  with_kernel(p, [&](auto kernel, auto stride) {
    for (int64_t plane = first; plane < last; ++plane) {
      const int64_t channel = plane % p.channels;
      forward_plane<kernel(), stride()>(
          p, operands.input<float>(0) + plane * from, operands.input<float>(1) + channel * kernel() * kernel(),
          p.bias ? operands.input<float>(2)[channel] : 0.0f, operands.output<float>(0) + plane * to);
    }
  });
}

void depthwise_input_gradient(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const Depthwise*>(parameters);
  const int64_t from = p.out_height * p.out_width * kLanes, to = p.height * p.width * kLanes;
  with_kernel(p, [&](auto kernel, auto stride) {
    for (int64_t plane = first; plane < last; ++plane) {
      gradient_plane<kernel(), stride()>(p, operands.input<float>(0) + plane * from,
                                         operands.input<float>(1) + plane % p.channels * kernel() * kernel(),
                                         operands.output<float>(0) + plane * to);
    }
  });
}

}  // namespace brisk::backend::cpu::BRISK_ISA
