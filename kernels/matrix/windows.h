// Operands of convolutions (matrix_operand.h says what an operand is), gathered while they are copied.
//   WindowRows      the windows of images as the rows of a matrix [pixels, taps x channels], along k = taps x channels
//   WindowColumns   the same matrix, k = pixels
//   TapRows         weights as a matrix [taps x out channels, channels], k = taps x out channels
#pragma once

#include "kernels/matrix/tile.h"

namespace brisk::kernels {

/// A pixel's window begins at (h, w) of an image.
struct WindowStart {
  int image, h, w;
};
/// One element of a window, counted from its begin.
struct WindowTap {
  int h, w, channel;
};

/// Windows of images [images, height, width, channels]: pixel (image, i, j) sees rows i pixel_step + first + a
/// tap_step, tap a = 0, 1, ..., and columns likewise.
template <class T>
struct Windows {
  const T* data;
  int channels, height, width;
  int pixels;                     ///< of all images
  int elements;                   ///< of a window: taps x channels
  FastDivide by_image, by_row;    ///< pixels of an image, of a row of pixels
  FastDivide by_tap, by_tap_row;  ///< channels; taps of a row of taps
  int pixel_step[2], first[2], tap_step[2];
  int unit;

  __device__ __forceinline__ WindowStart start(int pixel) const {
    const int image = by_image.quotient(pixel), rest = pixel - image * by_image.divisor;
    const int i = by_row.quotient(rest), j = rest - i * by_row.divisor;
    return {image, i * pixel_step[0] + first[0], j * pixel_step[1] + first[1]};
  }
  __device__ __forceinline__ WindowTap tap(int element) const {
    const int index = by_tap.quotient(element), a = by_tap_row.quotient(index), b = index - a * by_tap_row.divisor;
    return {a * tap_step[0], b * tap_step[1], element - index * by_tap.divisor};
  }
  /// In pixels of all images: they are fewer than 2^31.
  __device__ __forceinline__ int offset(const WindowStart& s) const { return (s.image * height + s.h) * width + s.w; }
  __device__ __forceinline__ const T* element(int offset, const WindowTap& tap) const {
    return data + (int64_t{offset + tap.h * width + tap.w} * channels + tap.channel);
  }
  __device__ __forceinline__ bool inside(int h, int w) const {
    return static_cast<unsigned>(h) < static_cast<unsigned>(height) &&
           static_cast<unsigned>(w) < static_cast<unsigned>(width);
  }
};

template <class Element, int kExtent, int kThreads, bool kAligned>
class WindowRows {
 public:
  using T = Element;
  static constexpr bool kAlongK = true;
  using Parameters = Windows<T>;

  __device__ __forceinline__ WindowRows(const Parameters& parameters, int origin) : p_(parameters) {
#pragma unroll
    for (int j = 0; j < Shares::kCount; ++j) {
      const int pixel = origin + Shares::first_row() + j * Shares::kRowStep;
      const WindowStart start = p_.start(min(pixel, p_.pixels - 1));
      h_[j] = pixel < p_.pixels ? start.h : kOutside;
      w_[j] = start.w;
      offset_[j] = p_.offset(start);
    }
  }

  __device__ __forceinline__ void copy(T* tile, int k0) const {
    const int first = k0 + Shares::element();
#pragma unroll
    for (int j = 0; j < Shares::kCount; ++j) {
      copy_chunk<kAligned>(Shares::place(tile, j), p_.unit, p_.data, [&](int e) -> const T* {
        if (first + e >= p_.elements) return nullptr;
        const WindowTap tap = p_.tap(first + e);
        return p_.inside(h_[j] + tap.h, w_[j] + tap.w) ? p_.element(offset_[j], tap) : nullptr;
      });
    }
  }

 private:
  using Shares = Share<T, kExtent, kThreads, kAlongK>;
  static constexpr int kOutside = -(1 << 30);  ///< a row which no tap brings into the image
  const Parameters& p_;
  int h_[Shares::kCount], w_[Shares::kCount];
  int offset_[Shares::kCount];
};

template <class Element, int kExtent, int kThreads, bool kAligned>
class WindowColumns {
 public:
  using T = Element;
  static constexpr bool kAlongK = false;
  using Parameters = Windows<T>;

  __device__ __forceinline__ WindowColumns(const Parameters& parameters, int origin)
      : p_(parameters), element_(origin + Shares::element()) {}

  __device__ __forceinline__ void copy(T* tile, int k0) const {
#pragma unroll
    for (int j = 0; j < Shares::kCount; ++j) {
      const int pixel = k0 + Shares::first_row() + j * Shares::kRowStep;
      const WindowStart start = p_.start(min(pixel, p_.pixels - 1));
      const int offset = p_.offset(start);
      copy_chunk<kAligned>(Shares::place(tile, j), p_.unit, p_.data, [&](int e) -> const T* {
        if (pixel >= p_.pixels || element_ + e >= p_.elements) return nullptr;
        const WindowTap tap = p_.tap(element_ + e);
        return p_.inside(start.h + tap.h, start.w + tap.w) ? p_.element(offset, tap) : nullptr;
      });
    }
  }

 private:
  using Shares = Share<T, kExtent, kThreads, kAlongK>;
  const Parameters& p_;
  int element_;
};

/// Of weights [out channels, taps, channels], the taps first + a step[0] + b step[1].
template <class T>
struct Taps {
  const T* data;
  int channels, taps;
  int k;                          ///< chosen taps x out channels
  FastDivide by_tap, by_tap_row;  ///< out channels; chosen taps of a row of taps
  int first, step[2];
  int unit;
};

template <class Element, int kExtent, int kThreads, bool kAligned>
class TapRows {
 public:
  using T = Element;
  static constexpr bool kAlongK = false;
  using Parameters = Taps<T>;

  __device__ __forceinline__ TapRows(const Parameters& parameters, int origin)
      : p_(parameters), column_(origin + Shares::element()) {}

  __device__ __forceinline__ void copy(T* tile, int k0) const {
#pragma unroll
    for (int j = 0; j < Shares::kCount; ++j) {
      const int k = k0 + Shares::first_row() + j * Shares::kRowStep;
      const int index = p_.by_tap.quotient(k), a = p_.by_tap_row.quotient(index), b = index - a * p_.by_tap_row.divisor;
      const int tap = p_.first + a * p_.step[0] + b * p_.step[1];
      const T* line = p_.data + (int64_t{k - index * p_.by_tap.divisor} * p_.taps + tap) * p_.channels + column_;
      copy_chunk<kAligned>(Shares::place(tile, j), p_.unit, p_.data,
                           [&](int e) { return k < p_.k && column_ + e < p_.channels ? line + e : nullptr; });
    }
  }

 private:
  using Shares = Share<T, kExtent, kThreads, kAlongK>;
  const Parameters& p_;
  int column_;
};

}  // namespace brisk::kernels
