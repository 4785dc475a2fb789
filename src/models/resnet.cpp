// Residual networks for small images.
#include <string>

#include "brisk/models.h"
#include "brisk/ops/conv.h"
#include "brisk/ops/elementwise.h"
#include "brisk/ops/linear.h"
#include "brisk/ops/norm.h"
#include "brisk/ops/pool.h"

namespace brisk::models {
namespace {

Var conv_bn(Var x, int64_t channels, int64_t kernel, int64_t stride) {
  return batch_norm(
      conv2d(x, {.bias = false, .channels = channels, .kernel = kernel, .padding = kernel / 2, .stride = stride}));
}

Var basic_block(Var x, int64_t channels, int64_t stride) {
  Var y = relu(conv_bn(x, channels, 3, stride));
  y = conv_bn(y, channels, 3, 1);
  if (stride != 1 || x.dim(1) != channels) {
    Scope inner("downsample", Naming::index);
    x = conv_bn(x, channels, 1, stride);
  }
  return relu(x + y);
}

}  // namespace

ModelFunction resnet_cifar(ResnetCifarOptions options) {
  return [options](Var x) {
    x = relu(conv_bn(x, options.channels, 3, 1));
    for (int64_t stage = 0; stage < 3; ++stage) {
      for (int64_t block = 0; block < options.blocks; ++block) {
        Scope scope("layer" + std::to_string(stage + 1) + "." + std::to_string(block));
        x = basic_block(x, options.channels << stage, stage > 0 && block == 0 ? 2 : 1);
      }
    }
    return linear(global_avg_pool2d(x), options.classes, {.name = "fc"});
  };
}

}  // namespace brisk::models
