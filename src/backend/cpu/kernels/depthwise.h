// Depthwise convolutions: one filter a channel, so that each plane of vectors of samples, [height][width][lanes], is
// convolved alone. Kernels of 3 x 3 and 5 x 5 taps and strides of 1 and 2 are compiled in; the same for both axes.
#pragma once

#include "backend/cpu/kernels/activation.h"
#include "backend/cpu/kernels/declare.h"

namespace brisk::backend::cpu {

/// Sizes as the forward convolution sees them. Weights: [channels][kernel][kernel].
struct Depthwise {
  int64_t kernel = 3, stride = 1;
  int64_t padding[2] = {0, 0};
  int64_t samples = 0, images_per_block = 1;
  int64_t images = 0, channels = 0;
  int64_t height = 0, width = 0, out_height = 0, out_width = 0;
  bool bias = false;  ///< input 2 of the forward convolution
  Activation activation = Activation::none;
  int64_t slices = 1;      ///< of the images, of a weight gradient
  int64_t partial_at = 0;  ///< workspace: [slices][channels][kernel x kernel]
  bool accumulates = false;
};

/// Kernels and strides that are compiled in.
constexpr bool depthwise_has(int64_t kernel, int64_t stride) {
  return (kernel == 3 || kernel == 5) && (stride == 1 || stride == 2);
}

BRISK_DECLARE_PHASE(depthwise)                    // a unit: a plane
BRISK_DECLARE_PHASE(depthwise_input_gradient)     // a unit: a plane
BRISK_DECLARE_PHASE(depthwise_weight_gradient)    // a unit: a channel of a slice
BRISK_DECLARE_PHASE(depthwise_add_weight_slices)  // a unit: a channel

}  // namespace brisk::backend::cpu
