// Resampling, first down, then across, with sums in a fixed order: the same bits from every compiler. SSE2 is part of
// every x86-64 processor.
#include "data/resample.h"

#include <emmintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace brisk::data {
namespace {

constexpr int64_t kAtOnce = 16;  // values of the pass down
static_assert(kAtOnce <= Pixels::kReadableBehind);

// How far the filter reaches: it widens where the image shrinks.
double reach(double length, int64_t wanted) { return std::max(length / static_cast<double>(wanted), 1.0); }

double weight_at(int64_t line, double center, double support) {
  return std::max(1 - std::abs(static_cast<double>(line) + 0.5 - center) / support, 0.0);
}

// Sums of weights x rows. kCount: the number of rows, 0 when it is `count`.
template <int kCount>
void blend_rows(const uint8_t* from, int64_t row_bytes, const float* weights, int64_t count, int64_t values,
                float* to) {
  const __m128i zero = _mm_setzero_si128();
  for (int64_t i = 0; i < values; i += kAtOnce) {
    __m128 sum[4] = {};
    for (int64_t k = 0; k < (kCount > 0 ? kCount : count); ++k) {
      const __m128 weight = _mm_set1_ps(weights[k]);
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + k * row_bytes + i));
      const __m128i half[2] = {_mm_unpacklo_epi8(bytes, zero), _mm_unpackhi_epi8(bytes, zero)};
      for (int h = 0; h < 2; ++h) {
        const __m128 low = _mm_cvtepi32_ps(_mm_unpacklo_epi16(half[h], zero));
        const __m128 high = _mm_cvtepi32_ps(_mm_unpackhi_epi16(half[h], zero));
        sum[2 * h] = _mm_add_ps(sum[2 * h], _mm_mul_ps(low, weight));
        sum[2 * h + 1] = _mm_add_ps(sum[2 * h + 1], _mm_mul_ps(high, weight));
      }
    }
    for (int q = 0; q < 4; ++q) _mm_storeu_ps(to + i + 4 * q, sum[q]);
  }
}

// Sums of weights x pixels of one row, three channels at a time; the fourth lane belongs to the next pixel and counts
// for nothing.
template <int kCount, class Store>
void blend_columns(const float* row, const Resampler::Taps& taps, int64_t width, const Store& store) {
  const float* weights = taps.weights.data();
  const int64_t count = kCount > 0 ? kCount : taps.count;
  for (int64_t x = 0; x < width; ++x, weights += count) {
    const float* pixels = row + taps.first[static_cast<size_t>(x)] * 3;
    __m128 sum = _mm_setzero_ps();
    for (int64_t k = 0; k < count; ++k) {
      sum = _mm_add_ps(sum, _mm_mul_ps(_mm_loadu_ps(pixels + 3 * k), _mm_set1_ps(weights[k])));
    }
    store(x, sum);
  }
}

template <class F>
void with_count(int64_t count, const F& f) {
  switch (count) {
    case 2:
      return f(std::integral_constant<int, 2>());
    case 3:
      return f(std::integral_constant<int, 3>());
    case 4:
      return f(std::integral_constant<int, 4>());
    default:
      return f(std::integral_constant<int, 0>());
  }
}

// Rounded bytes of the three channels.
uint32_t bytes_of(__m128 pixel) {
  const __m128i whole = _mm_cvttps_epi32(_mm_add_ps(pixel, _mm_set1_ps(0.5f)));
  const __m128i words = _mm_packs_epi32(whole, whole);
  return static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_packus_epi16(words, words)));
}

void put(uint32_t bytes, int64_t step, uint8_t* to) {
  for (int c = 0; c < 3; ++c) to[c * step] = static_cast<uint8_t>(bytes >> (8 * c));
}

void put(__m128 pixel, int64_t step, float* to) {
  alignas(16) float values[4];
  _mm_store_ps(values, _mm_mul_ps(pixel, _mm_set1_ps(1.0f / 255)));
  for (int c = 0; c < 3; ++c) to[c * step] = values[c];
}

}  // namespace

Extent needed(double start, double length, int64_t wanted, int64_t size) {
  const double margin = reach(length, wanted) + 1;
  const int64_t first = static_cast<int64_t>(std::floor(start - margin));
  const int64_t last = static_cast<int64_t>(std::ceil(start + length + margin));
  return {std::clamp<int64_t>(first, 0, size - 1), std::clamp<int64_t>(last, 1, size)};
}

void Resampler::Taps::set(double start, double length, int64_t wanted, const Extent& extent, bool mirrored) {
  const double scale = length / static_cast<double>(wanted);
  const double support = reach(length, wanted);
  count = std::min(static_cast<int64_t>(std::ceil(2 * support)), extent.size());
  first.resize(static_cast<size_t>(wanted));
  weights.resize(static_cast<size_t>(wanted * count));
  for (int64_t i = 0; i < wanted; ++i) {
    const double center = start + (static_cast<double>(mirrored ? wanted - 1 - i : i) + 0.5) * scale;
    const int64_t low =
        std::clamp(static_cast<int64_t>(std::floor(center - support + 0.5)), extent.first, extent.last - count);
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) sum += weight_at(low + k, center, support);
    for (int64_t k = 0; k < count; ++k) {
      weights[static_cast<size_t>(i * count + k)] = static_cast<float>(weight_at(low + k, center, support) / sum);
    }
    first[static_cast<size_t>(i)] = low - extent.first;
  }
}

void Resampler::run(const Pixels& from, const Region& region, const ResampleOptions& options, View out) {
  const int64_t height = out.dim(options.channels_first ? 1 : 0), width = out.dim(options.channels_first ? 2 : 1);
  across_.set(region.left, region.width, width, from.columns, options.mirrored);
  down_.set(region.top, region.height, height, from.rows, false);
  const int64_t values = from.columns.size() * 3;
  row_.resize(static_cast<size_t>(values + kAtOnce));
  const int64_t pixel_step = options.channels_first ? 1 : 3;
  const int64_t channel_step = options.channels_first ? height * width : 1;
  const auto columns = [&](const auto& store) {
    with_count(across_.count, [&](auto count) { blend_columns<count.value>(row_.data(), across_, width, store); });
  };
  for (int64_t y = 0; y < height; ++y) {
    const uint8_t* rows = from.data + down_.first[static_cast<size_t>(y)] * from.row_bytes;
    const float* weights = down_.weights.data() + y * down_.count;
    with_count(down_.count, [&](auto count) {
      blend_rows<count.value>(rows, from.row_bytes, weights, down_.count, values, row_.data());
    });
    const int64_t row = y * width * pixel_step;
    if (out.dtype() == DType::f32) {
      float* const to = out.data<float>() + row;
      columns([&](int64_t x, __m128 pixel) { put(pixel, channel_step, to + x * pixel_step); });
    } else if (options.channels_first) {
      uint8_t* const to = out.data<uint8_t>() + row;
      columns([&](int64_t x, __m128 pixel) { put(bytes_of(pixel), channel_step, to + x); });
    } else {
      uint8_t* const to = out.data<uint8_t>() + row;
      // Four bytes at once; the fourth is overwritten by the next pixel, which the last one has not.
      columns([&](int64_t x, __m128 pixel) {
        const uint32_t bytes = bytes_of(pixel);
        if (x + 1 < width) {
          std::memcpy(to + 3 * x, &bytes, sizeof(bytes));
        } else {
          put(bytes, 1, to + 3 * x);
        }
      });
    }
  }
}

}  // namespace brisk::data
