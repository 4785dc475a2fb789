// Depthwise weight gradient: all taps of a channel are summed in registers along a row of the output's gradient, the
// rows one after another into sums of their own (so that errors grow with the height and the width, not their
// product), the lanes at the end of a slice.
#include "backend/cpu/kernels/depthwise.h"
#include "backend/cpu/kernels/depthwise_plane.h"
#include "backend/cpu/kernels/range.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

/// Output columns [first, last) have all taps.
struct Inside {
  int64_t first = 0, last = 0;
};

Inside inside_columns(const Depthwise& p) {
  const int64_t end = p.width - p.kernel + p.padding[1] >= 0 ? (p.width - p.kernel + p.padding[1]) / p.stride + 1 : 0;
  Inside inside{(p.padding[1] + p.stride - 1) / p.stride, end < p.out_width ? end : p.out_width};
  if (inside.first > inside.last) inside = {0, 0};
  return inside;
}

/// Adds the sums over one row of dy to `total`, for kRows rows of taps; x: the row of the first of them.
template <int kKernel, int kStride, int kRows>
BRISK_INLINE void add_row(const Depthwise& p, Inside inside, const float* x, const float* dy, Vec* total) {
  Vec sum[kRows][kKernel];
  BRISK_UNROLL for (int r = 0; r < kRows; ++r) { BRISK_UNROLL for (int k = 0; k < kKernel; ++k) sum[r][k] = zero(); }
  const int64_t row = p.width * kLanes;
  const auto add = [&](auto edge, int64_t j) __attribute__((always_inline)) {
    const Vec gradient = load(dy + j * kLanes);
    const int64_t column = j * kStride - p.padding[1];
    BRISK_UNROLL for (int r = 0; r < kRows; ++r) {
      BRISK_UNROLL for (int k = 0; k < kKernel; ++k) {
        sum[r][k] = fma(gradient, load_pixel<edge()>(x + r * row, column + k, p.width), sum[r][k]);
      }
    }
  };
  for (int64_t j = 0; j < inside.first; ++j) add(std::true_type(), j);
  for (int64_t j = inside.first; j < inside.last; ++j) add(std::false_type(), j);
  for (int64_t j = inside.last; j < p.out_width; ++j) add(std::true_type(), j);
  BRISK_UNROLL for (int r = 0; r < kRows; ++r) {
    BRISK_UNROLL for (int k = 0; k < kKernel; ++k) total[r * kKernel + k] += sum[r][k];
  }
}

template <int kKernel, int kStride>
BRISK_NOINLINE void add_plane(const Depthwise& p, Inside inside, const float* x, const float* dy, Vec* total) {
  constexpr bool kTogether = kKernel * kKernel + 2 <= (kLanes == 16 ? 32 : 16);  // all taps fit the registers
  const int64_t row = p.width * kLanes;
  for (int64_t i = 0; i < p.out_height; ++i, dy += p.out_width * kLanes) {
    const int64_t top = i * kStride - p.padding[0];
    if (kTogether && top >= 0 && top + kKernel <= p.height) {
      add_row<kKernel, kStride, kTogether ? kKernel : 1>(p, inside, x + top * row, dy, total);
      continue;
    }
    for (int64_t r = top < 0 ? -top : 0; r < kKernel && top + r < p.height; ++r) {
      add_row<kKernel, kStride, 1>(p, inside, x + (top + r) * row, dy, total + r * kKernel);
    }
  }
}

template <int kKernel, int kStride>
void channel_sums(const Depthwise& p, Range images, int64_t channel, const float* x, const float* dy, float* sums) {
  constexpr int kTaps = kKernel * kKernel, kPadded = (kTaps + 3) / 4 * 4;
  const Inside inside = inside_columns(p);
  Vec total[kPadded];
  for (Vec& sum : total) sum = zero();
  for (int64_t image = images.first; image < images.last; ++image) {
    const int64_t plane = image * p.channels + channel;
    Vec part[kTaps];
    for (Vec& sum : part) sum = zero();
    add_plane<kKernel, kStride>(p, inside, x + plane * p.height * p.width * kLanes,
                                dy + plane * p.out_height * p.out_width * kLanes, part);
    const Mask valid = first_lanes(valid_count(p.samples, p.images_per_block, image));
    for (int k = 0; k < kTaps; ++k) total[k] += keep(valid, part[k]);
  }
  alignas(64) float lanes_added[kPadded];
  for (int k = 0; k < kPadded; k += 4)
    store4(lanes_added + k, sum4(total[k], total[k + 1], total[k + 2], total[k + 3]));
  for (int k = 0; k < kTaps; ++k) sums[k] = lanes_added[k];
}

}  // namespace

void depthwise_weight_gradient(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const Depthwise*>(parameters);
  auto* partial = reinterpret_cast<float*>(operands.workspace + p.partial_at);
  with_kernel(p, [&](auto kernel, auto stride) {
    for (int64_t unit = first; unit < last; ++unit) {
      channel_sums<kernel(), stride()>(p, piece(p.images, p.slices, unit / p.channels), unit % p.channels,
                                       operands.input<float>(0), operands.input<float>(1),
                                       partial + unit * kernel() * kernel());
    }
  });
}

void depthwise_add_weight_slices(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const Depthwise*>(parameters);
  const int64_t taps = p.kernel * p.kernel;
  const bool add = p.accumulates && operands.run->accumulate;
  const auto* partial = reinterpret_cast<const float*>(operands.workspace + p.partial_at);
  auto* dw = operands.output<float>(0);
  for (int64_t at = first * taps; at < last * taps; ++at) {
    float sum = partial[at];
    for (int64_t slice = 1; slice < p.slices; ++slice) sum += partial[slice * p.channels * taps + at];
    dw[at] = add ? dw[at] + sum : sum;
  }
}

}  // namespace brisk::backend::cpu::BRISK_ISA
