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

struct ConvTranspose2dOptions {
  bool bias = true;      ///< adds one number a channel
  int64_t channels = 0;  ///< of the output; required
  Size2 dilation = 1;    ///< distance of neighbouring taps, in elements; at least 1
  int64_t groups = 1;    ///< divides input and output channels; group i of the output sees group i of the input only
  Size2 kernel = 0;      ///< height and width of the window; required
  std::string name{};    ///< empty: conv_transpose1, conv_transpose2, ... in its scope
  Size2 output_padding = 0;  ///< rows and columns that the output has more; less than the stride
  Size2 padding = 0;         ///< rows and columns taken from each side of the output
  Size2 stride = 1;          ///< distance of neighbouring windows in the output; at least 1
};

/// Each pixel adds its multiple of a learnt kernel to a window of the output: the gradient of conv2d as a layer, which
/// enlarges images. x: [N, in, height, width] f32. Returns [N, channels, h, w] with h = (height - 1) stride - 2 padding
/// + dilation (kernel - 1) + output_padding + 1 (PyTorch's ConvTranspose2d, but for an output_padding between stride
/// and dilation, which is refused). Parameters "weight" ([in, channels / groups, kernel height, kernel width] to users
/// and in files) and "bias" begin uniform in +-1 / sqrt(channels / groups x kernel height x kernel width), as in
/// PyTorch. Throws Error [option] for an option out of range, Error [shape] when x is no image.
BRISK_EXPORT Var conv_transpose2d(Var x, ConvTranspose2dOptions options, Where where = Where::here());

}  // namespace brisk
