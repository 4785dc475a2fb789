// Residual networks: torchvision's for large images, their forms for 32x32, and two made for small images.
#include <array>
#include <string>

#include "brisk/models.h"
#include "brisk/ops/conv.h"
#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/norm.h"
#include "brisk/ops/pool.h"
#include "brisk/ops/shape.h"
#include "models/sizes.h"

namespace brisk::models {
namespace {

constexpr int64_t kExpansion = 4;  ///< output channels of a bottleneck, in widths

using Blocks = std::array<int64_t, 4>;  ///< of each stage
using Block = Var (*)(Var x, int64_t channels, int64_t stride);

Var conv_bn(Var x, int64_t channels, int64_t kernel, int64_t stride) {
  return batch_norm(
      conv2d(x, {.bias = false, .channels = channels, .kernel = kernel, .padding = kernel / 2, .stride = stride}));
}

Var shortcut(Var x, int64_t channels, int64_t stride) {
  if (stride == 1 && x.dim(1) == channels) return x;
  Scope inner("downsample", Naming::index);
  return conv_bn(x, channels, 1, stride);
}

Var basic_block(Var x, int64_t channels, int64_t stride) {
  const Var y = conv_bn(relu(conv_bn(x, channels, 3, stride)), channels, 3, 1);
  return relu(y + shortcut(x, channels, stride));
}

Var bottleneck(Var x, int64_t channels, int64_t stride) {
  Var y = relu(conv_bn(x, channels, 1, 1));
  y = relu(conv_bn(y, channels, 3, stride));
  y = conv_bn(y, kExpansion * channels, 1, 1);
  return relu(y + shortcut(x, kExpansion * channels, stride));
}

Var stage(Var x, int64_t number, Block block, int64_t blocks, int64_t channels, int64_t stride) {
  for (int64_t i = 0; i < blocks; ++i) {
    Scope scope("layer" + std::to_string(number) + "." + std::to_string(i));
    x = block(x, channels, i == 0 ? stride : 1);
  }
  return x;
}

/// The four stages and the mean over what is left of the image.
Var stages(Var x, Block block, const Blocks& blocks, int64_t channels) {
  for (int64_t i = 0; i < 4; ++i) {
    x = stage(x, i + 1, block, blocks[static_cast<size_t>(i)], channels << i, i == 0 ? 1 : 2);
  }
  return global_avg_pool2d(x);
}

Var features(Var x, Block block, const Blocks& blocks, int64_t channels) {
  x = max_pool2d(relu(conv_bn(x, channels, 7, 2)), {.kernel = 3, .padding = 1, .stride = 2});
  return stages(x, block, blocks, channels);
}

ModelFunction resnet(Block block, const Blocks& blocks, ResnetOptions options) {
  check_sizes("ResnetOptions", {{"channels", options.channels}, {"classes", options.classes}});
  return [=](Var x) { return linear(features(x, block, blocks, options.channels), options.classes, {.name = "fc"}); };
}

void check(const Resnet32x32Options& options) {
  check_sizes("Resnet32x32Options", {{"channels", options.channels}, {"classes", options.classes}});
}

ModelFunction resnet32x32(const Blocks& blocks, Resnet32x32Options options) {
  check(options);
  return [=](Var x) {
    x = relu(conv_bn(x, options.channels, 3, 1));
    return linear(stages(x, basic_block, blocks, options.channels), options.classes, {.name = "fc"});
  };
}

}  // namespace

ModelFunction resnet_cifar(ResnetCifarOptions options) {
  check_sizes("ResnetCifarOptions",
              {{"blocks", options.blocks}, {"channels", options.channels}, {"classes", options.classes}});
  return [options](Var x) {
    x = relu(conv_bn(x, options.channels, 3, 1));
    for (int64_t i = 0; i < 3; ++i) {
      x = stage(x, i + 1, basic_block, options.blocks, options.channels << i, i == 0 ? 1 : 2);
    }
    return linear(global_avg_pool2d(x), options.classes, {.name = "fc"});
  };
}

ModelFunction resnet9(Resnet32x32Options options) {
  constexpr double kLogitScale = 0.125;
  check(options);
  return [options](Var x) {
    const auto unit = [](Var in, int64_t channels) { return relu(conv_bn(in, channels, 3, 1)); };
    {
      Scope scope("prep");
      x = unit(x, options.channels);
    }
    for (int64_t i = 1; i <= 3; ++i) {
      const int64_t channels = options.channels << i;
      Scope scope("layer" + std::to_string(i));
      x = max_pool2d(unit(x, channels), {.kernel = 2});
      if (i == 2) continue;
      Scope residual("residual");
      x = x + unit(unit(x, channels), channels);
    }
    x = flatten(max_pool2d(x, {.kernel = {x.dim(2), x.dim(3)}}));
    return linear(x, options.classes, {.bias = false, .name = "fc"}) * kLogitScale;
  };
}

ModelFunction resnet18_cifar(Resnet32x32Options options) { return resnet32x32({2, 2, 2, 2}, options); }
ModelFunction resnet34_cifar(Resnet32x32Options options) { return resnet32x32({3, 4, 6, 3}, options); }

ModelFunction resnet18(ResnetOptions options) { return resnet(basic_block, {2, 2, 2, 2}, options); }
ModelFunction resnet34(ResnetOptions options) { return resnet(basic_block, {3, 4, 6, 3}, options); }
ModelFunction resnet50(ResnetOptions options) { return resnet(bottleneck, {3, 4, 6, 3}, options); }
ModelFunction resnet101(ResnetOptions options) { return resnet(bottleneck, {3, 4, 23, 3}, options); }

Var resnet18_features(Var x) { return features(x, basic_block, {2, 2, 2, 2}, ResnetOptions().channels); }

}  // namespace brisk::models
