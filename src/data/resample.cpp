// Resampling, first down, then across, with sums in a fixed order: the same bits from every compiler.
#include "data/resample.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace brisk::data {
namespace {

// How far the filter reaches: it widens where the image shrinks.
double reach(double length, int64_t wanted) { return std::max(length / static_cast<double>(wanted), 1.0); }

using Quad = float __attribute__((vector_size(16)));

// Sum of weights x pixels, three channels at a time; the fourth lane belongs to the next pixel and is not used.
inline Quad blend(const float* pixels, const float* weights, int64_t count) {
  Quad sum = {};
  for (int64_t k = 0; k < count; ++k) {
    Quad pixel;
    std::memcpy(&pixel, pixels + 3 * k, sizeof(pixel));
    sum += pixel * weights[k];
  }
  return sum;
}

inline void store(float value, uint8_t* to) { *to = static_cast<uint8_t>(value + 0.5f); }
inline void store(float value, float* to) { *to = value * (1.0f / 255); }

}  // namespace

Extent needed(double start, double length, int64_t wanted, int64_t size) {
  const double margin = reach(length, wanted) + 1;
  const int64_t first = static_cast<int64_t>(std::floor(start - margin));
  const int64_t last = static_cast<int64_t>(std::ceil(start + length + margin));
  return {std::clamp<int64_t>(first, 0, size - 1), std::clamp<int64_t>(last, 1, size)};
}

void Resampler::Taps::set(double start, double length, int64_t wanted, const Extent& extent) {
  const double scale = length / static_cast<double>(wanted);
  const double support = reach(length, wanted);
  most = 2 * static_cast<int64_t>(std::ceil(support)) + 1;
  first.resize(static_cast<size_t>(wanted));
  count.resize(static_cast<size_t>(wanted));
  weights.resize(static_cast<size_t>(wanted * most));
  for (int64_t i = 0; i < wanted; ++i) {
    const double center = start + (static_cast<double>(i) + 0.5) * scale;
    const int64_t low =
        std::clamp(static_cast<int64_t>(std::floor(center - support + 0.5)), extent.first, extent.last - 1);
    const int64_t high = std::clamp(static_cast<int64_t>(std::floor(center + support + 0.5)), low + 1, extent.last);
    float* const w = weights.data() + i * most;
    double sum = 0;
    for (int64_t k = low; k < high; ++k) {
      sum += std::max(1 - std::abs(static_cast<double>(k) + 0.5 - center) / support, 0.0);
    }
    for (int64_t k = low; k < high; ++k) {
      const double weight = std::max(1 - std::abs(static_cast<double>(k) + 0.5 - center) / support, 0.0);
      w[k - low] = sum > 0 ? static_cast<float>(weight / sum) : static_cast<float>(k == low);
    }
    first[static_cast<size_t>(i)] = low - extent.first;
    count[static_cast<size_t>(i)] = high - low;
  }
}

template <class T>
void Resampler::rows(const Pixels& from, const ResampleOptions& options, int64_t height, int64_t width, T* out) {
  const int64_t values = from.columns.size() * 3;
  row_.resize(static_cast<size_t>(values) + 1);  // one more for the last pixel's fourth lane
  float* const row = row_.data();
  const int64_t pixel_step = options.channels_first ? 1 : 3;
  const int64_t channel_step = options.channels_first ? height * width : 1;
  for (int64_t y = 0; y < height; ++y) {
    const uint8_t* source = from.data + down_.first[static_cast<size_t>(y)] * from.row_bytes;
    const float* weights = down_.weights.data() + y * down_.most;
    const int64_t count = down_.count[static_cast<size_t>(y)];
    for (int64_t i = 0; i < values; ++i) row[i] = weights[0] * static_cast<float>(source[i]);
    for (int64_t k = 1; k < count; ++k) {
      source += from.row_bytes;
      for (int64_t i = 0; i < values; ++i) row[i] += weights[k] * static_cast<float>(source[i]);
    }
    for (int64_t x = 0; x < width; ++x) {
      const Quad pixel = blend(row + across_.first[static_cast<size_t>(x)] * 3,
                               across_.weights.data() + x * across_.most, across_.count[static_cast<size_t>(x)]);
      T* const to = out + (y * width + (options.mirrored ? width - 1 - x : x)) * pixel_step;
      for (int c = 0; c < 3; ++c) store(pixel[c], to + c * channel_step);
    }
  }
}

void Resampler::run(const Pixels& from, const Region& region, const ResampleOptions& options, View out) {
  const int64_t height = out.dim(options.channels_first ? 1 : 0), width = out.dim(options.channels_first ? 2 : 1);
  across_.set(region.left, region.width, width, from.columns);
  down_.set(region.top, region.height, height, from.rows);
  if (out.dtype() == DType::u8) {
    rows(from, options, height, width, out.data<uint8_t>());
  } else {
    rows(from, options, height, width, out.data<float>());
  }
}

}  // namespace brisk::data
