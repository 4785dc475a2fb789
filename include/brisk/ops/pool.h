// brisk/ops/pool.h: pooling and resizing of images.
#pragma once

#include <cstdint>

#include "brisk/model.h"
#include "brisk/ops/size2.h"

namespace brisk {

struct Pool2dOptions {
  Size2 kernel = 0;   ///< height and width of the window; required
  Size2 padding = 0;  ///< rows above and below, columns left and right; at most half of the kernel
  Size2 stride = 0;   ///< distance of neighbouring windows; 0: the kernel, so that windows lie side by side
};

/// The largest element of each window; padding is never chosen, NaN always is, of equals the first gets the gradient.
/// x: [N, channels, height, width] f32. Returns [N, channels, h, w] with h = floor((height + 2 padding - kernel) /
/// stride) + 1.
BRISK_EXPORT Var max_pool2d(Var x, Pool2dOptions options, Where where = Where::here());
/// The mean of each window; padding counts as zeros, as in PyTorch. Shapes as for max_pool2d.
BRISK_EXPORT Var avg_pool2d(Var x, Pool2dOptions options, Where where = Where::here());
/// The mean of each channel's image. x: [N, channels, height, width] f32. Returns [N, channels].
BRISK_EXPORT Var global_avg_pool2d(Var x, Where where = Where::here());

enum class ResizeMode : uint8_t {
  nearest,  ///< each pixel is one of the input's: floor(i x input size / output size)
  bilinear  ///< the weighted mean of the four nearest
};

struct Resize2dOptions {
  bool align_corners = false;  ///< bilinear: the corners' centres lie on one another, not the images' borders
  ResizeMode mode = ResizeMode::nearest;
  double scale = 0;  ///< output's height and width / input's, rounded down; 0: by size
  Size2 size = 0;    ///< height and width of the output; 0: by scale
};

/// Enlarges or reduces images by PyTorch's rules (interpolate; a bilinear reduction reads four pixels, it does not
/// average). x: [N, channels, height, width] f32. Returns [N, channels, size]. Throws Error [option] unless exactly one
/// of size and scale is given.
BRISK_EXPORT Var resize2d(Var x, Resize2dOptions options, Where where = Where::here());

}  // namespace brisk
