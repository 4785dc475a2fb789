// What MobileNet and EfficientNet are made of: the rule that rounds their channels, and a convolution with its norm.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "brisk/ops/conv.h"
#include "brisk/ops/norm.h"

namespace brisk::models {

/// `channels` to the nearest multiple of 8, at least 8, and the next one where that would lose more than a tenth
/// (MobileNet's rule, as in torchvision).
inline int64_t divisible(double channels) {
  constexpr int64_t kDivisor = 8;
  const int64_t nearest = static_cast<int64_t>(channels + kDivisor / 2) / kDivisor * kDivisor;
  const int64_t rounded = std::max(kDivisor, nearest);
  return static_cast<double>(rounded) < 0.9 * channels ? rounded + kDivisor : rounded;
}

/// Children 0 and 1 of the scope `name`: a convolution of `groups` groups and its normalisation.
inline Var conv_bn(Var x, const std::string& name, int64_t channels, int64_t kernel, int64_t stride,
                   int64_t groups = 1) {
  Scope scope(name, Naming::index);
  return batch_norm(conv2d(x, {.bias = false,
                               .channels = channels,
                               .groups = groups,
                               .kernel = kernel,
                               .padding = kernel / 2,
                               .stride = stride}));
}

}  // namespace brisk::models
