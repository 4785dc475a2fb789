#include "backend/cpu/kernels/single.h"

#include <cmath>

#include "backend/cpu/kernels/functions.h"
#include "backend/cpu/kernels/pool.h"
#include "backend/cpu/kernels/range.h"
#include "backend/cpu/kernels/vector.h"

namespace brisk::backend::cpu::BRISK_ISA {
namespace {

constexpr int kTileVectors = tile_pixels(kLanes);
constexpr int64_t kTilePixels = int64_t{kTileVectors} * kLanes;

/// Calls body(i, lanes, mask of them) for the vectors of `count` floats; the last one may be partial.
template <class Body>
BRISK_INLINE void for_vectors(int64_t count, const Body& body) {
  for (int64_t i = 0; i < count; i += kLanes) body(i, first_lanes(count - i));
}

/// One column of taps of one phase of one channel: its rows, shifted and cut to the output's width.
void spread_rows(const SpreadImage& p, const float* image, int64_t column, int64_t rest, float* to) {
  const int64_t shift = column * p.dilation - p.padding[1];
  const auto inside = [&](int64_t h) { return h >= 0 && h < p.height; };
  if (p.stride[1] != 1) {
    for (int64_t q = 0; q < p.rows; ++q) {
      const int64_t h = q * p.stride[0] + rest - p.padding[0];
      const float* from = image + h * p.width;
      for (int64_t o = 0; o < p.out_width; ++o) {
        const int64_t w = o * p.stride[1] + shift;
        to[q * p.out_width + o] = inside(h) && w >= 0 && w < p.width ? from[w] : 0.0f;
      }
    }
    return;
  }
  for (int64_t o = 0; o < p.out_width; o += kLanes) {
    const Mask written = first_lanes(p.out_width - o);
    const Mask read = written & first_lanes(p.width - shift - o) & ~first_lanes(-shift - o);
    for (int64_t q = 0; q < p.rows; ++q) {
      const int64_t h = q * p.stride[0] + rest - p.padding[0];
      store(to + q * p.out_width + o, inside(h) ? load(image + h * p.width + o + shift, read) : zero(), written);
    }
  }
}

/// A tile to `y`, channels strides.y_channel apart.
BRISK_INLINE void run_tile(const SingleConv& p, const TapStrides& strides, const float* x, const float* weights,
                           const float* bias, const ChannelTile& tile, int vectors, float* y) {
  TapCall call;
  call.bias = bias ? bias + tile.first : nullptr;
  call.start = bias ? TileStart::bias : TileStart::zeros;
  call.y = y;
  call.columns = p.columns;
  const size_t phases = p.phases.size();
  for (size_t i = 0; i < phases; ++i) {
    const PhaseTaps& taps = p.phases.data()[i];
    call.x = x + tile.x + taps.x;
    call.w = weights + tile.w + taps.w;
    call.rows = taps.rows;
    call.activation = i + 1 == phases && p.activation == Activation::relu ? Activation::relu : Activation::none;
    find_tap_tile(tile.count, vectors)(strides, call);
    call.start = TileStart::previous;
  }
  if (p.activation != Activation::relu) activate_tile(strides, y, tile.count, vectors, p.activation);
}

/// kSingleOutputs outputs of kSamples samples, which share what is read of the weights. The bits do not depend on how
/// many samples go together.
template <int kSamples>
void dot_tile(const SingleLinear& p, const Operands& operands, Range outputs, int64_t sample) {
  // As many outputs at once as there are accumulators for.
  constexpr int kOutputs = kSamples == 1 ? 8 : 4;
  const float* x = operands.input<float>(0) + sample * p.features;
  const int64_t whole = p.features / kLanes * kLanes;
  const Mask rest = first_lanes(p.features - whole);
  alignas(64) float total[kSamples][kLanes] = {};
  for (int64_t part = 0; part < kSingleOutputs; part += kOutputs) {
    const float* w[kOutputs];
    for (int64_t o = 0; o < kOutputs; ++o) {
      const int64_t output = part + o < outputs.size() ? outputs.first + part + o : outputs.first;
      w[o] = operands.input<float>(1) + output * p.features;
    }
    Vec sum[kOutputs][kSamples];
    BRISK_UNROLL for (int o = 0; o < kOutputs; ++o) {
      BRISK_UNROLL for (int n = 0; n < kSamples; ++n) sum[o][n] = zero();
    }
    const auto add = [&](int64_t i, auto load_at) __attribute__((always_inline)) {
      Vec in[kSamples];
      BRISK_UNROLL for (int n = 0; n < kSamples; ++n) in[n] = load_at(x + n * p.features + i);
      BRISK_UNROLL for (int o = 0; o < kOutputs; ++o) {
        const Vec weight = load_at(w[o] + i);
        BRISK_UNROLL for (int n = 0; n < kSamples; ++n) sum[o][n] = fma(weight, in[n], sum[o][n]);
      }
    };
    for (int64_t i = 0; i < whole; i += kLanes) add(i, [](const float* from) { return load(from); });
    if (whole < p.features) add(whole, [rest](const float* from) { return load(from, rest); });
    BRISK_UNROLL for (int n = 0; n < kSamples; ++n) {
      BRISK_UNROLL for (int o = 0; o < kOutputs; o += 4)
          store4(total[n] + part + o, sum4(sum[o][n], sum[o + 1][n], sum[o + 2][n], sum[o + 3][n]));
    }
  }
  const Vec bias = p.bias ? load_first(operands.input<float>(2) + outputs.first, outputs.size()) : zero();
  for (int64_t n = 0; n < kSamples; ++n) {
    float* y = operands.output<float>(0) + (sample + n) * p.outputs + outputs.first;
    store_first(y, activate(load(total[n]) + bias, p.activation), outputs.size());
  }
}

/// A running maximum as max_pool has it: the first of equal ones, or the first NaN.
struct Best {
  float value;
  int32_t index;
  BRISK_INLINE void offer(float candidate, int32_t at) {
    const bool take = !(candidate <= value) & (value == value);
    value = take ? candidate : value;
    index = take ? at : index;
  }
};

/// 2 x 2 windows, two apart: a row of outputs.
void max_of_twos(const float* upper, const float* lower, int64_t count, int32_t at, int32_t width, float* y,
                 int32_t* index) {
  for (int64_t o = 0; o < count; ++o) {
    const auto first = at + static_cast<int32_t>(2 * o);
    Best best{upper[2 * o], first};
    best.offer(upper[2 * o + 1], first + 1);
    best.offer(lower[2 * o], first + width);
    best.offer(lower[2 * o + 1], first + width + 1);
    y[o] = best.value;
    index[o] = best.index;
  }
}

/// Calls body(input plane, first output, row of windows, column of windows) for the outputs of the units' planes.
template <class Body>
BRISK_INLINE void for_windows(const Pooling& p, const float* x, int64_t first, int64_t last, const Body& body) {
  const auto height = static_cast<int64_t>(p.rows.size()), width = static_cast<int64_t>(p.columns.size());
  for (int64_t unit = first; unit < last; ++unit) {
    const Range planes = stretch(p.planes, p.planes_per_unit, unit);
    for (int64_t plane = planes.first; plane < planes.last; ++plane) {
      for (int64_t h = 0; h < height; ++h) {
        for (int64_t w = 0; w < width; ++w)
          body(x + plane * p.height * p.width, (plane * height + h) * width + w, p.rows[h], p.columns[w]);
      }
    }
  }
}

}  // namespace

void spread_image(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const SpreadImage*>(parameters);
  const auto phases = static_cast<int64_t>(p.phases.size());
  auto* spread = reinterpret_cast<float*>(operands.workspace + p.at);
  for (int64_t channel = first; channel < last; ++channel) {
    const float* image = operands.input<float>(0) + channel * p.height * p.width;
    for (int64_t column = 0; column < p.columns; ++column) {
      for (int64_t k = 0; k < phases; ++k)
        spread_rows(p, image, column, p.phases[static_cast<size_t>(k)],
                    spread + channel * p.channel() + (column * phases + k) * p.rows * p.out_width);
    }
  }
}

void single_conv(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const SingleConv*>(parameters);
  const float* x = p.at < 0 ? operands.input<float>(0) : reinterpret_cast<const float*>(operands.workspace + p.at);
  const float* bias = p.bias ? operands.input<float>(2) : nullptr;
  alignas(64) float apart[kTileChannels * kTilePixels];
  TapStrides in_apart = p.strides;
  in_apart.y_channel = kTilePixels;
  for (int64_t unit = first; unit < last; ++unit) {
    const int64_t vectors = (p.pixels + kLanes - 1) / kLanes;
    const Range mine = piece(vectors, p.pixel_tiles, unit / p.tile_parts);
    const Range tiles = piece(static_cast<int64_t>(p.tiles.size()), p.tile_parts, unit % p.tile_parts);
    const int64_t pixel = mine.first * kLanes, count = p.pixels - pixel;
    for (int64_t t = tiles.first; t < tiles.last; ++t) {
      const ChannelTile& tile = p.tiles.data()[t];
      float* y = operands.output<float>(0) + tile.first * p.pixels + pixel;
      const bool whole = count >= mine.size() * kLanes;
      run_tile(p, whole ? p.strides : in_apart, x + pixel, operands.input<float>(1), bias, tile,
               static_cast<int>(mine.size()), whole ? y : apart);
      for (int64_t c = 0; !whole && c < tile.count; ++c) {
        for_vectors(
            count, [&](int64_t i, Mask mask) { store(y + c * p.pixels + i, load(apart + c * kTilePixels + i), mask); });
      }
    }
  }
}

void single_linear(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const SingleLinear*>(parameters);
  const int64_t tiles = (p.outputs + kSingleOutputs - 1) / kSingleOutputs;
  for (int64_t k = tiles * first / p.output_parts; k < tiles * last / p.output_parts; ++k) {
    const Range outputs = stretch(p.outputs, kSingleOutputs, k);
    int64_t n = 0;
    for (; n + 2 < p.samples; n += 3) dot_tile<3>(p, operands, outputs, n);
    if (n + 2 == p.samples) dot_tile<2>(p, operands, outputs, n);
    if (n + 1 == p.samples) dot_tile<1>(p, operands, outputs, n);
  }
}

void single_batch_norm_inference(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const SingleChannels*>(parameters);
  for (int64_t c = p.channels * first / p.parts; c < p.channels * last / p.parts; ++c) {
    const double variance = operands.input<float>(4)[c], gamma = operands.input<float>(1)[c];
    const Vec factor = set1(static_cast<float>(gamma / std::sqrt(variance + p.epsilon)));
    const Vec shift = set1(operands.input<float>(2)[c]), mean = set1(operands.input<float>(3)[c]);
    const float* x = operands.input<float>(0) + c * p.inner;
    const float* residual = p.residual ? operands.input<float>(5) + c * p.inner : nullptr;
    for_vectors(p.inner, [&](int64_t i, Mask mask) {
      Vec y = fma(load(x + i, mask) - mean, factor, shift);
      if (residual) y += load(residual + i, mask);
      store(operands.output<float>(0) + c * p.inner + i, activate(y, p.activation), mask);
    });
  }
}

void single_bias_add(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const SingleChannels*>(parameters);
  for (int64_t c = p.channels * first / p.parts; c < p.channels * last / p.parts; ++c) {
    const Vec bias = set1(operands.input<float>(1)[c]);
    const float* x = operands.input<float>(0) + c * p.inner;
    float* y = operands.output<float>(0) + c * p.inner;
    for_vectors(p.inner, [&](int64_t i, Mask mask) { store(y + i, load(x + i, mask) + bias, mask); });
  }
}

void single_max_pool(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const Pooling*>(parameters);
  const auto* x = operands.input<float>(0);
  auto* y = operands.output<float>(0);
  auto* index = operands.output<int32_t>(1);
  const auto height = static_cast<int64_t>(p.rows.size()), width = static_cast<int64_t>(p.columns.size());
  const auto row = static_cast<int32_t>(p.width);
  if (p.twos && (width < 2 || p.columns[1].first == 2)) {
    const Range planes{first * p.planes_per_unit,
                       last * p.planes_per_unit < p.planes ? last * p.planes_per_unit : p.planes};
    for (int64_t plane = planes.first; plane < planes.last; ++plane) {
      for (int64_t h = 0; h < height; ++h) {
        const int32_t at = p.rows[h].first * row;
        const float* upper = x + plane * p.height * p.width + at;
        const int64_t out = (plane * height + h) * width;
        max_of_twos(upper, upper + row, width, at, row, y + out, index + out);
      }
    }
    return;
  }
  for_windows(p, x, first, last, [&](const float* plane, int64_t out, WindowRange rows, WindowRange columns) {
    int32_t at = rows.first * row + columns.first;
    Best best{plane[at], at};
    for (int32_t h = rows.first; h < rows.last; ++h) {
      for (int32_t w = columns.first; w < columns.last; ++w) best.offer(plane[h * row + w], h * row + w);
    }
    y[out] = best.value;
    index[out] = best.index;
  });
}

void single_average_pool(const void* parameters, const Operands& operands, int64_t first, int64_t last) {
  const auto& p = *static_cast<const Pooling*>(parameters);
  auto* y = operands.output<float>(0);
  for_windows(p, operands.input<float>(0), first, last,
              [&](const float* plane, int64_t out, WindowRange rows, WindowRange columns) {
                float total = 0;
                for (int32_t h = rows.first; h < rows.last; ++h) {
                  for (int32_t w = columns.first; w < columns.last; ++w) total += plane[h * p.width + w];
                }
                y[out] = total / p.count;
              });
}

}  // namespace brisk::backend::cpu::BRISK_ISA
