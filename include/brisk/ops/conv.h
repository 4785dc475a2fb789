// brisk/ops/conv.h: convolution layers.
#pragma once

#include <cstdint>
#include <string>

#include "brisk/model.h"
#include "brisk/ops/size2.h"

namespace brisk {

struct Conv2dOptions {
  bool bias = true;      ///< adds one number a channel
  int64_t channels = 0;  ///< of the output; required
  Size2 dilation = 1;    ///< distance of neighbouring taps, in elements; at least 1
  int64_t groups = 1;    ///< divides input and output channels; group i of the output sees group i of the input only
  Size2 kernel = 0;      ///< height and width of the window; required
  std::string name{};    ///< empty: conv1, conv2, ... in its scope
  Size2 padding = 0;     ///< zeros put around the image: rows above and below, columns left and right
  Size2 stride = 1;      ///< distance of neighbouring windows, in elements; at least 1
};

/// Cross-correlation of images with a learnt kernel. x: [N, in, height, width] f32. Returns [N, channels, h, w] with
/// h = floor((height + 2 padding - dilation (kernel - 1) - 1) / stride) + 1.
/// Parameters "weight" ([channels, in / groups, kernel height, kernel width] to users and in files) and "bias" begin
/// uniform in +-1 / sqrt(in / groups x kernel height x kernel width), as in PyTorch. Throws Error [option] for an
/// option out of range, Error [shape] when x is no image or smaller than the kernel.
BRISK_EXPORT Var conv2d(Var x, Conv2dOptions options, Where where = Where::here());

}  // namespace brisk
